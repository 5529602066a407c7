//! The policies: who may decide on an action.

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

/// The measure of a standing approval that names the changes it covers.
const COVERS: &str = "covers";

/// Returns the current policy for an action. Typed consent is for actions that can be undone. A standing approval is
/// granted by those who may approve the changes that it covers.
pub fn policy_for(settings: &config::Approvals, matter: &PolicyInput<'_>) -> Policy {
    let own = if matter.irreversible { settings.own_irreversible } else { settings.own_request };
    let (contexts, lines): (Vec<_>, Vec<_>) = rule_lines(settings, matter).into_iter().unzip();
    let lists_of = |list_of: fn(&Rule) -> Option<&Vec<String>>, usual: &Vec<String>| {
        let lists = lines.iter().map(|line| line.iter().find_map(list_of).unwrap_or(usual));
        lists.map(|names| names.iter().map(|name| approver(name)).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let lists = lists_of(|rule| rule.approvers.as_ref(), &settings.approvers);
    let (approvers, also) = common_approvers(lists.clone());
    let apart = approvers.is_empty().then(|| disjoint_contexts(&contexts, &lists)).flatten();
    // Whoever is brought in decides alone, so every line has to name them.
    let mut brought_in = lists_of(|rule| rule.escalate_to.as_ref(), &settings.escalate_to);
    let mut more = brought_in.pop().unwrap_or_default();
    more.retain(|approver| brought_in.iter().all(|list| list.contains(approver)));
    // Where nobody may decide, nobody is brought in.
    let escalation = (!approvers.is_empty() && !more.is_empty()).then(|| Escalation {
        approvers: more,
        after_ms: u64::try_from(settings.escalate_after.as_millis()).unwrap_or(u64::MAX),
    });
    let usual = Policy {
        approvers,
        also,
        own_request: lines.iter().all(|line| line.iter().find_map(|rule| rule.own_request).unwrap_or(own)),
        needed: lines
            .iter()
            .map(|line| line.iter().find_map(|rule| rule.needed).unwrap_or(settings.needed))
            .max()
            .unwrap_or(settings.needed),
        typed: !matter.irreversible,
        escalation,
        because: apart.as_ref().map(|contexts| operator_hint(contexts)),
        apart,
    };
    envelope::tightened(usual, &settings.envelopes, settings.measures, matter.scope)
}

/// Returns the record with the current policy, and still with the digest of what was shown. A record that is not what
/// was shown stays as it is: it will be refused.
pub fn with_current_policy(policy_for: &PolicyFor, mut record: ActionRecord) -> ActionRecord {
    let policy = policy_for(&PolicyInput::of(&record));
    if record.proof.holds() {
        record.policy = policy;
    }
    record
}

/// Returns the audit event for a policy that changed since the card was shown, and with it the digest.
pub fn change_event(shown: &ActionRecord, known: &ActionRecord, at: Timestamp) -> AuditDraft {
    let detail = json!({ "policy": known.policy, "digest": known.digest, "before": shown.digest });
    known.event(AuditKind::PolicyChanged, at, None, detail)
}

/// Returns the lines of rules that a change has to satisfy, each with the most exact rule first: one for each of its
/// contexts, and for a standing approval one more for each change that it covers. The strictest of them counts.
fn rule_lines<'a>(settings: &config::Approvals, matter: &PolicyInput<'a>) -> Vec<(Option<&'a str>, Vec<Rule>)> {
    let covered = matter.scope.measures.get(COVERS).into_iter().flatten();
    let covered: Vec<&str> = covered.filter_map(|action| action.as_str()).collect();
    let contexts: Vec<Option<&str>> = match matter.scope.contexts.as_slice() {
        [] => vec![None],
        contexts => contexts.iter().map(|context| Some(context.as_str())).collect(),
    };
    let mut lines = Vec::new();
    for context in contexts {
        let here = context.and_then(|context| settings.contexts.get(context));
        let of = |action: &str| {
            let exact = here.and_then(|here| here.actions.get(action));
            [exact, settings.actions.get(action)].into_iter().flatten().cloned().collect::<Vec<_>>()
        };
        let rest: Vec<Rule> = here.map(ContextRule::rule).into_iter().collect();
        if covered.is_empty() {
            lines.push((context, [of(matter.action), rest.clone()].concat()));
        }
        for action in &covered {
            lines.push((context, [of(matter.action), of(action), rest.clone()].concat()));
            lines.push((context, [of(action), rest.clone()].concat()));
        }
    }
    lines
}

/// Returns the people who are in each of these lists: one list, and further lists that such a person has to be in as
/// well where that is not known without a lookup. Nobody, if one of them is empty.
fn common_approvers(mut lists: Vec<Vec<Approver>>) -> (Vec<Approver>, Vec<Vec<Approver>>) {
    lists.sort_by_key(Vec::len);
    let mut people: Option<Vec<Approver>> = None;
    let mut others: Vec<Vec<Approver>> = Vec::new();
    for list in lists {
        let is_wider = |than: &Vec<Approver>| than.iter().all(|approver| list.contains(approver));
        if people.iter().chain(&others).any(is_wider) {
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
    let mut each: Vec<_> = people.into_iter().chain(others).collect();
    // Those who are named come first: they are told, and find it in their Home tab.
    each.sort_by_key(|list| list.iter().any(|one| matches!(one, Approver::Channel | Approver::Requester)));
    let mut each = each.into_iter();
    (each.next().unwrap_or_default(), each.collect())
}

/// Returns the contexts whose lists have nobody in common: two, if two are enough for that. `None` if a list is empty:
/// then nobody is meant to decide.
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

/// Returns the hint for the bot's operator where the lists of these contexts have nobody in common.
fn operator_hint(contexts: &[String]) -> String {
    let who = "whoever runs me has to name the same person in";
    match contexts {
        [] => format!("nobody can approve this; {who} each of the lists of approvers that apply to it"),
        contexts => {
            let keys: Vec<_> = contexts.iter().map(|context| format!("approvals.contexts.{context}")).collect();
            format!("nobody can approve this; {who} {}", keys.join(" and "))
        }
    }
}

/// Returns the most approvals a change can get from `named`, if it is the request of `ours`: who asked and who edited.
pub fn most_approvals(policy: &Policy, named: &[UserId], ours: &[UserId]) -> usize {
    let different: BTreeSet<&UserId> = named.iter().collect();
    let (own, others): (Vec<&UserId>, Vec<&UserId>) = different.into_iter().partition(|person| ours.contains(person));
    // Who asked and who edited count as one.
    others.len() + usize::from(policy.own_request && !own.is_empty())
}

/// Returns an approver as configured: `channel`, `requester`, a user id or a user group id.
fn approver(name: &str) -> Approver {
    match name {
        "channel" => Approver::Channel,
        "requester" => Approver::Requester,
        group if group.starts_with('S') => Approver::Group(group.to_owned()),
        user => Approver::User(user.into()),
    }
}

/// The reasons why a person's approval does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The person is not among the approvers.
    NotAnApprover,
    /// It is the person's own request.
    OwnRequest,
    /// The person has approved already; more people are needed.
    Twice,
    /// A user group could not be looked up: the person may be in it.
    Uncertain,
    /// The person's account gives no right to decide.
    Account(AccountDenial),
}

impl Denial {
    /// Returns the word for the record.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotAnApprover => "not an approver",
            Self::OwnRequest => "own request",
            Self::Twice => "twice",
            Self::Uncertain => "group not looked up",
            Self::Account(outside) => outside.word(),
        }
    }
}

/// The facts about a person at the moment of their decision.
#[derive(Clone, Debug, Default)]
pub struct Person {
    /// True if the person decides from within the channel of the request.
    pub in_channel: bool,
    /// The user groups among the approvers that the person belongs to.
    pub groups: Vec<String>,
    /// True if a user group could not be looked up: the person may be in it.
    pub is_uncertain: bool,
    /// The reason why the decision never counts, under any policy; `None` for a full member of the workspace.
    pub outside: Option<AccountDenial>,
}

impl Person {
    /// Returns `Ok` if the person's decision may count at all.
    fn check_account(&self) -> Result<(), Denial> {
        self.outside.map_or(Ok(()), |outside| Err(Denial::Account(outside)))
    }
}

/// Returns `Ok` if `by` may approve.
pub fn may_approve(record: &ActionRecord, by: &UserId, person: &Person) -> Result<(), Denial> {
    person.check_account()?;
    if !is_approver(record, by, person) {
        return Err(if person.is_uncertain { Denial::Uncertain } else { Denial::NotAnApprover });
    }
    if record.is_request_of(by) && !record.policy.own_request {
        return Err(Denial::OwnRequest);
    }
    let approved = record.approved_by();
    // Where fewer are needed than when they pressed first, their press sets it off.
    if approved.contains(by) && approved.len() < record.policy.needed as usize {
        return Err(Denial::Twice);
    }
    // Who asked and who edited count as one where a second person is needed.
    let ours = |person: &UserId| person != by && record.is_request_of(person);
    if record.policy.needed > 1 && record.is_request_of(by) && approved.iter().any(ours) {
        return Err(Denial::OwnRequest);
    }
    Ok(())
}

/// Returns `Ok` if `by` may reject: every approver, and always the person who asked or edited.
pub fn may_reject(record: &ActionRecord, by: &UserId, person: &Person) -> Result<(), Denial> {
    person.check_account()?;
    match record.is_request_of(by) || is_approver(record, by, person) {
        true => Ok(()),
        false if person.is_uncertain => Err(Denial::Uncertain),
        false => Err(Denial::NotAnApprover),
    }
}

/// Returns `Ok` if `by` may say that an action with an unknown outcome was done: everyone who may approve it.
pub fn may_settle(record: &ActionRecord, by: &UserId, person: &Person) -> Result<(), Denial> {
    may_approve(record, by, person).or_else(|why| if why == Denial::Twice { Ok(()) } else { Err(why) })
}

/// Returns `Ok` if `by` may withdraw: only the person who asked, or edited.
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
    let Policy { approvers, also, .. } = &record.policy;
    (is_in(approvers) && also.iter().all(|list| is_in(list))) || is_in(record.brought_in())
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_config::{Additions, Approvals, Config};
    use countersign_experiments::settings::SECTION;
    use countersign_graph::action::Scope;

    fn settings() -> Approvals {
        let additions = Additions { sections: &[SECTION], measures: &[] };
        Config::load(None, &Default::default(), &additions).unwrap().approvals
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn by(approvers: &[&str]) -> Rule {
        Rule { approvers: Some(names(approvers)), ..Rule::default() }
    }

    fn here(approvers: &[&str]) -> ContextRule {
        ContextRule { approvers: Some(names(approvers)), ..ContextRule::default() }
    }

    fn policy(settings: &Approvals, action: &str, scope: &Scope) -> Policy {
        policy_for(settings, &PolicyInput { action, irreversible: false, scope })
    }

    /// Returns a card that ana asked for, under this policy.
    fn card(policy: Policy) -> ActionRecord {
        let saved = include_str!("../../../tests/fixtures/shapes/action_record.json");
        let saved: Vec<ActionRecord> = serde_json::from_str(saved).unwrap();
        let mut record = saved[0].clone();
        (record.decisions, record.edits, record.escalated_at) = (Vec::new(), Vec::new(), None);
        ActionRecord { policy, requested_by: "ana".into(), ..record }
    }

    #[test]
    fn a_change_in_two_contexts_is_decided_by_those_whom_both_name() {
        // The lists of the two contexts; who may decide, in words; who of these may: bo, cy of the group, di; in the channel.
        type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a str, [bool; 3]);
        let cases: [Case<'_>; 9] = [
            (&["U2"], &["U2", "U3"], "@U2", [true, false, false]),
            (&["U2", "U3"], &["U3", "U4"], "@U3", [false, true, false]),
            (&["U2"], &["U3"], "nobody (the approvers of one and other have nobody in common)", [false; 3]),
            (&["U2"], &[], "nobody (no approvers are configured)", [false; 3]),
            (&["S1", "U2"], &["S1", "U2"], "a member of S1 or @U2", [true, true, false]),
            (&["S1"], &["S1", "U2"], "a member of S1", [false, true, false]),
            (&["channel"], &["U2"], "@U2, who also has to be in this channel", [true, false, false]),
            (
                &["S1", "U4"],
                &["U2", "U3", "channel"],
                "a member of S1 or @U4, who also has to be @U2, @U3 or in this channel",
                [false, true, true],
            ),
            (&["requester"], &["channel"], "the person who asked, who also has to be in this channel", [false; 3]),
        ];
        for (one, other, words, may) in cases {
            let mut settings = settings();
            settings.contexts = [("one".to_owned(), here(one)), ("other".to_owned(), here(other))].into();
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
    fn the_contexts_are_named_whose_lists_have_nobody_in_common() {
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
            settings.contexts = contexts.iter().map(|(name, list)| ((*name).to_owned(), here(list))).collect();
            let scope = contexts.iter().fold(Scope::default(), |scope, (name, _)| scope.in_context(*name));
            let policy = policy(&settings, "update_experiment_status", &scope);
            assert_eq!(policy.apart, apart.map(names), "{contexts:?}");
            let change = policy.because.unwrap_or_default();
            let keys = apart.into_iter().flatten().all(|name| change.contains(&format!("approvals.contexts.{name}")));
            assert!(keys && change.is_empty() == apart.is_none(), "{change}");
        }
        let mut settings = settings();
        settings.actions.insert("grant_standing_approval".to_owned(), by(&["U2"]));
        settings.actions.insert("test_condition_balance".to_owned(), by(&["U3"]));
        let scope = Scope::default().in_context("lab").measure(COVERS, "test_condition_balance");
        let policy = policy(&settings, "grant_standing_approval", &scope);
        assert_eq!(policy.deciders().words(), "nobody (the lists of approvers that apply have nobody in common)");
        assert!(policy.because.unwrap().contains("each of the lists"));
    }

    #[test]
    fn a_standing_approval_is_granted_by_whom_the_changes_it_covers_name() {
        let mut settings = settings();
        let scope = Scope::default().in_context("lab").measure(COVERS, "test_condition_balance");
        let of = |settings: &Approvals| policy(settings, "grant_standing_approval", &scope).deciders().words();
        settings.contexts.insert("lab".to_owned(), here(&["U2"]));
        assert_eq!(of(&settings), "@U2");
        settings.actions.insert("test_condition_balance".to_owned(), by(&["U3"]));
        assert_eq!(of(&settings), "@U3", "the rule of what is covered is more exact than that of the context");
        let exact = settings.contexts.get_mut("lab").unwrap();
        exact.actions.insert("test_condition_balance".to_owned(), by(&["U4"]));
        assert_eq!(of(&settings), "@U4");
        settings.actions.insert("grant_standing_approval".to_owned(), by(&["U4", "U5"]));
        assert_eq!(of(&settings), "@U4", "its own rule makes it no easier");
    }

    #[test]
    fn where_nobody_may_decide_nobody_is_brought_in() {
        let mut settings = settings();
        settings.escalate_to = names(&["U9"]);
        assert!(policy(&settings, "update_experiment", &Scope::default()).escalation.is_some());
        settings.actions.insert("update_experiment".to_owned(), by(&[]));
        assert_eq!(policy(&settings, "update_experiment", &Scope::default()).escalation, None);
    }

    #[test]
    fn those_are_brought_in_who_may_decide_and_could_not_before() {
        // Who may, who is brought in; whether own requests count; those who are new, and all of them then, in words.
        type Case<'a> = (&'a [&'a str], &'a [&'a str], bool, usize, &'a str);
        let cases: [Case<'_>; 5] = [
            (&["S1"], &["S1", "ana", "U3", "U3"], false, 1, "a member of S1 or @U3 (but not the person who asked)"),
            (&["S1"], &["S1", "ana", "requester"], false, 0, "a member of S1 (but not the person who asked)"),
            (&["S1"], &["ana"], true, 1, "a member of S1 or @ana"),
            (&["channel"], &["channel"], true, 0, "anyone in this channel"),
            (
                &["ana"],
                &["requester"],
                false,
                0,
                "nobody (only the person who asked is named, and another person has to approve this)",
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
    fn who_asked_and_who_edited_are_one_person_or_none() {
        let people = |names: &[&str]| names.iter().map(|name| UserId::from(*name)).collect::<Vec<_>>();
        let ours = people(&["ana", "bo"]);
        for (named, own_request, most) in [
            (&["bo"][..], false, 0),
            (&["bo", "cy"], false, 1),
            (&["ana", "bo"], true, 1),
            (&["ana", "bo", "cy", "cy"], true, 2),
        ] {
            let policy = Policy { own_request, ..Policy::default() };
            assert_eq!(most_approvals(&policy, &people(named), &ours), most, "{named:?}");
        }
    }
}
