//! Whether an answer helped: what people press below it, kept in the record beside the run.

use std::sync::Arc;

use serde_json::json;

use super::entry::Rated;
use crate::{
    clock::Clock,
    graph::store::{AuditDraft, AuditEntry, AuditKind, Changes, Error, Seq, Store},
    ids::{CommitId, RunId},
    reply::Reply,
};

/// How the value of a button that says yes begins; the run follows.
const HELPED: &str = "helped:";

/// How the value of a button that says no begins.
const DID_NOT: &str = "did-not:";

/// The values of the two buttons below an answer of `run`: that it helped, that it did not.
pub fn values(run: &RunId) -> [String; 2] {
    [format!("{HELPED}{run}"), format!("{DID_NOT}{run}")]
}

/// The run that a value is about, and whether it helped.
pub fn read(value: &str) -> Option<(RunId, bool)> {
    let of = |prefix: &str| value.strip_prefix(prefix).map(RunId::from);
    of(HELPED).map(|run| (run, true)).or_else(|| of(DID_NOT).map(|run| (run, false)))
}

/// Keeps ratings.
#[derive(Clone, Debug)]
pub struct Ratings {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl Ratings {
    /// In this store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Somebody pressed. Returns what they are told.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub async fn on_rated(&self, rated: &Rated, seq: Seq) -> Result<Reply, Error> {
        let Rated { thread, by, run, helped, .. } = rated;
        let record = self.store.audit(thread).await?;
        let of_run = |entry: &&AuditEntry| entry.event.detail["run"] == json!(run);
        if !record.iter().filter(of_run).any(|entry| entry.event.kind == AuditKind::Answered) {
            return Ok(Reply::text("I can't tell any more which answer this is about, so I have noted nothing."));
        }
        let is_mine = |entry: &&AuditEntry| entry.event.kind == AuditKind::Rated && entry.event.by.as_ref() == Some(by);
        let before = record.iter().rev().filter(of_run).find(is_mine);
        if before.is_some_and(|entry| entry.event.detail["helped"] == *helped) {
            return Ok(Reply::text("I have that already, thank you."));
        }
        let mut changes = Changes::new(CommitId::fresh(), thread.clone());
        changes.desk_acks.push(seq);
        let detail = json!({ "run": run, "helped": helped });
        changes.audit.push(AuditDraft::new(AuditKind::Rated, self.clock.now(), Some(by.clone()), detail));
        self.store.apply(&changes).await?;
        Ok(match helped {
            true => Reply::text("Thank you. I have noted that this helped."),
            false => Reply::text("Thank you. I have noted that this did not help.")
                .hint("If you write in the thread what you were after, I try again."),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_button_says_which_run_it_is_about() {
        let run = RunId::from("r1");
        let [yes, no] = values(&run);
        assert_eq!(read(&yes), Some((run.clone(), true)));
        assert_eq!(read(&no), Some((run, false)));
        assert_eq!(read("approve"), None);
    }
}
