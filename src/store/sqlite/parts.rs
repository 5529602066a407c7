//! The parts of actions, which are most of an action and hardly ever change. They are written only if they did.

use std::{collections::HashMap, sync::Mutex};

use countersign_core::ids::ActionId;
use countersign_graph::{action::Parts, store::ActionChange};

/// The maximum number of actions whose parts are remembered.
const MAX_ACTIONS: usize = 256;

/// The parts of actions in progress as this process wrote them last, with the revisions.
#[derive(Debug, Default)]
pub(super) struct WrittenParts(Mutex<HashMap<ActionId, (u64, Parts)>>);

impl WrittenParts {
    /// Returns true if the action has these parts already at the revision that the change expects. If it has another
    /// revision, the change is refused.
    pub(super) fn has(&self, change: &ActionChange) -> bool {
        let ActionChange { expected, record } = change;
        self.0.lock().is_ok_and(|written| {
            written
                .get(&record.id)
                .is_some_and(|(revision, parts)| Some(*revision) == *expected && parts.are_same(&Parts::of(record)))
        })
    }

    /// Notes a change that was written.
    pub(super) fn note(&self, ActionChange { record, .. }: &ActionChange) {
        let Ok(mut written) = self.0.lock() else { return };
        if !record.status.is_in_progress() {
            written.remove(&record.id);
            return;
        }
        if written.len() >= MAX_ACTIONS {
            written.clear();
        }
        written.insert(record.id.clone(), (record.revision, Parts::of(record)));
    }
}
