//! The retries of a write that conflicts with people's decisions.
//!
//! A step may change open cards, and cards are decided without the thread's lease. If one of them is decided between the
//! read and the write, the store refuses the whole write, and the step builds it again from the new state.

use countersign_core::ids::ActionId;

use super::session::Session;
use crate::{checkpoint::Checkpoint, engine::LeaseState, node::State, store::Error};

/// The maximum number of retries. Each conflict means that at least one decision was stored, so conflicts cannot
/// continue forever.
const MAX_CONFLICTS: u32 = 16;

/// A write that is retried after a conflict.
pub(super) struct Retried<S: State> {
    /// The checkpoint before the step, from which the write is built again.
    before: Checkpoint<S>,
    conflicts: u32,
}

impl<S: State> Retried<S> {
    /// Begins with the session as it is before the step.
    pub(super) fn begin(session: &Session<S>) -> Self {
        Self { before: session.checkpoint.clone(), conflicts: 0 }
    }

    /// Returns the result of the write. If it conflicts with a decision on one of these cards, which it would have
    /// changed, returns `None`: the session is as it was before the step, and the write has to be built again.
    pub(super) fn settle(
        &mut self,
        session: &mut Session<S>,
        saved: Result<LeaseState, Error>,
        cards: &[ActionId],
    ) -> Option<Result<LeaseState, Error>> {
        match saved {
            Err(Error::ActionMoved { id, .. }) if cards.contains(&id) && self.conflicts < MAX_CONFLICTS => {
                self.conflicts += 1;
                let conflicts = self.conflicts;
                tracing::info!(action.id = %id, conflicts, "A card was decided in the meantime; retrying the write");
                session.checkpoint = self.before.clone();
                None
            }
            saved => Some(saved),
        }
    }
}
