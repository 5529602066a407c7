//! Parameters with a few allowed values. Any other value is refused with the list of allowed ones.

use countersign_graph::action::PrepareError;

use crate::{access, lookup, replies::refusals, upgrade::experiment::Ending};

/// The units of assignment.
pub(in super::super) const UNITS: [&str; 3] = ["individual", "group", "within-subjects"];

/// The orders in which people get the conditions, within subjects.
pub(super) const ORDERS: [&str; 3] = ["random", "random round robin", "ordered round robin"];

/// The rules for people who are on no list: they take part, or they do not.
pub(super) const FILTER_MODES: [&str; 2] = ["includeAll", "excludeAll"];

/// Returns the consistency rules that make sense with a unit; none within subjects.
pub(super) fn consistencies(unit: &str) -> &'static [&'static str] {
    match unit {
        "group" => &["individual", "group", "experiment"],
        "within-subjects" => &[],
        _ => &["individual", "experiment"],
    }
}

/// Returns the allowed value that equals the given one if case, blanks and punctuation are ignored.
pub(super) fn choice(what: &str, given: Option<&str>, allowed: &[&str]) -> Result<Option<String>, PrepareError> {
    let plain = |words: &str| words.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let Some(given) = given else { return Ok(None) };
    let found = allowed.iter().find(|value| plain(value) == plain(given)).map(|value| (*value).to_owned());
    let refused = || access::invalid(refusals::not_one_of(what, given, allowed));
    found.map(Some).ok_or_else(refused)
}

/// Checks that a consistency rule makes sense with this unit, and returns it.
pub(super) fn consistency(given: Option<&str>, unit: &str) -> Result<Option<String>, PrepareError> {
    match (given, consistencies(unit)) {
        (Some(_), []) => Err(access::invalid(refusals::no_consistency_within_subjects())),
        (Some(rule), allowed) if rule.eq_ignore_ascii_case("group") && !allowed.contains(&"group") => {
            Err(access::invalid(refusals::no_group_rule()))
        }
        (given, allowed) => choice("consistency rule", given, allowed),
    }
}

/// Checks that the algorithm is `random`.
pub(super) fn algorithm(given: Option<&str>) -> Result<(), PrepareError> {
    match given.map(str::to_lowercase).as_deref() {
        None | Some("random") => Ok(()),
        Some(other) => Err(access::invalid(refusals::algorithm(other))),
    }
}

/// Returns the automatic end of enrollment. A count of 0 removes the limit; one that is not given keeps
/// its value.
pub(super) fn ending(before: Ending, users: Option<u64>, groups: Option<u64>) -> Ending {
    let or = |given: Option<u64>, before: Option<u64>| given.or(before).filter(|count| *count > 0);
    Ending { user_count: or(users, before.user_count), group_count: or(groups, before.group_count) }
}

/// Returns the end in words: `automatically after 100 users or 10 groups`.
pub(super) fn ending_words(ending: Ending) -> String {
    let people = ending.user_count.map(|n| if n == 1 { "1 user".to_owned() } else { format!("{n} users") });
    let groups = ending.group_count.map(|n| if n == 1 { "1 group".to_owned() } else { format!("{n} groups") });
    match people.into_iter().chain(groups).collect::<Vec<_>>().as_slice() {
        [] => "not scheduled".to_owned(),
        counts => format!("automatically after {}", counts.join(" or ")),
    }
}

/// Parses a post-experiment rule. Returns `continue`, `assign <code>` with a code of the experiment, or
/// `assign default`.
pub(super) fn post_rule(rule: &str, name: &str, codes: &[String]) -> Result<String, PrepareError> {
    let refuse = |reply| Err(access::invalid(reply));
    let code = |code: &str| match lookup::pick(codes, code) {
        Some(code) => Ok(format!("assign {code}")),
        None => refuse(refusals::unknown_condition(code, name, codes)),
    };
    match rule.split_once(' ') {
        None if rule == "continue" => Ok(rule.to_owned()),
        Some(("assign" | "revert", "default" | "to default")) => Ok("assign default".to_owned()),
        Some(("assign", asked)) => code(asked.trim()),
        Some(("revert", asked)) => code(asked.trim().trim_start_matches("to ").trim()),
        _ => refuse(refusals::not_one_of(
            "post-experiment rule",
            rule,
            &["continue", "assign and a condition", "assign default"],
        )),
    }
}
