//! Who may decide.

use super::envelope;
use crate::{
    config,
    graph::{
        action::{ActionRecord, Approver, Policy},
        engine::Matter,
    },
    ids::UserId,
};

/// The measure of a standing approval that names the changes it covers.
const COVERS: &str = "covers";

/// The policy for an action, as configured now. Typed consent is for what can be undone. A standing approval is granted by
/// whoever may approve the changes that it covers.
pub fn policy_for(settings: &config::Approvals, matter: &Matter<'_>) -> Policy {
    let covered = matter.scope.measures.get(COVERS).into_iter().flatten().filter_map(|action| action.as_str());
    let actions: Vec<_> = std::iter::once(matter.action).chain(covered).collect();
    let rules = || actions.iter().filter_map(|action| settings.actions.get(*action));
    let own = if matter.irreversible { settings.own_irreversible } else { settings.own_request };
    let own_of = |action: &&str| settings.actions.get(*action).and_then(|rule| rule.own_request).unwrap_or(own);
    let needed_of =
        |action: &&str| settings.actions.get(*action).and_then(|rule| rule.needed).unwrap_or(settings.needed);
    let usual = Policy {
        approvers: rules()
            .find_map(|rule| rule.approvers.as_ref())
            .unwrap_or(&settings.approvers)
            .iter()
            .map(|name| approver(name))
            .collect(),
        own_request: actions.iter().all(own_of),
        needed: actions.iter().map(needed_of).max().unwrap_or(settings.needed),
        typed: !matter.irreversible,
        escalation: None,
        because: None,
    };
    envelope::stricter(usual, &settings.envelopes, matter.scope)
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
    /// Whether they may cannot be told: a user group could not be looked up.
    Uncertain,
}

/// What is known about a person at the moment of their decision.
#[derive(Clone, Debug, Default)]
pub struct Person {
    /// Whether they decided from within the channel of the request.
    pub in_channel: bool,
    /// The user groups among the approvers that they belong to.
    pub groups: Vec<String>,
    /// Whether a user group could not be looked up: they may be in it.
    pub is_uncertain: bool,
}

/// Whether `by` may approve.
pub fn may_approve(record: &ActionRecord, by: &UserId, person: &Person) -> Result<(), Denied> {
    if !is_approver(record, by, person) {
        return Err(if person.is_uncertain { Denied::Uncertain } else { Denied::NotAnApprover });
    }
    if record.is_request_of(by) && !record.policy.own_request {
        return Err(Denied::OwnRequest);
    }
    if record.approved_by().contains(by) {
        return Err(Denied::Twice);
    }
    Ok(())
}

/// Whether `by` may reject: every approver, and always the person who asked or edited.
pub fn may_reject(record: &ActionRecord, by: &UserId, person: &Person) -> Result<(), Denied> {
    if record.is_request_of(by) || is_approver(record, by, person) { Ok(()) } else { Err(Denied::NotAnApprover) }
}

/// Whether `by` may withdraw: only the person who asked, or edited.
pub fn may_withdraw(record: &ActionRecord, by: &UserId) -> Result<(), Denied> {
    if record.is_request_of(by) { Ok(()) } else { Err(Denied::NotAnApprover) }
}

fn is_approver(record: &ActionRecord, by: &UserId, person: &Person) -> bool {
    record.approvers().any(|approver| match approver {
        Approver::Channel => person.in_channel,
        Approver::Requester => *by == record.requested_by,
        Approver::User(user) => user == by,
        Approver::Group(group) => person.groups.contains(group),
    })
}
