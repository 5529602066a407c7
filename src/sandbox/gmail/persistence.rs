//! The mailbox on disk: a JSON document, which is replaced as a whole. Meant for the few mails of a playground.

use std::{io, path::Path, sync::Arc};

use countersign_core::private_file;
use serde::{Deserialize, Serialize};

use super::{ledger::SentMail, mailbox::Mailbox};

/// The saved state, when written.
#[derive(Serialize)]
struct Saved<'a> {
    mailbox: &'a Mailbox,
    sent: &'a [SentMail],
}

/// The saved state, when read.
#[derive(Deserialize)]
struct Loaded {
    mailbox: Mailbox,
    sent: Vec<SentMail>,
}

/// Returns the saved mailbox and the mails that were sent from it; `None` if nothing was saved.
///
/// # Errors
///
/// If the file cannot be read.
pub(super) fn load(path: &Path) -> io::Result<Option<(Mailbox, Vec<SentMail>)>> {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let Loaded { mailbox, mut sent } = serde_json::from_slice(&text)?;
    for mail in &mut sent {
        // The copy in the mailbox is the same message.
        mail.bytes = mailbox.message(&mail.id).map(|copy| copy.bytes.clone()).unwrap_or_default();
    }
    Ok(Some((mailbox, sent)))
}

/// Saves the mailbox and the mails that were sent from it.
///
/// # Errors
///
/// If the file cannot be written.
pub(super) fn save(path: &Path, mailbox: &Mailbox, sent: &[SentMail]) -> io::Result<()> {
    let text = serde_json::to_vec(&Saved { mailbox, sent })?;
    let new = path.with_extension("new");
    private_file::write(&new, &text)?;
    std::fs::rename(new, path)
}

/// Messages as base64.
pub(super) mod base64 {
    use ::base64::{Engine as _, prelude::BASE64_STANDARD};
    use serde::{Deserializer, Serializer, de::Error as _};

    use super::{Arc, Deserialize as _};

    /// Writes a message.
    pub(in super::super) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    /// Reads a message.
    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map(Arc::from).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_is_the_same_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gmail.json");
        assert!(load(&path).unwrap().is_none());
        let mut mailbox = Mailbox::new("support@sandbox.example".to_owned(), false);
        let id = mailbox.receive(b"From: ana@customer.example\r\nSubject: Prices\r\n\r\nHow much?".to_vec(), 7);
        save(&path, &mailbox, &[]).unwrap();
        let (loaded, sent) = load(&path).unwrap().unwrap();
        assert_eq!(loaded.message(&id).unwrap().bytes, mailbox.message(&id).unwrap().bytes);
        assert_eq!((loaded.newest_history, loaded.len(), sent.len()), (mailbox.newest_history, 1, 0));
    }
}
