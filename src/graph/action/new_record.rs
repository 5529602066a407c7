//! A record to which nothing has happened yet.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, RunId, Slot, ThreadId, UserId},
    reply::Card,
    spans,
};
use serde_json::Value;

use super::{ActionRecord, Evidence, Policy, Scope, Status, Undo};
use crate::{
    digest::Digest,
    keyring::{Keyring, Proof},
    shared::Shared,
};

/// The contents of a new [`ActionRecord`], which waits for a decision. Its digest and everything that happens later
/// follow from them.
#[derive(Clone, Debug)]
pub struct NewRecord {
    /// The action's id.
    pub id: ActionId,
    /// The single-use key in its buttons.
    pub approval: ApprovalId,
    /// The thread in which the change was requested.
    pub thread: ThreadId,
    /// The run that proposed it.
    pub run: RunId,
    /// The [`super::ActionInfo::name`].
    pub name: String,
    /// The [`super::ActionInfo::version`].
    pub action_version: u32,
    /// The exact change.
    pub parameters: Value,
    /// The state of the target.
    pub preconditions: Value,
    /// The people who may decide.
    pub policy: Policy,
    /// The card that people see.
    pub card: Card,
    /// The message that shows the card.
    pub slot: Slot,
    /// The person who asked.
    pub requested_by: UserId,
    /// The time of the request.
    pub requested_at: Timestamp,
    /// The time at which the card expires.
    pub expires_at: Timestamp,
    /// The action that would undo the change.
    pub undo: Option<Undo>,
    /// The things that the change concerns.
    pub scope: Scope,
    /// The words of a person that ask for the change.
    pub evidence: Evidence,
}

impl NewRecord {
    /// Returns the record with its digest.
    pub fn signed(self, keys: &Keyring) -> ActionRecord {
        let NewRecord {
            id,
            approval,
            thread,
            run,
            name,
            action_version,
            parameters,
            preconditions,
            policy,
            card,
            slot,
            requested_by,
            requested_at,
            expires_at,
            undo,
            scope,
            evidence,
        } = self;
        let mut record = ActionRecord {
            format: ActionRecord::FORMAT,
            digest: Digest::default(),
            id,
            approval,
            thread,
            run,
            name,
            action_version,
            keyed: keys.signs(),
            seal: None,
            proof: Proof::Ours,
            parameters: parameters.into(),
            preconditions: preconditions.into(),
            policy: policy.into(),
            status: Status::Pending,
            revision: 1,
            card: card.into(),
            slot,
            requested_by,
            requested_at,
            expires_at,
            decisions: Vec::new(),
            intent_at: None,
            sends: 0,
            answers: Vec::new(),
            progress: None,
            progress_at: None,
            interrupted_at: None,
            waits: None,
            outcome: None,
            undo: undo.map(Shared::from),
            notified: Vec::new(),
            scope: scope.into(),
            edits: Vec::new(),
            origin: None,
            escalated_at: None,
            replaced_by: None,
            cut_short: false,
            under: None,
            settled: None,
            lapses: Vec::new(),
            buttons_only: false,
            evidence: evidence.into(),
            span: spans::parent(),
        };
        keys.sign(&mut record);
        record
    }
}
