//! Remembers what this process last wrote about each action in progress, so that only changes are written again. The parts
//! of an action are most of it and hardly ever change, and labels are only ever added. Its status need not be read either.

use std::{collections::HashMap, sync::Mutex};

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId},
};
use countersign_graph::{
    action::{Label, Parts, Status},
    store::ActionChange,
};

/// The maximum number of actions that are remembered.
const MAX_ACTIONS: usize = 256;

/// The parts and labels of an action that are already in the store.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// True if the parts are those of the new record.
    pub(super) parts: bool,
    /// The labels.
    pub(super) labels: Vec<Label>,
    /// The status, if the approval key and the time of the request are those of the new record.
    pub(super) status: Option<Status>,
}

/// The actions in progress as this process wrote them last.
#[derive(Debug, Default)]
pub(super) struct WrittenActions(Mutex<HashMap<ActionId, Action>>);

#[derive(Debug)]
struct Action {
    revision: u64,
    status: Status,
    approval: ApprovalId,
    requested_at: Timestamp,
    parts: Parts,
    labels: Vec<Label>,
}

impl WrittenActions {
    /// Returns what is already stored of an action at the revision that the change expects. If the stored revision is
    /// another, the change is refused.
    pub(super) fn before(&self, change: &ActionChange) -> Written {
        let ActionChange { expected, record } = change;
        let Ok(written) = self.0.lock() else { return Written::default() };
        let Some(action) = written.get(&record.id).filter(|action| Some(action.revision) == *expected) else {
            return Written::default();
        };
        let is_same_time = action.requested_at == record.requested_at;
        Written {
            parts: action.parts.are_same(&Parts::of(record)),
            labels: if is_same_time { action.labels.clone() } else { Vec::new() }, // the time is part of their place
            status: (is_same_time && action.approval == record.approval).then_some(action.status),
        }
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
        let action = Action {
            revision: record.revision,
            status: record.status,
            approval: record.approval.clone(),
            requested_at: record.requested_at,
            parts: Parts::of(record),
            labels: record.labels(),
        };
        written.insert(record.id.clone(), action);
    }
}
