//! Who may decide.

use crate::{
    config,
    graph::{
        action::{ActionRecord, Approver, Policy},
        engine::Matter,
    },
    ids::UserId,
};

/// The policy for an action, as configured now. Typed consent is for what can be undone.
pub fn policy_for(settings: &config::Approvals, matter: &Matter<'_>) -> Policy {
    let rule = settings.actions.get(matter.action);
    let own = if matter.irreversible { settings.own_irreversible } else { settings.own_request };
    Policy {
        approvers: rule
            .and_then(|rule| rule.approvers.as_ref())
            .unwrap_or(&settings.approvers)
            .iter()
            .map(|name| approver(name))
            .collect(),
        own_request: rule.and_then(|rule| rule.own_request).unwrap_or(own),
        needed: rule.and_then(|rule| rule.needed).unwrap_or(settings.needed),
        typed: !matter.irreversible,
        escalation: None,
        because: None,
    }
}

/// An approver as configured: `channel`, `requester`, a user id or a user group id.
fn approver(name: &str) -> Approver {
    match name {
        "channel" => Approver::Channel,
        "requester" => Approver::Requester,
        group if group.starts_with('S') => Approver::Group(group.to_owned()),
        user => Approver::User(user.into()),
    }
}

/// Why somebody's approval does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// They are not among the approvers.
    NotAnApprover,
    /// They asked for it themselves.
    OwnRequest,
    /// They have approved already; more people are needed.
    Twice,
}

/// What is known about a person at the moment of their decision.
#[derive(Clone, Debug, Default)]
pub struct Person {
    /// Whether they decided from within the channel of the request.
    pub in_channel: bool,
    /// The user groups among the approvers that they belong to.
    pub groups: Vec<String>,
}

/// Whether `by` may approve.
pub fn may_approve(record: &ActionRecord, by: &UserId, person: &Person) -> Result<(), Denied> {
    if !is_approver(record, by, person) {
        return Err(Denied::NotAnApprover);
    }
    if *by == record.requested_by && !record.policy.own_request {
        return Err(Denied::OwnRequest);
    }
    if record.approved_by().contains(by) {
        return Err(Denied::Twice);
    }
    Ok(())
}

/// Whether `by` may reject: every approver, and always the person who asked.
pub fn may_reject(record: &ActionRecord, by: &UserId, person: &Person) -> Result<(), Denied> {
    if *by == record.requested_by || is_approver(record, by, person) { Ok(()) } else { Err(Denied::NotAnApprover) }
}

/// Whether `by` may withdraw: only the person who asked.
pub fn may_withdraw(record: &ActionRecord, by: &UserId) -> Result<(), Denied> {
    if *by == record.requested_by { Ok(()) } else { Err(Denied::NotAnApprover) }
}

fn is_approver(record: &ActionRecord, by: &UserId, person: &Person) -> bool {
    record.policy.approvers.iter().any(|approver| match approver {
        Approver::Channel => person.in_channel,
        Approver::Requester => *by == record.requested_by,
        Approver::User(user) => user == by,
        Approver::Group(group) => person.groups.contains(group),
    })
}
