//! The differences between the state on a card and the present one, in the words of the card.
//!
//! They are found by comparing the preconditions of the actions, which have only a few keys, each with
//! its own wording.

use countersign_core::reply::Fact;
use countersign_graph::action::{ActionRecord, difference, differences};
use serde_json::{Map, Value, json};

use super::{dates, fields::Field, surroundings::SURROUNDINGS};
use crate::upgrade::status::Status;

/// Returns one line for each difference. The status comes first, the time of the last change last.
pub(crate) fn differences_in_words(record: &ActionRecord, found: &Value) -> Vec<Fact> {
    compare(&record.parameters, &record.preconditions, found)
}

/// Compares two states. The parameters have the names of the experiments.
fn compare(parameters: &Value, shown: &Value, found: &Value) -> Vec<Fact> {
    let (Some(one), Some(other)) = (shown.as_object(), found.as_object()) else { return differences(shown, found) };
    let mut facts = Vec::new();
    let mut rest = (Map::new(), Map::new());
    for key in one.keys().chain(other.keys().filter(|key| !one.contains_key(*key))) {
        let (before, now) = (one.get(key).unwrap_or(&Value::Null), other.get(key).unwrap_or(&Value::Null));
        if before == now {
            continue;
        }
        match key.as_str() {
            "status" => facts.insert(0, difference("Status", status(before), status(now))),
            "statuses" => facts.extend(status_differences(parameters, before, now)),
            "before" => facts.extend(field_differences(before, now)),
            "rest" | SURROUNDINGS => facts.extend(other_field_differences(before, now)),
            "start_on" => facts.push(difference("Starts", time(before), time(now))),
            "updated_at" => facts.push(difference("Last changed", time(before), time(now))),
            "version_number" => {} // says no more than the time of the change
            _ => {
                rest.0.insert(key.clone(), before.clone());
                rest.1.insert(key.clone(), now.clone());
            }
        }
    }
    facts.extend(differences(&json!(rest.0), &json!(rest.1)));
    facts.sort_by_key(|fact| (fact.label == "Last changed", fact.label != "Status"));
    if !facts.is_empty() && facts.iter().all(|fact| fact.label == "Last changed") {
        facts.splice(0..0, unchanged_fields(shown));
    }
    facts
}

/// Returns the differences in what the action does not change, which is stored as words.
fn other_field_differences(before: &Value, now: &Value) -> Vec<Fact> {
    let words = |all: &Value, label: &str| all[label].as_str().unwrap_or("none").to_owned();
    let labels = before.as_object().into_iter().flat_map(Map::keys);
    let differs = labels.filter(|label| before[label.as_str()] != now[label.as_str()]);
    differs.map(|label| difference(label.as_str(), words(before, label), words(now, label))).collect()
}

/// Returns a line for each field that is known to be unchanged. It is used if only the time of the last
/// change differs.
fn unchanged_fields(shown: &Value) -> Vec<Fact> {
    let status = shown["rest"]["Status"].as_str().map(|status| difference("Status", status, "the same"));
    let fields = Field::ALL.into_iter().filter_map(|field| {
        let before = shown["before"].get(field.label())?;
        Some(difference(field.label(), field.words(before), "the same"))
    });
    status.into_iter().chain(fields).collect()
}

/// Returns the differences in the fields that an update changes, in the words of its card.
fn field_differences(before: &Value, now: &Value) -> Vec<Fact> {
    let fields = Field::ALL.into_iter().filter(|field| before[field.label()] != now[field.label()]);
    let words = |field: Field, all: &Value| field.words(&all[field.label()]);
    fields.map(|field| difference(field.label(), words(field, before), words(field, now))).collect()
}

/// Returns a line for each experiment of a bulk change whose status differs, in the order of the card.
fn status_differences(parameters: &Value, before: &Value, now: &Value) -> Vec<Fact> {
    let difference_of = |experiment: &Value| {
        let (id, name) = (experiment["id"].as_str()?, experiment["name"].as_str()?);
        let label = format!("Status of “{name}”");
        (before[id] != now[id]).then(|| difference(label, status(&before[id]), status(&now[id])))
    };
    parameters["experiments"].as_array().into_iter().flatten().filter_map(difference_of).collect()
}

fn status(stored: &Value) -> String {
    match serde_json::from_value::<Option<Status>>(stored.clone()) {
        Ok(Some(status)) => status.display().to_owned(),
        Ok(None) => "gone".to_owned(),
        Err(_) => stored.as_str().unwrap_or_default().to_owned(),
    }
}

fn time(stored: &Value) -> String {
    stored.as_str().map_or_else(|| "nothing".to_owned(), dates::moment_in_words)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn lines(shown: &Value, found: &Value) -> String {
        in_lines(compare(&json!({}), shown, found))
    }

    fn in_lines(facts: Vec<Fact>) -> String {
        let line = |fact: Fact| format!("{}: {} → {}", fact.label, fact.before.unwrap().words(), fact.after.words());
        facts.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn changed_weights_and_a_start_are_shown() {
        let conditions = |weights: [f64; 2]| json!([{ "code": "control", "weight": weights[0] }, { "code": "variant", "weight": weights[1] }]);
        let shown = json!({
            "updated_at": "2026-11-20T15:51:49.134Z", "version_number": 3, "status": "inactive",
            "before": { "Conditions": conditions([50.0, 50.0]), "Tags": ["a"] },
        });
        let found = json!({
            "updated_at": "2026-11-20T16:02:00.000Z", "version_number": 4, "status": "enrolling",
            "before": { "Conditions": conditions([70.0, 30.0]), "Tags": ["a"] },
        });
        assert_snapshot!(lines(&shown, &found), @"
        Status: inactive → running
        Conditions: control 50%, variant 50% → control 70%, variant 30%
        Last changed: 2026-11-20 15:51 UTC → 2026-11-20 16:02 UTC
        ");
        assert_eq!(lines(&shown, &shown), "");
    }

    #[test]
    fn differences_in_other_fields_are_shown() {
        let state = |status: &str, points: &str, updated_at: &str| {
            json!({
                "updated_at": updated_at,
                "before": { "Name": "Math Hints" },
                "rest": { "Decision points": points, "Status": status, "Tags": "none" },
            })
        };
        let shown = state("running", "S / one", "2026-11-20T21:12:00.000Z");
        assert_snapshot!(lines(&shown, &state("paused", "S / one, S / two", "2026-11-20T21:13:00.000Z")), @"
        Status: running → paused
        Decision points: S / one → S / one, S / two
        Last changed: 2026-11-20 21:12 UTC → 2026-11-20 21:13 UTC
        ");
        assert_snapshot!(lines(&shown, &state("running", "S / one", "2026-11-20T21:13:00.000Z")), @"
        Status: running → the same
        Name: Math Hints → the same
        Last changed: 2026-11-20 21:12 UTC → 2026-11-20 21:13 UTC
        ");
    }

    #[test]
    fn one_of_several_has_changed_and_one_is_gone() {
        let named = |(id, name): (&str, &str)| json!({ "id": id, "name": name });
        let experiments = [("2", "Second Pilot"), ("1", "Pilot"), ("3", "Math Hints")].map(named);
        let shown = json!({ "statuses": { "1": "inactive", "2": "inactive", "3": "inactive" } });
        let found = json!({ "statuses": { "1": "enrolling", "2": null, "3": "inactive" } });
        assert_snapshot!(in_lines(compare(&json!({ "experiments": experiments }), &shown, &found)), @"
        Status of “Second Pilot”: inactive → gone
        Status of “Pilot”: inactive → running
        ");
    }

    #[test]
    fn differences_without_their_own_wording_are_shown() {
        let shown = json!({ "status": "inactive", "conditions": "control 50%, variant 50%", "start_on": null });
        let found = json!({ "status": "inactive", "conditions": "control 60%, variant 40%", "start_on": "2027-01-15T09:00:00.000Z" });
        assert_snapshot!(lines(&shown, &found), @"
        Starts: nothing → 2027-01-15 09:00 UTC
        Conditions: control 50%, variant 50% → control 60%, variant 40%
        ");
    }
}
