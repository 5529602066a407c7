//! The record of an action, as the engine would make it.

use countersign_core::{
    clock::Timestamp,
    ids::{ApprovalId, ThreadId},
};
use countersign_graph::{action::*, keyring::Keyring, node::Ask};

pub(super) fn thread() -> ThreadId {
    ThreadId { team: "T1".into(), channel: "C1".into(), root: "1700000000.000100".into() }
}

pub(super) fn record(ask: &Ask, now: Timestamp) -> ActionRecord {
    let Proposal { parameters, preconditions, card, undo, scope } = ask.proposal.clone();
    let policy =
        Policy { approvers: vec![Approver::Channel], own_request: true, needed: 1, typed: true, ..Policy::default() };
    let record = NewRecord {
        id: format!("A{}", now.0).as_str().into(),
        approval: ApprovalId::new(&thread(), 1),
        thread: thread(),
        run: "r1".into(),
        name: ask.action.clone(),
        action_version: 1,
        parameters,
        preconditions,
        policy,
        card,
        slot: "card:A1".into(),
        requested_by: ask.requested_by.clone(),
        requested_at: now,
        expires_at: now,
        undo,
        scope,
        evidence: ask.evidence.clone(),
    };
    record.signed(&Keyring::new(vec![vec![7; 32]]).expect("the key is long enough"))
}
