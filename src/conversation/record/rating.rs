//! Handles ratings of answers, which people give with the buttons below them and which are stored
//! in the thread's record.

use std::sync::Arc;

use countersign_core::{
    clock::Clock,
    ids::{CommitId, RunId, ThreadId, UserId},
    reply::Reply,
};
use countersign_graph::store::{AuditDraft, AuditEntry, AuditKind, Changes, Error, Seq, Store};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A person's rating of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rating {
    /// The thread of the answer.
    pub thread: ThreadId,
    /// The person who rated it.
    pub by: UserId,
    /// The run that gave the answer.
    pub run: RunId,
    /// True if the answer helped.
    pub helped: bool,
    /// The address for answers, which is valid for 30 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_url: Option<String>,
}

/// The service that stores ratings.
#[derive(Clone, Debug)]
pub struct Ratings {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl Ratings {
    /// Creates a service for this store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Records a rating. Returns the reply to the person.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn record_rating(&self, rating: &Rating, seq: Seq) -> Result<Reply, Error> {
        let Rating { thread, by, run, helped, .. } = rating;
        let record = self.store.audit(thread).await?;
        let of_run = |entry: &&AuditEntry| entry.event.detail["run"] == json!(run);
        if !record.iter().filter(of_run).any(|entry| entry.event.kind == AuditKind::Answered) {
            return Ok(Reply::text("I can't tell which answer this is about, so nothing was recorded."));
        }
        let is_mine = |entry: &&AuditEntry| entry.event.kind == AuditKind::Rated && entry.event.by.as_ref() == Some(by);
        let before = record.iter().rev().filter(of_run).find(is_mine);
        if before.is_some_and(|entry| entry.event.detail["helped"] == *helped) {
            return Ok(Reply::text("You already rated this answer. Thank you."));
        }
        let mut changes = Changes::new(CommitId::fresh(), thread.clone());
        changes.inbox_acks.push(seq);
        let detail = json!({ "run": run, "helped": helped });
        changes.audit.push(AuditDraft::new(AuditKind::Rated, self.clock.now(), Some(by.clone()), detail));
        self.store.apply(&changes).await?;
        Ok(match helped {
            true => Reply::text("Thank you. Recorded: this helped."),
            false => Reply::text("Thank you. Recorded: this didn't help.")
                .hint("Tell me in the thread what you were looking for and I'll try again."),
        })
    }
}
