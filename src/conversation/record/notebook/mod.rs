//! The lab notebook: the record of a thread, for people and for machines, provable afterwards.
//!
//! It is written from the record alone ([`countersign_graph::store::AuditEntry`]), never from the agent's memory:
//!
//! - `notebook.md` tells it to readers who were not there ([`story`]);
//! - `notebook.jsonl` is the record itself, a line for each entry behind a head ([`lines`]), which
//!   `countersign audit verify` checks without store or network ([`verify`]).
//!
//! # The limits of a check
//!
//! Each entry's hash covers the entry before it, each line ends in the hash of its own bytes, and the head holds the
//! number of entries, the last hash, and the hash of everything below. So a changed byte, a line that is missing, added
//! or moved, and an end that was cut off are all found, and the first of them is named.
//!
//! It holds no secret. Anyone who has this program can make up a whole notebook that holds together. Only the last hash
//! shows that a notebook is *the* record of a thread, and only by comparison: with a newer export, with the thread's
//! own line about the export, or with `--last` and a hash that was noted elsewhere.
//!
//! # Hidden values
//!
//! `[record]` names fields and patterns whose values are hidden in exports, and may hide people ([`redact`]). The chain
//! holds all the same: hashes cover salted commitments ([`countersign_graph::seal`] has the scheme). Deleting old words
//! works the same way ([`super::retention`]).

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
use countersign_graph::store::{AuditDraft, AuditEntry, AuditKind, Changes, Outbound, Outgoing, Store};
use countersign_slack::client::SlackClient;
use serde_json::json;

pub use self::redact::Redaction;
use self::{
    lines::{FileLine, Head},
    people::People,
};

/// The name of the file for people.
pub const MARKDOWN: &str = "notebook.md";

/// The name of the file for machines.
pub const JSONL: &str = "notebook.jsonl";

/// The time that an exported file is kept for sending; Slack has it then.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// The reasons why there is no notebook.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The thread has no record: it is not one of the bot's, or nothing happened in it yet.
    #[error("there is no record of thread {0}; `countersign trace` lists the threads that there are")]
    NoRecord(ThreadId),
    /// The stored record does not hold together. Nothing is exported, since it would look as if it did.
    #[error("the stored record of thread {thread} is broken at entry {seq}: {what}")]
    Broken {
        /// The thread.
        thread: ThreadId,
        /// The first entry that is wrong.
        seq: u64,
        /// The fault.
        what: String,
    },
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] countersign_graph::store::Error),
}

/// A finished notebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The thread.
    pub thread: ThreadId,
    /// The thread's first words; `None` if there are none.
    pub title: Option<String>,
    /// The number of entries in its record.
    pub entries: u64,
    /// The hash of the last entry.
    pub last: String,
    /// [`MARKDOWN`].
    pub markdown: Attachment,
    /// [`JSONL`].
    pub jsonl: Attachment,
    /// Charts and other files of the thread, as far as they are still kept; the Markdown refers to them by name.
    pub figures: Vec<Attachment>,
}

/// The exporter of threads.
#[derive(Clone, Debug)]
pub struct Notebook {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The client that looks up people's names; without it they appear as `@` and their id.
    slack: Option<SlackClient>,
    redaction: Redaction,
}

impl Notebook {
    /// Creates an exporter from this store; people are named as in this workspace.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, slack: Option<SlackClient>, redaction: Redaction) -> Self {
        Self { store, clock, slack, redaction }
    }

    /// Exports one thread. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NoRecord`], or the record does not hold together, or the store does not answer.
    pub async fn export(&self, thread: &ThreadId) -> Result<Exported, Error> {
        let record = self.store.audit(thread).await?;
        let Some(last) = record.last().map(|entry| entry.hash.clone()) else {
            return Err(Error::NoRecord(thread.clone()));
        };
        check_chain(thread, &record)?;
        let people = People::of(&record, &self.redaction, self.slack.as_ref()).await;
        let record: Vec<_> = record.into_iter().map(|entry| self.redaction.apply(entry, &people)).collect();
        let figures = self.figures(&record).await?;
        let now = self.clock.now();

        let title = story::title(&record, &people);
        let story = story::write_story(thread, &record, &people, now);
        let markdown = attachment(MARKDOWN, "Lab notebook, to read", story.into_bytes());
        let mut files: Vec<_> = std::iter::once(&markdown).chain(&figures).map(FileLine::of).collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let head = Head::new(thread, now, &record, &last, files);
        let jsonl = attachment(JSONL, "Lab notebook, to check", lines::write(head, &record));
        let entries = record.len() as u64;
        Ok(Exported { thread: thread.clone(), title, entries, last, markdown, jsonl, figures })
    }

    /// Puts both files into the thread, and a line about it into the record. The caller has to flush the outbox.
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
            let hash = self.store.put_blob(&file.bytes, Some(KEPT_FOR)).await?;
            files.push(json!({ "name": file.name, "hash": hash }));
            let body = Outbound::File { name: file.name.clone(), title: file.title.clone(), hash };
            let outgoing = Outgoing { slot: None, nonce: Nonce::fresh(), progress: false, not_before: now, body };
            changes.outbox.push(outgoing);
        }
        let detail = json!({ "entries": exported.entries, "last": exported.last, "files": files });
        changes.audit.push(AuditDraft::new(AuditKind::Exported, now, Some(by.clone()), detail));
        self.store.apply(&changes).await?;
        Ok(exported)
    }

    /// Returns the files of the thread that are still kept, under the names that the story gives them.
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

/// Returns the reply when there is no notebook, with the reason.
pub fn refusal_reply(error: &Error) -> Reply {
    match error {
        Error::NoRecord(_) => Reply::text("Nothing has happened in this thread that I could export.")
            .hint("Ask for the notebook inside the thread that you mean, or choose Export this thread in the menu of a message there."),
        Error::Broken { seq, .. } => Reply::text(format!(
            "My record of this thread does not hold together at entry {seq}, so I export nothing that would look as if it did.",
        ))
        .hint("Please tell whoever runs me."),
        Error::Store(_) => Reply::text("I can't reach my own memory at the moment.").hint("Try again in a minute."),
    }
}

fn attachment(name: &str, title: &str, bytes: Vec<u8>) -> Attachment {
    Attachment { name: name.to_owned(), title: title.to_owned(), bytes }
}

/// Checks that the stored record is whole.
fn check_chain(thread: &ThreadId, record: &[AuditEntry]) -> Result<(), Error> {
    let mut previous = "";
    for (n, entry) in record.iter().enumerate() {
        let broken = |what: String| Error::Broken { thread: thread.clone(), seq: n as u64 + 1, what };
        if entry.seq != n as u64 + 1 {
            return Err(broken(format!("entry {} stands in its place", entry.seq)));
        }
        entry.check(thread, previous).map_err(|wrong| broken(words::broken(entry, &wrong).0))?;
        previous = &entry.hash;
    }
    Ok(())
}
