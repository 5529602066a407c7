//! Approval policies: the rules on who may decide on an action, and the checks of a person against them.

use std::collections::BTreeSet;

use countersign_config::{self as config, ContextRule, Rule};
use countersign_core::{clock::Timestamp, ids::UserId};
use countersign_graph::{
    action::{ActionRecord, Approver, Escalation, Policy},
    engine::{PolicyFor, PolicyInput},
    store::{AuditDraft, AuditKind},
};
use serde_json::json;

use super::{envelope, people::AccountDenial};

/// The measure of a standing approval that lists the actions it covers.
const COVERS_MEASURE: &str = "covers";

/// Returns the policy that the current settings give for an action. Only actions that can be undone, and that a person
/// asked for, may be approved by a typed message. Standing approvals are granted by the people who may approve the changes they cover.
pub fn policy_for(settings: &config::Approvals, input: &PolicyInput<'_>) -> Policy {
    // Notes and a person's own plans concern nobody else, so no setting asks another person about them.
    if input.scope.is_personal() {
        return Policy { typed: !input.is_suggested, ..personal_policy() };
    }
    let own = if input.irreversible { settings.own_irreversible } else { settings.own_request };
    let (contexts, chains): (Vec<_>, Vec<_>) = rule_chains(settings, input).into_iter().unzip();
    let lists_of = |list_of: fn(&Rule) -> Option<&Vec<String>>, default: &Vec<String>| {
        let lists = chains.iter().map(|chain| chain.iter().find_map(list_of).unwrap_or(default));
        lists.map(|names| names.iter().map(|name| approver(name)).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let lists = lists_of(|rule| rule.approvers.as_ref(), &settings.approvers);
    let (approvers, also) = common_approvers(lists.clone());
    let apart = approvers.is_empty().then(|| disjoint_contexts(&contexts, &lists)).flatten();
    // Anyone added by the escalation can decide alone, so every chain has to name them.
    let mut escalation_lists = lists_of(|rule| rule.escalate_to.as_ref(), &settings.escalate_to);
    let mut escalate_to = escalation_lists.pop().unwrap_or_default();
    escalate_to.retain(|approver| escalation_lists.iter().all(|list| list.contains(approver)));
    // If nobody may decide, the escalation adds nobody either.
    let escalation = (!approvers.is_empty() && !escalate_to.is_empty()).then(|| Escalation {
        approvers: escalate_to,
        after_ms: u64::try_from(settings.escalate_after.as_millis()).unwrap_or(u64::MAX),
    });
    let policy = Policy {
        approvers,
        also,
        own_request: chains.iter().all(|chain| chain.iter().find_map(|rule| rule.own_request).unwrap_or(own)),
        needed: chains
            .iter()
            .map(|chain| chain.iter().find_map(|rule| rule.needed).unwrap_or(settings.needed))
            .max()
            .unwrap_or(settings.needed),
        // A word in a conversation may be meant for anything. A button on the card is pressed by someone who sees the
        // card.
        typed: !input.irreversible && !input.scope.is_risky && !input.is_suggested,
        escalation,
        because: apart.as_ref().map(|contexts| operator_hint(contexts)),
        apart,
    };
    envelope::tightened(policy, &settings.envelopes, settings.measures, input.scope)
}

/// Returns the policy for actions that concern only the requester.
fn personal_policy() -> Policy {
    Policy {
        approvers: vec![Approver::Requester],
        also: Vec::new(),
        own_request: true,
        needed: 1,
        typed: true,
        escalation: None,
        because: None,
        apart: None,
    }
}

/// Returns the record with the current policy; its digest remains that of the card as it was shown. A record that does
/// not match its digest is returned unchanged, since its decision will be refused anyway.
pub fn with_current_policy(policy_for: &PolicyFor, mut record: ActionRecord) -> ActionRecord {
    let policy = policy_for(&PolicyInput::of(&record));
    if record.proof.holds() && *record.policy != policy {
        record.policy = policy.into();
    }
    record
}

/// Returns the audit event for a policy, and therefore a digest, that changed after the card was shown.
pub fn change_event(shown: &ActionRecord, current: &ActionRecord, at: Timestamp) -> AuditDraft {
    let detail = json!({ "policy": current.policy, "digest": current.digest, "before": shown.digest });
    current.event(AuditKind::PolicyChanged, at, None, detail)
}

/// Returns the chains of rules that a change has to satisfy, each with its context and the most specific rule first.
/// There is one chain for each context of the change; a standing approval has two for each context and action it
/// covers. The strictest chain applies.
fn rule_chains<'a>(settings: &config::Approvals, input: &PolicyInput<'a>) -> Vec<(Option<&'a str>, Vec<Rule>)> {
    let covered = input.scope.measures.get(COVERS_MEASURE).into_iter().flatten();
    let covered: Vec<&str> = covered.filter_map(|action| action.as_str()).collect();
    let contexts: Vec<Option<&str>> = match input.scope.contexts.as_slice() {
        // A change without a context still has the rules of its action.
        [] => vec![None],
        contexts => contexts.iter().map(|context| Some(context.as_str())).collect(),
    };
    let mut chains = Vec::new();
    for context in contexts {
        let context_rule = context.and_then(|context| settings.contexts.get(context));
        let rules_of = |action: &str| {
            let in_context = context_rule.and_then(|rule| rule.actions.get(action));
            [in_context, settings.actions.get(action)].into_iter().flatten().cloned().collect::<Vec<_>>()
        };
        let context_rules: Vec<Rule> = context_rule.map(ContextRule::rule).into_iter().collect();
        if covered.is_empty() {
            chains.push((context, [rules_of(input.action), context_rules.clone()].concat()));
        }
        for action in &covered {
            chains.push((context, [rules_of(input.action), rules_of(action), context_rules.clone()].concat()));
            chains.push((context, [rules_of(action), context_rules.clone()].concat()));
        }
    }
    chains
}

/// Returns the approvers common to all of these lists: one list, and further lists that an approver
/// must also be in. Further lists remain only if they contain entries other than named users, since
/// their members are not known here. If a list is empty, there are no common approvers.
fn common_approvers(mut lists: Vec<Vec<Approver>>) -> (Vec<Approver>, Vec<Vec<Approver>>) {
    lists.sort_by_key(Vec::len);
    let mut people: Option<Vec<Approver>> = None;
    let mut others: Vec<Vec<Approver>> = Vec::new();
    for list in lists {
        let contains_all = |other: &Vec<Approver>| other.iter().all(|approver| list.contains(approver));
        if people.iter().chain(&others).any(contains_all) {
            continue;
        }
        let by_name = list.iter().all(|approver| matches!(approver, Approver::User(_)));
        match (by_name, people.as_mut()) {
            (true, Some(people)) => people.retain(|person| list.contains(person)),
            (true, None) => people = Some(list),
            (false, _) => others.push(list),
        }
    }
    if people.as_ref().is_some_and(Vec::is_empty) {
        return (Vec::new(), Vec::new());
    }
    let mut required: Vec<_> = people.into_iter().chain(others).collect();
    // Lists that name people come first: those people are notified, and see the request in their Home tab.
    required.sort_by_key(|list| list.iter().any(|one| matches!(one, Approver::Channel | Approver::Requester)));
    let mut required = required.into_iter();
    (required.next().unwrap_or_default(), required.collect())
}

/// Returns the contexts whose lists have nobody in common. If two of the lists are disjoint, returns
/// only their contexts. Returns `None` if a list is empty, since then the settings deliberately
/// allow nobody to decide.
fn disjoint_contexts(contexts: &[Option<&str>], lists: &[Vec<Approver>]) -> Option<Vec<String>> {
    if lists.iter().any(Vec::is_empty) {
        return None;
    }
    let by_name = |list: &[Approver]| list.iter().all(|approver| matches!(approver, Approver::User(_)));
    let named: Vec<_> = contexts.iter().zip(lists).filter(|(_, list)| by_name(list)).collect();
    let share = |one: &[Approver], other: &[Approver]| one.iter().any(|approver| other.contains(approver));
    let pairs = named.iter().enumerate().flat_map(|(nth, one)| named[nth + 1..].iter().map(move |other| (one, other)));
    let mut pairs = pairs.filter(|((one, _), (other, _))| one != other);
    let found = match pairs.find(|((_, one), (_, other))| !share(one, other)) {
        Some(((Some(one), _), (Some(other), _))) => vec![*one, *other],
        _ => named.iter().filter_map(|(context, _)| **context).collect(),
    };
    let mut contexts: Vec<String> = Vec::new();
    for context in found {
        if !contexts.iter().any(|known| known == context) {
            contexts.push(context.to_owned());
        }
    }
    Some(if contexts.len() < 2 { Vec::new() } else { contexts })
}

/// Returns the hint that tells the bot's operator how to change the settings if the lists of these contexts have nobody
/// in common.
fn operator_hint(contexts: &[String]) -> String {
    let who = "the app's operator must list the same person in";
    match contexts {
        [] => format!("no one can approve this: {who} each of the lists of approvers that apply to it"),
        contexts => {
            let keys: Vec<_> = contexts.iter().map(|context| format!("approvals.contexts.{context}")).collect();
            format!("no one can approve this: {who} {}", keys.join(" and "))
        }
    }
}

/// Returns the maximum number of approvals that a change can get from the people in `named`. `requesters` are the
/// people who asked for the change or edited it.
pub fn max_approvals(policy: &Policy, named: &[UserId], requesters: &[UserId]) -> usize {
    let distinct: BTreeSet<&UserId> = named.iter().collect();
    let (own, others): (Vec<&UserId>, Vec<&UserId>) =
        distinct.into_iter().partition(|person| requesters.contains(person));
    // The requester and the editors together count as one approver.
    others.len() + usize::from(policy.own_request && !own.is_empty())
}

/// Parses a configured approver: `channel`, `requester`, a user id or a user group id.
fn approver(name: &str) -> Approver {
    match name {
        "channel" => Approver::Channel,
        "requester" => Approver::Requester,
        group if group.starts_with('S') => Approver::Group(group.to_owned()),
        user => Approver::User(user.into()),
    }
}

/// The reasons why a person's decision does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The person is not among the approvers.
    NotAnApprover,
    /// It is the person's own request.
    OwnRequest,
    /// The person has approved already; more people are needed.
    AlreadyApproved,
    /// A user group could not be looked up, so it is unknown whether the person is an approver.
    GroupLookupFailed,
    /// The person's account does not allow them to decide.
    Account(AccountDenial),
}

impl Denial {
    /// Returns the phrase stored in the audit trail.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotAnApprover => "not an approver",
            Self::OwnRequest => "own request",
            Self::AlreadyApproved => "twice",
            Self::GroupLookupFailed => "group not looked up",
            Self::Account(denial) => denial.word(),
        }
    }
}

/// The facts about a person at the moment of their decision.
#[derive(Clone, Debug, Default)]
pub struct Person {
    /// True if the person is in the channel of the request.
    pub in_channel: bool,
    /// The user groups among the approvers that the person belongs to.
    pub groups: Vec<String>,
    /// True if a user group among the approvers could not be looked up, so the person may or may not be in it.
    pub group_lookup_failed: bool,
    /// The reason why the account may not decide under any policy; `None` for a full member of the workspace.
    pub account_denial: Option<AccountDenial>,
}

impl Person {
    /// Returns `Ok` if the person's account may decide at all.
    fn check_account(&self) -> Result<(), Denial> {
        self.account_denial.map_or(Ok(()), |denial| Err(Denial::Account(denial)))
    }
}

/// Returns `Ok` if `by` may approve.
pub fn may_approve(record: &ActionRecord, by: &UserId, person: &Person) -> Result<(), Denial> {
    person.check_account()?;
    if !is_approver(record, by, person) {
        return Err(if person.group_lookup_failed { Denial::GroupLookupFailed } else { Denial::NotAnApprover });
    }
    if record.is_request_of(by) && !record.policy.own_request {
        return Err(Denial::OwnRequest);
    }
    let approved = record.approved_by();
    // If the policy has since been relaxed and enough people have approved, pressing again carries the change out.
    if approved.contains(by) && approved.len() < record.policy.needed as usize {
        return Err(Denial::AlreadyApproved);
    }
    // If several approvals are needed, the requester and the editors together count as one approver.
    let is_other_requester = |person: &UserId| person != by && record.is_request_of(person);
    if record.policy.needed > 1 && record.is_request_of(by) && approved.iter().any(is_other_requester) {
        return Err(Denial::OwnRequest);
    }
    Ok(())
}

/// Returns `Ok` if `by` may reject: all approvers may, and so may everyone who requested the change
/// or edited it.
pub fn may_reject(record: &ActionRecord, by: &UserId, person: &Person) -> Result<(), Denial> {
    person.check_account()?;
    match record.is_request_of(by) || is_approver(record, by, person) {
        true => Ok(()),
        false if person.group_lookup_failed => Err(Denial::GroupLookupFailed),
        false => Err(Denial::NotAnApprover),
    }
}

/// Returns `Ok` if `by` may settle the unknown outcome of an action: everyone who may approve it.
pub fn may_settle(record: &ActionRecord, by: &UserId, person: &Person) -> Result<(), Denial> {
    may_approve(record, by, person).or_else(|why| if why == Denial::AlreadyApproved { Ok(()) } else { Err(why) })
}

/// Returns `Ok` if `by` may withdraw the request: only someone who asked for the change or edited it.
pub fn may_withdraw(record: &ActionRecord, by: &UserId, person: &Person) -> Result<(), Denial> {
    person.check_account()?;
    if record.is_request_of(by) { Ok(()) } else { Err(Denial::NotAnApprover) }
}

fn is_approver(record: &ActionRecord, by: &UserId, person: &Person) -> bool {
    let is_in = |list: &[Approver]| {
        list.iter().any(|approver| match approver {
            Approver::Channel => person.in_channel,
            Approver::Requester => *by == record.requested_by,
            Approver::User(user) => user == by,
            Approver::Group(group) => person.groups.contains(group),
        })
    };
    let Policy { approvers, also, .. } = &*record.policy;
    (is_in(approvers) && also.iter().all(|list| is_in(list))) || is_in(record.brought_in())
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_config::{Additions, Approvals, Config};
    use countersign_graph::action::Scope;

    fn settings() -> Approvals {
        Config::load(None, &Default::default(), &Additions::default()).unwrap().approvals
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn rule(approvers: &[&str]) -> Rule {
        Rule { approvers: Some(names(approvers)), ..Rule::default() }
    }

    fn context_rule(approvers: &[&str]) -> ContextRule {
        ContextRule { approvers: Some(names(approvers)), ..ContextRule::default() }
    }

    fn policy(settings: &Approvals, action: &str, scope: &Scope) -> Policy {
        policy_for(settings, &PolicyInput { action, irreversible: false, scope, is_suggested: false })
    }

    /// Returns the record of a request by ana under this policy.
    fn card(policy: Policy) -> ActionRecord {
        let saved = include_str!("../../../tests/fixtures/shapes/action_record.json");
        let saved: Vec<ActionRecord> = serde_json::from_str(saved).unwrap();
        let mut record = saved[0].clone();
        (record.decisions, record.edits, record.escalated_at) = (Vec::new(), Vec::new(), None);
        ActionRecord { policy: policy.into(), requested_by: "ana".into(), ..record }
    }

    #[test]
    fn a_change_in_two_contexts_needs_an_approver_of_both() {
        // The lists of the two contexts; the deciders in words; whether U2, U3 (a member of S1) and U4 may approve. All
        // three are in the channel.
        type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a str, [bool; 3]);
        let cases: [Case<'_>; 9] = [
            (&["U2"], &["U2", "U3"], "@U2", [true, false, false]),
            (&["U2", "U3"], &["U3", "U4"], "@U3", [false, true, false]),
            (&["U2"], &["U3"], "no one (the approvers of one and other have no one in common)", [false; 3]),
            (&["U2"], &[], "no one (no approvers are configured)", [false; 3]),
            (&["S1", "U2"], &["S1", "U2"], "a member of S1 or @U2", [true, true, false]),
            (&["S1"], &["S1", "U2"], "a member of S1", [false, true, false]),
            (&["channel"], &["U2"], "@U2, who also has to be in this channel", [true, false, false]),
            (
                &["S1", "U4"],
                &["U2", "U3", "channel"],
                "a member of S1 or @U4, who also has to be @U2, @U3 or in this channel",
                [false, true, true],
            ),
            (&["requester"], &["channel"], "the requester, who also has to be in this channel", [false; 3]),
        ];
        for (one, other, words, may) in cases {
            let mut settings = settings();
            settings.contexts =
                [("one".to_owned(), context_rule(one)), ("other".to_owned(), context_rule(other))].into();
            let in_both = Scope::default().in_context("one").in_context("other");
            let record = card(policy(&settings, "update_experiment_status", &in_both));
            assert_eq!(record.deciders().words(), words, "{one:?} and {other:?}");
            let people = [("U2", &[][..]), ("U3", &["S1"]), ("U4", &[])];
            let counts = people.map(|(by, groups)| {
                let person = Person { in_channel: true, groups: names(groups), ..Person::default() };
                may_approve(&record, &by.into(), &person).is_ok()
            });
            assert_eq!(counts, may, "{one:?} and {other:?}");
        }
    }

    #[test]
    fn contexts_with_disjoint_lists_are_reported() {
        type Case<'a> = (&'a [(&'a str, &'a [&'a str])], Option<&'a [&'a str]>);
        let cases: [Case<'_>; 6] = [
            (&[("a", &["U2"]), ("b", &["U2", "U3"])], None),
            (&[("a", &["U2"]), ("b", &["U3"])], Some(&["a", "b"])),
            (&[("a", &["U2"]), ("b", &["U2"]), ("c", &["U3"])], Some(&["a", "c"])),
            (&[("a", &["U2", "U3"]), ("b", &["U3", "U4"]), ("c", &["U4", "U2"])], Some(&["a", "b", "c"])),
            (&[("a", &["U2"]), ("b", &["U3"]), ("c", &[])], None),
            (&[("a", &["U2"]), ("b", &["S1"])], None),
        ];
        for (contexts, apart) in cases {
            let mut settings = settings();
            settings.contexts = contexts.iter().map(|(name, list)| ((*name).to_owned(), context_rule(list))).collect();
            let scope = contexts.iter().fold(Scope::default(), |scope, (name, _)| scope.in_context(*name));
            let policy = policy(&settings, "update_experiment_status", &scope);
            assert_eq!(policy.apart, apart.map(names), "{contexts:?}");
            let hint = policy.because.unwrap_or_default();
            let has_keys = apart.into_iter().flatten().all(|name| hint.contains(&format!("approvals.contexts.{name}")));
            assert!(has_keys && hint.is_empty() == apart.is_none(), "{hint}");
        }
        let mut settings = settings();
        settings.actions.insert("grant_standing_approval".to_owned(), rule(&["U2"]));
        settings.actions.insert("test_condition_balance".to_owned(), rule(&["U3"]));
        let scope = Scope::default().in_context("lab").measure(COVERS_MEASURE, "test_condition_balance");
        let policy = policy(&settings, "grant_standing_approval", &scope);
        assert_eq!(policy.deciders().words(), "no one (the lists of approvers that apply have no one in common)");
        assert!(policy.because.unwrap().contains("each of the lists"));
    }

    #[test]
    fn a_standing_approval_needs_the_approvers_of_the_changes_it_covers() {
        let mut settings = settings();
        let scope = Scope::default().in_context("lab").measure(COVERS_MEASURE, "test_condition_balance");
        let of = |settings: &Approvals| policy(settings, "grant_standing_approval", &scope).deciders().words();
        settings.contexts.insert("lab".to_owned(), context_rule(&["U2"]));
        assert_eq!(of(&settings), "@U2");
        settings.actions.insert("test_condition_balance".to_owned(), rule(&["U3"]));
        assert_eq!(of(&settings), "@U3", "the rule of the covered action is more specific than the context's");
        let exact = settings.contexts.get_mut("lab").unwrap();
        exact.actions.insert("test_condition_balance".to_owned(), rule(&["U4"]));
        assert_eq!(of(&settings), "@U4");
        settings.actions.insert("grant_standing_approval".to_owned(), rule(&["U4", "U5"]));
        assert_eq!(of(&settings), "@U4", "its own rule does not add approvers");
    }

    #[test]
    fn an_action_without_approvers_has_no_escalation() {
        let mut settings = settings();
        settings.escalate_to = names(&["U9"]);
        assert!(policy(&settings, "update_experiment", &Scope::default()).escalation.is_some());
        settings.actions.insert("update_experiment".to_owned(), rule(&[]));
        assert_eq!(policy(&settings, "update_experiment", &Scope::default()).escalation, None);
    }

    #[test]
    fn an_escalation_adds_only_people_who_could_not_decide_before() {
        // The approvers; the people the escalation adds; whether own requests count; the number of newcomers; all
        // deciders afterwards, in words.
        type Case<'a> = (&'a [&'a str], &'a [&'a str], bool, usize, &'a str);
        let cases: [Case<'_>; 5] = [
            (&["S1"], &["S1", "ana", "U3", "U3"], false, 1, "a member of S1 or @U3 (but not the requester)"),
            (&["S1"], &["S1", "ana", "requester"], false, 0, "a member of S1 (but not the requester)"),
            (&["S1"], &["ana"], true, 1, "a member of S1 or @ana"),
            (&["channel"], &["channel"], true, 0, "anyone in this channel"),
            (
                &["ana"],
                &["requester"],
                false,
                0,
                "no one (only the requester is listed, and another person has to approve this)",
            ),
        ];
        for (may, more, own_request, new, words) in cases {
            let approver = |name: &&str| if *name == "ana" { Approver::User("ana".into()) } else { approver(name) };
            let escalation = Escalation { approvers: more.iter().map(approver).collect(), after_ms: 1 };
            let approvers = may.iter().map(approver).collect();
            let policy =
                Policy { approvers, own_request, needed: 1, escalation: Some(escalation), ..Policy::default() };
            let mut record = card(policy);
            assert_eq!(record.newcomers().len(), new, "{more:?}");
            record.escalated_at = Some(Timestamp(1));
            assert_eq!(record.deciders().words(), words, "{more:?}");
        }
    }

    #[test]
    fn requester_and_editor_count_as_at_most_one_approver() {
        let people = |names: &[&str]| names.iter().map(|name| UserId::from(*name)).collect::<Vec<_>>();
        let authors = people(&["ana", "bo"]);
        for (named, own_request, most) in [
            (&["bo"][..], false, 0),
            (&["bo", "cy"], false, 1),
            (&["ana", "bo"], true, 1),
            (&["ana", "bo", "cy", "cy"], true, 2),
        ] {
            let policy = Policy { own_request, ..Policy::default() };
            assert_eq!(max_approvals(&policy, &people(named), &authors), most, "{named:?}");
        }
    }
}
