//! Who may decide.

use super::envelope;
use crate::{
    config::{self, ContextRule, Rule},
    graph::{
        action::{ActionRecord, Approver, Escalation, Policy},
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
    let own = if matter.irreversible { settings.own_irreversible } else { settings.own_request };
    // Each action in each context has a line of rules of its own; the strictest of them counts.
    let contexts: Vec<Option<&str>> = match matter.scope.contexts.as_slice() {
        [] => vec![None],
        contexts => contexts.iter().map(|context| Some(context.as_str())).collect(),
    };
    let lines: Vec<Vec<Rule>> =
        actions.iter().flat_map(|action| contexts.iter().map(|context| rules(settings, action, *context))).collect();
    let first = |wanted: fn(&Rule) -> Option<&Vec<String>>| {
        let found = lines.iter().find_map(|line| line.iter().find_map(wanted));
        found.map(|names| names.iter().map(|name| approver(name)).collect::<Vec<_>>())
    };
    let everybody = |names: &[String]| names.iter().map(|name| approver(name)).collect::<Vec<_>>();
    let more = first(|rule| rule.escalate_to.as_ref()).unwrap_or_else(|| everybody(&settings.escalate_to));
    let usual = Policy {
        approvers: first(|rule| rule.approvers.as_ref()).unwrap_or_else(|| everybody(&settings.approvers)),
        own_request: lines.iter().all(|line| line.iter().find_map(|rule| rule.own_request).unwrap_or(own)),
        needed: lines
            .iter()
            .map(|line| line.iter().find_map(|rule| rule.needed).unwrap_or(settings.needed))
            .max()
            .unwrap_or(settings.needed),
        typed: !matter.irreversible,
        escalation: (!more.is_empty()).then(|| Escalation {
            approvers: more,
            after_ms: u64::try_from(settings.escalate_after.as_millis()).unwrap_or(u64::MAX),
        }),
        because: None,
    };
    envelope::stricter(usual, &settings.envelopes, matter.scope)
}

/// The rules for an action in a context, the most exact first.
fn rules(settings: &config::Approvals, action: &str, context: Option<&str>) -> Vec<Rule> {
    let here = context.and_then(|context| settings.contexts.get(context));
    let exact = here.and_then(|here| here.actions.get(action)).cloned();
    let rules = [exact, settings.actions.get(action).cloned(), here.map(ContextRule::rule)];
    rules.into_iter().flatten().collect()
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
    let approved = record.approved_by();
    // Where fewer are needed than when they pressed first, their press sets it off.
    if approved.contains(by) && approved.len() < record.policy.needed as usize {
        return Err(Denied::Twice);
    }
    // Who asked and who edited count as one where a second person is needed.
    let ours = |person: &UserId| person != by && record.is_request_of(person);
    if record.policy.needed > 1 && record.is_request_of(by) && approved.iter().any(ours) {
        return Err(Denied::OwnRequest);
    }
    Ok(())
}

/// Whether `by` may reject: every approver, and always the person who asked or edited.
pub fn may_reject(record: &ActionRecord, by: &UserId, person: &Person) -> Result<(), Denied> {
    match record.is_request_of(by) || is_approver(record, by, person) {
        true => Ok(()),
        false if person.is_uncertain => Err(Denied::Uncertain),
        false => Err(Denied::NotAnApprover),
    }
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
