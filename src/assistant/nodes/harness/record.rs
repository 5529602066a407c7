//! The record of an action, as the engine would make it.

use countersign_core::{
    clock::Timestamp,
    ids::{ApprovalId, ThreadId},
};
use countersign_graph::{action::*, keyring::Proof, node::Ask};

pub(super) fn thread() -> ThreadId {
    ThreadId { team: "T1".into(), channel: "C1".into(), root: "1700000000.000100".into() }
}

pub(super) fn record(ask: &Ask, now: Timestamp) -> ActionRecord {
    let Proposal { parameters, preconditions, card, undo, scope } = ask.proposal.clone();
    let policy =
        Policy { approvers: vec![Approver::Channel], own_request: true, needed: 1, typed: true, ..Policy::default() };
    ActionRecord {
        format: ActionRecord::FORMAT,
        id: format!("A{}", now.0).as_str().into(),
        approval: ApprovalId::new(&thread(), 1),
        thread: thread(),
        run: "r1".into(),
        name: ask.action.clone(),
        action_version: 1,
        digest: digest_of(&ask.action, 1, &parameters, &preconditions, &policy),
        keyed: None,
        seal: None,
        proof: Proof::Ours,
        parameters,
        preconditions,
        policy,
        status: Status::Pending,
        revision: 1,
        card,
        slot: "card:A1".into(),
        requested_by: ask.requested_by.clone(),
        requested_at: now,
        expires_at: now,
        decisions: Vec::new(),
        intent_at: None,
        sends: 0,
        answers: Vec::new(),
        progress: None,
        progress_at: None,
        interrupted_at: None,
        waits: None,
        outcome: None,
        undo,
        notified: Vec::new(),
        scope,
        edits: Vec::new(),
        origin: None,
        escalated_at: None,
        replaced_by: None,
        cut_short: false,
        under: None,
        settled: None,
    }
}
