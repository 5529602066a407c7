//! Withdraws open requests: “stop” and “cancel” in a thread withdraw each of its cards.

use countersign_core::{clock::Timestamp, ids::UserId};
use countersign_graph::{
    action::{ActionRecord, Decision, Verdict},
    store::{Error, Store},
};

use super::decide::decide;

/// Withdraws an open request. Returns false if it was decided before.
///
/// # Errors
///
/// If the store isn't answering.
pub async fn withdraw(store: &dyn Store, record: &ActionRecord, by: &UserId, at: Timestamp) -> Result<bool, Error> {
    let decision = Decision { by: Some(by.clone()), at, verdict: Verdict::Cancelled };
    let Ok((_, changes)) = decide(record, decision, None, None) else { return Ok(false) };
    match store.apply(&changes).await {
        Ok(()) => Ok(true),
        Err(Error::ActionMoved { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
