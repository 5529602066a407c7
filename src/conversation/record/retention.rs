//! Deletes the content of finished threads after a configured time.
//!
//! A thread is *finished* when nothing has happened in it for a while and nothing in it is open: no
//! waiting messages, no messages to send, no open cards, no actions in progress and no unknown
//! outcomes. Then its steps are deleted, and with them its messages. Its checkpoint is emptied
//! except for the number of turns, so that a new message gets an unused slot. Its record is kept,
//! kept with the words replaced by their hashes, or deleted as well. Unless the whole record is
//! kept, its files are also deleted if no other thread refers to them.

use std::{sync::Arc, time::Duration};

use countersign_config::{Kept, Record};
use countersign_core::{
    clock::{Clock, Timestamp},
    ids::{CommitId, ThreadId},
};
use countersign_graph::{
    action::{Status, Verdict},
    conversing::Memories,
    store::{
        ActionChange, ActionFilter, AuditDraft, AuditEntry, AuditKind, Changes, Error, Forget, Store, ThreadFilter,
    },
};
use serde_json::json;

use super::{notebook::redact::placeholder, stream::Cursor};

/// The maximum number of threads that are cleared in one round.
const MAX_THREADS: usize = 50;

/// The fields of a record that contain people's words.
const WORD_FIELDS: [&str; 2] = ["text", "reason"];

/// The maximum number of a thread's rejections that are read.
const MAX_REJECTIONS: usize = 1000;

/// The service that deletes the content of finished threads.
#[derive(Clone, Debug)]
pub struct Retention {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    memories: Memories,
    keep: Option<Duration>,
    kept: Kept,
    /// True if records are sent elsewhere, which comes first.
    streamed: bool,
}

impl Retention {
    /// Creates the service from the settings.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, memories: Memories, settings: &Record) -> Self {
        let streamed = settings.stream.is_some();
        Self { store, clock, memories, keep: settings.keep, kept: settings.kept, streamed }
    }

    /// Runs one round. Returns the number of threads that were cleared.
    ///
    /// # Errors
    ///
    /// If the store isn't answering; the rest is cleared in the next round.
    pub async fn sweep(&self) -> Result<usize, Error> {
        let Some(keep) = self.keep else { return Ok(0) };
        let now = self.clock.now();
        let mut before = now.minus(keep);
        if self.streamed {
            before = before.min(Cursor::all_before(&self.store).await?);
        }
        let mut forgotten = 0;
        for finished in self.store.threads(ThreadFilter::FinishedBefore(before), MAX_THREADS).await? {
            forgotten += usize::from(self.forget(&finished.thread, before, now).await?);
        }
        if forgotten > 0 {
            tracing::info!(threads = forgotten, "Deleted the content of finished threads");
        }
        Ok(forgotten)
    }

    async fn forget(&self, thread: &ThreadId, before: Timestamp, now: Timestamp) -> Result<bool, Error> {
        let Some(saved) = self.store.load(thread).await? else { return Ok(false) };
        if let Err(newer) = saved.check_format(thread) {
            tracing::warn!(thread.id = %thread, error = %newer, "Cannot delete the content of a thread");
            return Ok(false);
        }
        let version = saved.version;
        let Some(emptied) = self.memories.emptied(saved) else {
            tracing::warn!(thread.id = %thread, "Cannot delete the content of a thread: it belongs to a graph that this program does not have");
            return Ok(false);
        };
        let (checkpoint, record) = match self.kept {
            Kept::Nothing => (None, Vec::new()),
            Kept::Whole => (Some(emptied), Vec::new()),
            Kept::Hashes => (Some(emptied), without_words(self.store.audit(thread).await?.entries)),
        };
        let files = self.kept != Kept::Whole;
        let forget = Forget { thread: thread.clone(), version, before, checkpoint, files, record };
        if !self.store.forget(&forget).await? {
            return Ok(false); // something was written to the thread in the meantime
        }
        if self.kept != Kept::Nothing {
            let mut changes = Changes::new(CommitId::fresh(), thread.clone());
            let detail = json!({ "steps": version, "before": before });
            changes.audit.push(AuditDraft::new(AuditKind::Forgotten, now, None, detail));
            if self.kept == Kept::Hashes {
                changes.actions = self.without_reasons(thread).await?;
            }
            self.store.apply(&changes).await?;
        }
        Ok(true)
    }

    /// Returns the rejected requests of a thread without their reasons.
    async fn without_reasons(&self, thread: &ThreadId) -> Result<Vec<ActionChange>, Error> {
        let filter = ActionFilter::of(thread, &[Status::Rejected], MAX_REJECTIONS);
        let mut changes = Vec::new();
        for record in self.store.actions(&filter).await? {
            let Ok(mut hidden) = record.moved(Status::Rejected) else { continue };
            for decision in &mut hidden.decisions {
                if let Verdict::Rejected { reason } = &mut decision.verdict {
                    *reason = None;
                }
            }
            if hidden.decisions != record.decisions {
                changes.push(ActionChange { expected: Some(record.revision), record: hidden });
            }
        }
        Ok(changes)
    }
}

/// Returns the entries that contain people's words, without those words.
fn without_words(record: Vec<AuditEntry>) -> Vec<AuditEntry> {
    let hide = |entry: &AuditEntry| {
        entry.clone().hide(|place, value, commitment| {
            let named = place.rsplit('/').next().is_some_and(|field| WORD_FIELDS.contains(&field));
            (named && value.is_string()).then(|| placeholder(commitment))
        })
    };
    let read = record.iter().filter(|entry| entry.event.kind != AuditKind::Unreadable);
    read.map(|entry| (hide(entry), entry)).filter(|(new, old)| new != *old).map(|(new, _)| new).collect()
}
