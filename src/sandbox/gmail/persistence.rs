//! The mailbox on disk: a JSON document, which is replaced as a whole. Meant for the few mails of a playground.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{letter::SentMail, mailbox::Mailbox};

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

/// Reads the mailbox and the mails that were sent from it.
///
/// # Errors
///
/// If this is not the content of a file in which they were kept.
pub(super) fn load(text: &[u8]) -> serde_json::Result<(Mailbox, Vec<SentMail>)> {
    let Loaded { mailbox, mut sent } = serde_json::from_slice(text)?;
    for mail in &mut sent {
        // The copy in the mailbox is the same message.
        mail.bytes = mailbox.message(&mail.id).map(|copy| copy.bytes.clone()).unwrap_or_default();
    }
    Ok((mailbox, sent))
}

/// Returns the content of the file in which they are kept.
pub(super) fn kept(mailbox: &Mailbox, sent: &[SentMail]) -> Vec<u8> {
    serde_json::to_vec(&Saved { mailbox, sent }).expect("a mailbox is plain data")
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
        let mut mailbox = Mailbox::new("support@sandbox.example".to_owned(), false);
        let id = mailbox.receive(b"From: ana@customer.example\r\nSubject: Prices\r\n\r\nHow much?".to_vec(), 7);
        let (loaded, sent) = load(&kept(&mailbox, &[])).unwrap();
        assert_eq!(loaded.message(&id).unwrap().bytes, mailbox.message(&id).unwrap().bytes);
        assert_eq!((loaded.newest_history, loaded.len(), sent.len()), (mailbox.newest_history, 1, 0));
    }
}
