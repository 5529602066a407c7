//! The lab notebook: the record of a thread, for people and for machines, which can be verified
//! later.
//!
//! It is written only from the record ([`countersign_graph::store::AuditEntry`]), never from the
//! agent's memory:
//!
//! - `notebook.md` is for readers who did not take part ([`story`]);
//! - `notebook.jsonl` is the record itself, a head and a line for each entry ([`lines`]), which
//!   `countersign audit verify` checks without store or network ([`verify`]).
//!
//! # The limits of a check
//!
//! Each entry's hash covers the previous entry, each line ends with its own hash, and the head
//! contains the number of entries, the last hash, and the hash of everything below. A check
//! therefore finds changed bytes, lines that are missing, added or moved, and a missing end, and
//! reports the first of these.
//!
//! The notebook contains no secret. Anyone with this program can make up a consistent notebook. Two
//! things show that its entries are those of the bot: the seal of the record's head, for people who
//! have the digest key (`--key`), and the last hash, by comparison with one that was noted elsewhere
//! (`--last`). Neither covers the names shown in place of hidden people, or the list of files.
//!
//! An export is refused if the stored record is not the one that was written ([`super::integrity`]).
//!
//! # Hidden values
//!
//! The settings in `[record]` name fields and patterns whose values are hidden in exports, and may
//! hide people ([`redact`]). The chain remains valid, since hashes cover salted commitments;
//! [`countersign_graph::seal`] describes the scheme. Deleting old words works in the same way
//! ([`super::retention`]).

pub mod lines;
mod people;
pub mod redact;
mod story;
pub mod verify;
mod words;

use std::{sync::Arc, time::Duration};

use countersign_core::{
    clock::Clock,
    ids::{CommitId, Nonce, ThreadId, UserId},
    reply::{Attachment, Reply},
};
use countersign_graph::store::{
    AuditDraft, AuditEntry, AuditKind, AuditTrail, Changes, Keep, Outbound, Outgoing, Store,
};
use countersign_slack::client::SlackClient;
use serde_json::json;

pub use self::redact::Redaction;
use self::{
    lines::{FileLine, Head},
    people::People,
};
use super::integrity::{Error, read_record};

/// The name of the file for people.
pub const MARKDOWN: &str = "notebook.md";

/// The name of the file for machines.
pub const JSONL: &str = "notebook.jsonl";

/// The time for which an exported file is kept so that it can be sent to Slack.
const FILE_TTL: Duration = Duration::from_secs(7 * 24 * 3600);

/// An exported notebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The thread.
    pub thread: ThreadId,
    /// The first message or request in the thread, shortened; `None` if there is none.
    pub title: Option<String>,
    /// The number of entries in the record.
    pub entries: u64,
    /// The hash of the last entry.
    pub last: String,
    /// The file [`MARKDOWN`].
    pub markdown: Attachment,
    /// The file [`JSONL`].
    pub jsonl: Attachment,
    /// Charts and other files of the thread, as far as they are still stored. The Markdown file
    /// refers to them by name.
    pub figures: Vec<Attachment>,
}

/// The exporter of threads.
#[derive(Clone, Debug)]
pub struct Notebook {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The client that looks up people's names. Without it, people appear as `@` and their id.
    slack: Option<SlackClient>,
    redaction: Redaction,
}

impl Notebook {
    /// Creates an exporter for this store. `slack` is the workspace in which people's names are
    /// looked up.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, slack: Option<SlackClient>, redaction: Redaction) -> Self {
        Self { store, clock, slack, redaction }
    }

    /// Exports one thread, without changing anything.
    ///
    /// # Errors
    ///
    /// [`Error::NoRecord`], [`Error::Broken`], or [`Error::Store`] if the store isn't answering.
    pub async fn export(&self, thread: &ThreadId) -> Result<Exported, Error> {
        let AuditTrail { entries: record, seal, proof } = read_record(&*self.store, thread).await?;
        let Some(last) = record.last().map(|entry| entry.hash.clone()) else {
            return Err(Error::NoRecord(thread.clone()));
        };
        let seal = seal.filter(|_| proof.holds());
        let people = People::of(&record, self.redaction.hides_people(), self.slack.as_ref()).await;
        let record: Vec<_> = record.into_iter().map(|entry| self.redaction.apply(entry, &people)).collect();
        let figures = self.figures(&record).await?;
        let now = self.clock.now();

        let title = story::title(&record, &people);
        let story = story::write_story(thread, &record, seal.is_some(), &people, now);
        let markdown = attachment(MARKDOWN, "Lab notebook (readable)", story.into_bytes());
        let mut files: Vec<_> = std::iter::once(&markdown).chain(&figures).map(FileLine::of).collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let head = Head::new(thread, now, &record, &last, seal, files);
        let jsonl = attachment(JSONL, "Lab notebook (verifiable log)", lines::write(head, &record));
        let entries = record.len() as u64;
        Ok(Exported { thread: thread.clone(), title, entries, last, markdown, jsonl, figures })
    }

    /// Posts both files in the thread, and records the export. The caller has to flush the outbox.
    ///
    /// # Errors
    ///
    /// As [`Self::export`].
    pub async fn export_to_thread(&self, thread: &ThreadId, by: &UserId) -> Result<Exported, Error> {
        let exported = self.export(thread).await?;
        let now = self.clock.now();
        let mut changes = Changes::new(CommitId::fresh(), thread.clone());
        let mut files = Vec::new();
        for file in [&exported.markdown, &exported.jsonl] {
            let hash = self.store.put_blob(&file.bytes, Keep::For(FILE_TTL)).await?;
            files.push(json!({ "name": file.name, "hash": hash }));
            let body =
                Outbound::File { name: file.name.clone(), title: file.title.clone(), alt: file.alt.clone(), hash };
            let outgoing = Outgoing { slot: None, nonce: Nonce::fresh(), progress: false, not_before: now, body };
            changes.outbox.push(outgoing);
        }
        let detail = json!({ "entries": exported.entries, "last": exported.last, "files": files });
        changes.audit.push(AuditDraft::new(AuditKind::Exported, now, Some(by.clone()), detail));
        self.store.apply(&changes).await?;
        Ok(exported)
    }

    /// Returns the files of the thread that are still stored, with the names that the story uses.
    async fn figures(&self, record: &[AuditEntry]) -> Result<Vec<Attachment>, Error> {
        let mut figures: Vec<Attachment> = Vec::new();
        for entry in record.iter().filter(|entry| entry.event.kind == AuditKind::Attached) {
            let Some((name, hash)) = story::file_of(&entry.event) else { continue };
            if figures.iter().any(|known| known.name == name) {
                continue;
            }
            if let Some(bytes) = self.store.get_blob(&hash).await? {
                let title = entry.event.detail["title"].as_str().unwrap_or_default();
                figures.push(attachment(&name, title, bytes));
            }
        }
        Ok(figures)
    }
}

/// Returns the reply if there is no notebook, with the reason.
pub fn refusal_reply(error: &Error) -> Reply {
    match error {
        Error::NoRecord(_) => Reply::text("There's nothing to export in this thread.")
            .hint("Ask for the notebook inside the thread you mean, or choose Export this thread in the menu of a message there."),
        Error::Broken { seq, .. } => Reply::text(format!(
            "The record of this thread is damaged at entry {seq}, so I can't export a notebook that verifies.",
        ))
        .hint("Tell the app's operator."),
        Error::Store(_) => Reply::text("My database isn't answering.").hint("Try again in a minute."),
    }
}

fn attachment(name: &str, title: &str, bytes: Vec<u8>) -> Attachment {
    Attachment { name: name.to_owned(), title: title.to_owned(), alt: String::new(), bytes }
}
