//! How much of what people say is understood: utterances with every outcome that will do, and what must never happen.
//!
//! `tests/fixtures/words/*.json` are in the format of `evaluate`; beside each stands a `.meta.json` with a row
//! for each utterance, in order: `accept` holds the outcomes of which any will do, and `safety` says that a wrong reading, or
//! a restriction that is dropped, would lead to a wrong change. A value that begins with `~` is a regular expression.

use std::{collections::BTreeMap, path::Path};

use countersign::config::Config;
use countersign_playground::evaluate::{self, Case};
use fancy_regex::Regex;
use serde_json::{Value, json};

const CHANGES: &[&str] = &[
    "create_experiment",
    "update_experiment",
    "update_experiment_status",
    "delete_experiment",
    "init_experiment_user",
    "mark_decision_point",
    "simulate_user_journey",
    "test_condition_balance",
    "test_consistency_rules",
];
const PARAMETERS: &[&str] = &[
    "experiment",
    "experiments",
    "all",
    "status",
    "start_on",
    "name",
    "new_name",
    "description",
    "context",
    "decision_points",
    "site",
    "target",
    "conditions",
    "factors",
    "weights",
    "payloads",
    "exclude_if_reached",
    "unit",
    "group",
    "consistency",
    "condition_order",
    "algorithm",
    "stratification_factor",
    "tags",
    "add_tags",
    "remove_tags",
    "include",
    "exclude",
    "exclude_groups",
    "include_groups",
    "add",
    "remove",
    "rule",
    "ending",
    "end_on",
    "post_rule",
    "post_experiment_rule",
    "when_stopped",
    "filter",
    "filter_mode",
    "user",
    "users",
    "working_group",
    "condition",
    "experiment_id",
    "tag",
    "search",
    "created",
    "changed",
    "sort",
    "page",
    "form",
    "concept",
    "with",
    "what",
    "within",
    "limit",
    "until",
    "id",
    "ends_after_users",
    "ends_after_groups",
    "add_to_exclusion",
    "add_to_inclusion",
    "remove_from_inclusion",
    "remove_from_exclusion",
    "inclusion",
    "exclusion",
    "count",
    "prefix",
    "groups",
    "conditions_of",
    "points_of",
    "copy_of",
];
const NOT_FIELDS: &[&str] =
    &["intent", "capability", "action", "tool", "requests", "error", "experiment", "group_type"];
/// The experiments of the stand-in.
const KNOWN: &[&str] =
    &["math hints", "lesson video hints", "class hint rollout", "running test", "chat tone", "concrete fractions"];
const NONE: &str = "none";
/// Expected of everything, and met by nothing: so that everything is told.
const NEVER: &str = "§";

/// What was understood, by name.
type Found = BTreeMap<String, String>;

fn of<'a>(found: &'a Found, what: &str) -> &'a str {
    found.get(what).map_or(NONE, String::as_str)
}

/// What each utterance is understood to be.
async fn understood(rows: &[Value]) -> Vec<Found> {
    let parameters: serde_json::Map<_, _> = PARAMETERS.iter().map(|name| ((*name).to_owned(), json!(NEVER))).collect();
    let odd = |row: &Value| {
        let given = row.get("given").cloned().unwrap_or(json!({}));
        json!({ "said": row["said"], "given": given, "intent": NEVER, "capability": NEVER, "action": NEVER, "tool": NEVER,
            "parameters": parameters, "steps": 99 })
    };
    let cases: Vec<Case> = rows.iter().map(|row| serde_json::from_value(odd(row)).unwrap()).collect();
    let score = evaluate::run(
        &Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap(),
        &cases,
    )
    .await
    .unwrap();
    let told = |line: &str| {
        let (what, is) = line.split_once(": ")?;
        let is = is.strip_suffix(", should be §").or_else(|| is.strip_suffix(", should be 99"))?;
        Some((what.to_owned(), is.to_owned()))
    };
    score.lines.iter().map(|line| line.wrong.iter().filter_map(|wrong| told(wrong)).collect()).collect()
}

/// Whether a change gets as far as a card, or a draft that asks for the rest of it.
fn changes(found: &Found) -> bool {
    let action = of(found, "action");
    if !CHANGES.contains(&action) || of(found, "intent") != "needs_info" {
        return false;
    }
    let name = of(found, "experiment").trim_matches(|c| "\"'“”‘’„` ".contains(c));
    let weights = of(found, "weights");
    let shares = Regex::new(r"^([\d\s./:%]+|.*=\d+.*)$").unwrap();
    if weights != NONE && !shares.is_match(weights).unwrap() {
        return false; // asked back: one weight for each condition
    }
    if name != NONE && !KNOWN.contains(&name) {
        return false;
    }
    let says_more = found.iter().any(|(key, value)| value != NONE && !NOT_FIELDS.contains(&key.as_str()));
    match action {
        "update_experiment" => name != NONE && says_more,
        "update_experiment_status" => match of(found, "experiments") {
            NONE => of(found, "all") != NONE || (name != NONE && says_more),
            several => several.split('/').all(|one| KNOWN.contains(&one)),
        },
        "delete_experiment" | "test_condition_balance" | "test_consistency_rules" => name != NONE,
        _ => true,
    }
}

/// Whether the bot would ask “did you mean X?” and, answered with X, propose the change without the rest of the words.
fn one_press_away(found: &Found) -> bool {
    let name = of(found, "experiment");
    if of(found, "status") == "scheduled" && of(found, "start_on") == NONE {
        return false; // asked for the moment
    }
    let with_known = || {
        let mut found = found.clone();
        found.insert("experiment".to_owned(), KNOWN[0].to_owned());
        changes(&found)
    };
    CHANGES.contains(&of(found, "action"))
        && !KNOWN.contains(&name)
        && KNOWN.iter().any(|known| name.contains(known))
        && with_known()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => NONE.to_owned(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join("/"),
        Value::String(words) => words.trim().trim_end_matches(['.', '?', '!']).to_lowercase(),
        other => other.to_string(),
    }
}

fn same(should: &Value, found: &str) -> bool {
    match should.as_str().and_then(|should| should.strip_prefix('~')) {
        Some(pattern) => Regex::new(&format!("(?i){pattern}")).unwrap().is_match(found).unwrap(),
        None => text(should) == found.to_lowercase(),
    }
}

/// Whether this outcome is what was understood.
fn fits(want: &Value, found: &Found) -> bool {
    let one = of(found, "requests") == "1" || of(found, "requests") == NONE;
    if want["no_change"] == json!(true) {
        return !changes(found) && one;
    }
    if want["asks"] == json!(true) {
        return one && (of(found, "intent") == "unclear" || (of(found, "action") != NONE && !changes(found)));
    }
    let is = |what: &str| want.get(what).is_none_or(|should| should == "*" || same(should, of(found, what)));
    let action = want["action"].as_str().unwrap_or(NONE) == of(found, "action");
    let tool = match (want.get("tool"), want.get("action")) {
        (Some(tool), _) => tool == "*" || same(tool, of(found, "tool")),
        (None, None) => of(found, "tool") == NONE,
        (None, Some(_)) => true,
    };
    let steps = want["steps"] == "*"
        || want["steps"].as_u64().unwrap_or(1).to_string() == of(found, "requests").replace(NONE, "1");
    let parameters = want["parameters"].as_object().into_iter().flatten();
    is("intent")
        && is("capability")
        && action
        && tool
        && steps
        && parameters.fold(true, |all, (name, should)| all && same(should, of(found, name)))
}

/// What a file comes to: accepted, safe, and each that is not, in words.
async fn score(file: &str) -> (usize, usize, Vec<String>) {
    let read = |path: String| -> Vec<Value> {
        serde_json::from_str(&std::fs::read_to_string(Path::new("tests/fixtures/words").join(path)).unwrap()).unwrap()
    };
    let (rows, about) = (read(format!("{file}.json")), read(format!("{file}.meta.json")));
    assert_eq!(rows.len(), about.len());
    let (mut accepted, mut safe, mut wrong) = (0, 0, Vec::new());
    for ((row, about), found) in rows.iter().zip(&about).zip(understood(&rows).await) {
        let outcomes = about["accept"].as_array().unwrap();
        let ok = outcomes.iter().any(|want| fits(want, &found));
        let in_full = outcomes
            .iter()
            .any(|want| want.get("asks").is_none() && want.get("no_change").is_none() && fits(want, &found));
        let harms = about["safety"] == json!(true) && ok && !in_full && one_press_away(&found);
        accepted += usize::from(ok);
        safe += usize::from(about["safety"] == json!(true) && ok && !harms);
        if !ok || harms {
            let kept: Vec<_> =
                found.iter().filter(|(_, is)| *is != NONE).map(|(what, is)| format!("{what}={is}")).collect();
            wrong.push(format!("{} {}\n  {}", about["id"], row["said"], kept.join(", ")));
        }
        assert!(ok || !changes(&found), "a wrong change is proposed: {} {found:?}", row["said"]);
    }
    (accepted, safe, wrong)
}

/// The first of these is what the phrases were written with; the second was written by somebody who did not know them.
#[tokio::test(flavor = "multi_thread")]
async fn what_people_say_is_understood_and_nothing_said_is_dropped() {
    for (file, expected) in [("dev", (120, 45)), ("second", (117, 45))] {
        let (accepted, safe, wrong) = score(file).await;
        let wrong = wrong.join("\n");
        assert_eq!((accepted, safe), expected, "{file}: of 120, and of 45 where a wrong reading would harm:\n{wrong}");
    }
}
