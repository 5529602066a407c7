//! Withdraws open requests: “stop” and “cancel” in a thread withdraw each of its cards.

use countersign_core::{clock::Timestamp, ids::UserId};
use countersign_graph::{
    action::{ActionRecord, Decision, Verdict},
    store::{Error, Store},
};

use super::{MAX_WRITE_ATTEMPTS, decide::decide};

/// Withdraws an open request, if it `may` be. Returns false if not, or if it was decided before.
///
/// A request that only changed in the meantime, by a vote or a note of who was told of it, is withdrawn as it is now.
///
/// # Errors
///
/// If the store isn't answering, or other writers keep changing the action. The call can be repeated.
pub async fn withdraw(
    store: &dyn Store,
    record: &ActionRecord,
    by: &UserId,
    at: Timestamp,
    may: impl Fn(&ActionRecord) -> bool + Send,
) -> Result<bool, Error> {
    let mut changed = None;
    for attempt in 1.. {
        let record = changed.as_ref().unwrap_or(record);
        if !record.status.is_open() || !may(record) {
            break;
        }
        let decision = Decision { by: Some(by.clone()), at, verdict: Verdict::Cancelled };
        let Ok((_, changes)) = decide(record, decision, None, None) else { break };
        match store.apply(&changes).await {
            Ok(()) => return Ok(true),
            Err(Error::ActionMoved { current: Some(current), .. })
                if current.revision != record.revision && attempt < MAX_WRITE_ATTEMPTS =>
            {
                changed = Some(*current);
            }
            Err(Error::ActionMoved { .. }) if attempt < MAX_WRITE_ATTEMPTS => break, // deleted, or damaged
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use countersign_core::{clock::ManualClock, ids::CommitId};
    use countersign_graph::{
        action::Status,
        store::{ActionChange, Changes},
    };
    use countersign_store::sqlite::SqliteStore;
    use tempfile::TempDir;

    use super::*;

    /// Writes a record in the place of an earlier one.
    async fn write(store: &dyn Store, record: &ActionRecord, expected: Option<u64>) {
        let mut changes = Changes::new(CommitId::fresh(), record.thread.clone());
        changes.actions.push(ActionChange { expected, record: record.clone() });
        store.apply(&changes).await.unwrap();
    }

    /// Returns an open request as it was read, and the store in which it has become `to` since then.
    async fn read_before(to: Status) -> (TempDir, SqliteStore, ActionRecord) {
        let saved = include_str!("../../../tests/fixtures/shapes/action_record.json");
        let mut records: Vec<ActionRecord> = serde_json::from_str(saved).unwrap();
        let mut record = records.swap_remove(0);
        (record.status, record.revision) = (Status::Pending, 0);
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("threads.sqlite"), Arc::new(ManualClock::default())).unwrap();
        write(&store, &record, None).await;
        let mut changed = record.moved(to).unwrap();
        changed.notified.push("bo".into());
        write(&store, &changed, Some(record.revision)).await;
        (folder, store, record)
    }

    #[tokio::test]
    async fn a_request_that_has_only_changed_is_withdrawn() {
        let (_folder, store, read) = read_before(Status::Pending).await;
        assert!(withdraw(&store, &read, &"ana".into(), Timestamp(1), |_| true).await.unwrap());
        let now = store.action(&read.thread, &read.id).await.unwrap().unwrap();
        assert_eq!((now.status, now.notified), (Status::Cancelled, vec!["bo".into()]), "and nothing is undone");
    }

    #[tokio::test]
    async fn the_right_to_withdraw_is_that_of_the_request_as_it_is_now() {
        let (_folder, store, read) = read_before(Status::Pending).await;
        let may = |record: &ActionRecord| record.notified.is_empty();
        assert!(!withdraw(&store, &read, &"ana".into(), Timestamp(1), may).await.unwrap());
        assert_eq!(store.action(&read.thread, &read.id).await.unwrap().unwrap().status, Status::Pending);
    }

    #[tokio::test]
    async fn a_request_that_is_decided_is_not_withdrawn() {
        let (_folder, store, read) = read_before(Status::Approved).await;
        assert!(!withdraw(&store, &read, &"ana".into(), Timestamp(1), |_| true).await.unwrap());
        assert_eq!(store.action(&read.thread, &read.id).await.unwrap().unwrap().status, Status::Approved);
    }
}
