//! Withdraws open requests: “stop” and “cancel” in a thread withdraw each of its cards. Those that stay open after such
//! words are left to their buttons.

use countersign_core::{
    clock::Timestamp,
    ids::{CommitId, MessageTs, ThreadId, UserId},
};
use countersign_graph::{
    action::{ActionRecord, Decision, Status, Verdict},
    store::{ActionChange, ActionFilter, Changes, Error, Seq, Store, ThreadMessage},
};

use super::{MAX_WRITE_ATTEMPTS, completing, decide::decide, inbox::InboxAnswer};

/// The maximum number of open cards of a thread that are read.
const MAX_CARDS: usize = 50;

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
    change_open(store, record, move |record| {
        let decision = Decision { by: Some(by.clone()), at, verdict: Verdict::Cancelled };
        may(record).then(|| decide(record, decision, None, None).ok()).flatten().map(|(_, changes)| changes)
    })
    .await
}

/// Makes only the buttons of a thread's open cards decide from now on, because someone said no in the thread and the
/// cards stay open. A later “yes” may be meant for anything else.
///
/// # Errors
///
/// If the store isn't answering, or other writers keep changing an action. The call can be repeated.
pub async fn leave_to_buttons(store: &dyn Store, thread: &ThreadId) -> Result<(), Error> {
    for record in open_cards(store, thread).await? {
        change_open(store, &record, |record| {
            let left = record.moved(Status::Pending).ok().filter(|_| record.takes_typed_yes())?;
            let mut changes = Changes::new(CommitId::fresh(), record.thread.clone());
            let record_now = ActionRecord { buttons_only: true, ..left };
            changes.actions.push(ActionChange { expected: Some(record.revision), record: record_now });
            Some(changes)
        })
        .await?;
    }
    Ok(())
}

/// Passes a message that decides nothing to the assistant in its thread: the person, the words and the message.
///
/// # Errors
///
/// If the store isn't answering. The call can be repeated.
pub async fn pass_on(
    store: &dyn Store,
    thread: &ThreadId,
    (by, text, ts): (&UserId, &str, &MessageTs),
    addressed: bool,
    seq: Seq,
) -> Result<InboxAnswer, Error> {
    let (by, text, ts) = (by.clone(), text.to_owned(), ts.clone());
    let mut changes = completing(thread, seq);
    changes.messages.push(ThreadMessage::Said { by, text, ts, addressed, request: None });
    store.apply(&changes).await?;
    Ok(InboxAnswer::PassedOn(thread.clone()))
}

/// Returns the actions of a thread that wait for a decision, the newest first.
///
/// # Errors
///
/// If the store isn't answering.
pub async fn open_cards(store: &dyn Store, thread: &ThreadId) -> Result<Vec<ActionRecord>, Error> {
    store.actions(&ActionFilter::of(thread, &[Status::Pending], MAX_CARDS)).await
}

/// Applies `changes` to an open request as it is now. Returns false if there are none, or if it was decided before.
async fn change_open(
    store: &dyn Store,
    record: &ActionRecord,
    changes: impl Fn(&ActionRecord) -> Option<Changes> + Send,
) -> Result<bool, Error> {
    let mut changed = None;
    for attempt in 1.. {
        let record = changed.as_ref().unwrap_or(record);
        let Some(changes) = Some(record).filter(|record| record.status.is_open()).and_then(&changes) else { break };
        match store.apply(&changes).await {
            Ok(()) => return Ok(true),
            Err(Error::ActionMoved { current: Some(current), .. })
                // A “stop” was lost when, in between, the people who can approve were noted on the card.
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

    use countersign_core::clock::ManualClock;
    use countersign_graph::store::ActionKey;
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
        let now = store.action(ActionKey::Of(&read.thread, &read.id)).await.unwrap().unwrap();
        assert_eq!((now.status, now.notified), (Status::Cancelled, vec!["bo".into()]), "and nothing is undone");
    }

    #[tokio::test]
    async fn the_right_to_withdraw_is_that_of_the_request_as_it_is_now() {
        let (_folder, store, read) = read_before(Status::Pending).await;
        let may = |record: &ActionRecord| record.notified.is_empty();
        assert!(!withdraw(&store, &read, &"ana".into(), Timestamp(1), may).await.unwrap());
        assert_eq!(store.action(ActionKey::Of(&read.thread, &read.id)).await.unwrap().unwrap().status, Status::Pending);
    }

    #[tokio::test]
    async fn a_request_that_is_decided_is_not_withdrawn() {
        let (_folder, store, read) = read_before(Status::Approved).await;
        assert!(!withdraw(&store, &read, &"ana".into(), Timestamp(1), |_| true).await.unwrap());
        assert_eq!(
            store.action(ActionKey::Of(&read.thread, &read.id)).await.unwrap().unwrap().status,
            Status::Approved
        );
    }

    #[tokio::test]
    async fn a_card_that_stays_open_after_a_no_is_left_to_its_buttons() {
        let (_folder, store, read) = read_before(Status::Pending).await;
        for _ in 0..2 {
            leave_to_buttons(&store, &read.thread).await.unwrap();
            let now = store.action(ActionKey::Of(&read.thread, &read.id)).await.unwrap().unwrap();
            assert!(now.buttons_only && !now.takes_typed_yes() && now.policy.typed);
            assert_eq!((now.status, now.revision), (Status::Pending, 2), "once is enough");
        }
    }
}
