//! Checks with Slack that the configured approvers exist and are sufficient.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use countersign_config::{Approvals, Config, Rule, most_similar};
use countersign_conversation::approvals::policy;
use countersign_core::clock::SystemClock;
use countersign_graph::{
    action::{Approver, Policy, Scope},
    engine::PolicyInput,
};
use countersign_slack::{account::UserGroup, client_error::Error};

use super::{dependencies, stdout::describe_error};

/// The maximum number of context pairs to report.
const MAX_REPORTED_PAIRS: usize = 3;

/// Checks the configured approvers. Returns a summary, or a description of the problems.
pub(super) async fn run(config: &Config) -> Result<String, String> {
    let settings = &config.approvals;
    let registry = dependencies::capabilities(config, Arc::new(SystemClock)).map_err(|error| describe_error(&error))?;
    let actions: Vec<&str> = registry.actions.keys().copied().collect();
    let stuck = unapprovable(settings, &actions);
    if !actions.is_empty() && stuck.len() == actions.len() {
        let empty = match settings.approvers.is_empty() {
            true => "approvals.approvers is empty",
            false => "the approvers of every action are empty",
        };
        return Err(format!(
            "no one can approve anything, because {empty}; expected channel, requester, user ids (U…) or user group ids \
             (S…)"
        ));
    }
    let client = dependencies::slack(config).map_err(|error| describe_error(&error))?;
    let mut groups = BTreeMap::new();
    let mut problems = Vec::new();
    for group in dependencies::groups_named(config) {
        match client.usergroup_members(&group).await {
            Ok(members) => {
                if members.is_empty() {
                    problems.push(format!("the user group {group} has no members"));
                }
                groups.insert(group, members.into_iter().map(|user| user.to_string()).collect::<BTreeSet<_>>());
            }
            Err(Error::Refused { code, .. } | Error::Gone { code, .. }) => {
                let known = client.usergroups().await.map_err(|error| error.to_string())?;
                problems.push(format!(
                    "the user group {group} cannot be looked up ({code}); {}",
                    nearest_group(&group, &known)
                ));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    let allows = |kind: &str| settings.outsiders.iter().any(|named| named == kind);
    let bot = client.auth_test().await.map_err(|error| error.to_string())?.identity;
    for user in dependencies::approvers_named(config).iter().filter(|name| name.starts_with(['U', 'W'])) {
        match client.user_info(&user.as_str().into()).await {
            Ok(person) if person.deleted => problems.push(format!("{user} ({}) is deactivated", person.name)),
            Ok(person) if person.is_bot && !allows("bots") => {
                problems.push(format!("{user} ({}) is a bot", person.name))
            }
            Ok(person) if person.is_guest && !allows("guests") => problems.push(format!(
                "{user} ({}) is a guest, so their decision does not count; expected a full member, or \"guests\" in \
                 approvals.outsiders",
                person.name
            )),
            Ok(person) if !allows("external") && bot.team.as_ref().is_some_and(|team| !person.teams.contains(team)) => {
                problems.push(format!(
                    "{user} ({}) belongs to another workspace, so their decision does not count; expected a full \
                     member, or \"external\" in approvals.outsiders",
                    person.name
                ));
            }
            Ok(_) => {}
            Err(Error::Refused { code, .. } | Error::Gone { code, .. }) => {
                problems.push(format!("the user {user} cannot be looked up ({code}); expected one of this workspace"));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    let rules = std::iter::once(("approvals".to_owned(), Rule::default())).chain(settings.rules());
    problems.extend(rules.filter_map(|(key, rule)| too_few(settings, &key, &rule, &groups)));
    if !problems.is_empty() {
        return Err(problems.join("; "));
    }
    let found = match groups.len() {
        0 => "as set in [approvals]".to_owned(),
        1 => "1 user group, found".to_owned(),
        found => format!("{found} user groups, all found"),
    };
    let stuck = (!stuck.is_empty()).then(|| format!("no one can approve {}", stuck.join(", ").replace('_', " ")));
    let disjoint = disjoint_contexts(settings, &actions, &groups);
    Ok(std::iter::once(found).chain(stuck).chain(disjoint).collect::<Vec<_>>().join("; "))
}

/// Returns the actions that nobody may approve in any context.
fn unapprovable<'a>(settings: &Approvals, actions: &[&'a str]) -> Vec<&'a str> {
    let nobody = |action: &str, scope: &Scope| {
        let policy = |irreversible| {
            policy::policy_for(settings, &PolicyInput { action, irreversible, scope, is_suggested: false })
        };
        policy(false).approvers.is_empty() && policy(true).approvers.is_empty()
    };
    let contexts = settings.contexts.keys().map(|context| Scope::default().in_context(context.as_str()));
    let scopes: Vec<Scope> = std::iter::once(Scope::default()).chain(contexts).collect();
    actions.iter().copied().filter(|action| scopes.iter().all(|scope| nobody(action, scope))).collect()
}

/// Reports pairs of contexts that have no approver in common, so that nobody could approve a change to both. This is
/// not an error, since such a change may never be requested.
fn disjoint_contexts(
    settings: &Approvals,
    actions: &[&str],
    groups: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<String> {
    let contexts: Vec<&String> = settings.contexts.keys().collect();
    let pairs =
        contexts.iter().enumerate().flat_map(|(nth, one)| contexts[nth + 1..].iter().map(move |other| (one, other)));
    let reports = pairs.filter_map(|(one, other)| {
        let scope = Scope::default().in_context(one.as_str()).in_context(other.as_str());
        let nobody = |action: &&&str| {
            let policy = policy::policy_for(settings, &PolicyInput { action, irreversible: false, scope: &scope, is_suggested: false });
            policy.apart.is_some() || have_nobody_in_common(&policy, groups)
        };
        let stuck: Vec<&str> = actions.iter().filter(nobody).copied().collect();
        let what = match stuck.len() {
            0 => return None,
            all if all == actions.len() => "no change".to_owned(),
            _ => format!("no {}", stuck.join(" and no ").replace('_', " ")),
        };
        Some(format!(
            "{what} that affects both {one} and {other} can be approved, because their approvers have no one in common. To allow it, list the same person in approvals.contexts.{one} and approvals.contexts.{other}"
        ))
    });
    reports.take(MAX_REPORTED_PAIRS).collect()
}

/// Returns true if no person is on every list of a policy. `groups` contains the members of each user group.
fn have_nobody_in_common(policy: &Policy, groups: &BTreeMap<String, BTreeSet<String>>) -> bool {
    let mut common: Option<BTreeSet<String>> = None;
    for list in std::iter::once(&policy.approvers).chain(&policy.also) {
        let mut people = BTreeSet::new();
        for approver in list {
            match approver {
                Approver::User(user) => drop(people.insert(user.to_string())),
                Approver::Group(group) => people.extend(groups.get(group).into_iter().flatten().cloned()),
                Approver::Channel | Approver::Requester => return false, // could be anyone
            }
        }
        common = Some(match common {
            Some(common) => common.intersection(&people).cloned().collect(),
            None => people,
        });
    }
    !policy.approvers.is_empty() && common.is_some_and(|common| common.is_empty())
}

/// Suggests the user group whose id or handle is most similar to the configured one.
fn nearest_group(found: &str, known: &[UserGroup]) -> String {
    let names = known.iter().flat_map(|group| [group.id.as_str(), group.handle.as_str()]);
    let nearest = most_similar(found, names);
    match known.iter().find(|group| nearest.is_some_and(|name| group.id == name || group.handle == name)) {
        Some(UserGroup { id, handle }) => format!("the nearest is {id} (@{handle})"),
        None => "this workspace has none".to_owned(),
    }
}

/// Describes the problem if a rule needs more approvals than there are approvers. The requester is not counted if they
/// may not approve their own requests.
fn too_few(
    settings: &Approvals,
    key: &str,
    rule: &Rule,
    groups: &BTreeMap<String, BTreeSet<String>>,
) -> Option<String> {
    let approvers = rule.approvers.as_ref().unwrap_or(&settings.approvers);
    let needed = rule.needed.unwrap_or(settings.needed) as usize;
    if approvers.is_empty() || approvers.iter().any(|name| name == "channel") {
        return None; // deliberately nobody, or anyone in the channel
    }
    let mut people = BTreeSet::new();
    for name in approvers {
        match groups.get(name) {
            Some(members) => people.extend(members.iter().cloned()),
            None => {
                people.insert(name.clone());
            }
        }
    }
    let own = rule.own_request.unwrap_or(settings.own_request || settings.own_irreversible);
    let count = people.len() - usize::from(!own && people.contains("requester"));
    (count < needed).then(|| format!("{key}: {needed} people must approve, but only {count} can"))
}
