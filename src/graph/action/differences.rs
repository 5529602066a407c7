//! The differences between two readings of a target.
//!
//! When an execution is refused because its target changed, the refusal must name the change. An
//! action that knows its fields describes it itself ([`super::ActionKind::differences`]); the
//! default here works for any two readings.

use countersign_core::reply::{Fact, Text};
use serde_json::{Map, Value};

/// The maximum length of a value that is shown in full, in characters.
const MAX_VALUE_CHARS: usize = 300;

/// Returns one fact for each value that differs, with the value shown and the value found.
pub fn differences(shown: &Value, found: &Value) -> Vec<Fact> {
    let mut facts = Vec::new();
    walk(&mut Vec::new(), shown, found, &mut facts);
    facts
}

/// Returns a difference as a line of a card.
pub fn difference(label: impl Into<String>, shown: impl Into<Text>, found: impl Into<Text>) -> Fact {
    Fact { label: label.into(), before: Some(shown.into()), after: found.into() }
}

fn walk(path: &mut Vec<String>, shown: &Value, found: &Value, facts: &mut Vec<Fact>) {
    match (shown, found) {
        (one, other) if one == other => {}
        (Value::Object(one), Value::Object(other)) => {
            for key in keys(one, other) {
                path.push(key.clone());
                let read = |map: &Map<_, _>| map.get(&key).cloned().unwrap_or_default();
                walk(path, &read(one), &read(other), facts);
                path.pop();
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() && one.iter().any(is_nested) => {
            for (nth, (one, other)) in one.iter().zip(other).enumerate() {
                path.push((nth + 1).to_string());
                walk(path, one, other, facts);
                path.pop();
            }
        }
        (one, other) => facts.push(difference(label(path), words(one), words(other))),
    }
}

/// Returns the keys of both objects: those of the first one, then those that only the second one
/// has.
fn keys(one: &Map<String, Value>, other: &Map<String, Value>) -> Vec<String> {
    let added = other.keys().filter(|key| !one.contains_key(*key));
    one.keys().chain(added).cloned().collect()
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// Converts a path to words for people: `updated_at` becomes “Updated at”, and a nested value
/// becomes, for example, “Conditions 2 weight”.
fn label(path: &[String]) -> String {
    let words = path.join(" ").replace('_', " ");
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => "Everything".to_owned(),
    }
}

fn words(value: &Value) -> String {
    let words = match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if !items.iter().any(is_nested) => {
            items.iter().map(words_of_one).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    match words.char_indices().nth(MAX_VALUE_CHARS) {
        Some((cut, _)) => format!("{}… ({} characters)", &words[..cut], words.chars().count()),
        None => words,
    }
}

fn words_of_one(value: &Value) -> String {
    value.as_str().map_or_else(|| words(value), str::to_owned)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    fn described(shown: &Value, found: &Value) -> String {
        let line = |fact: Fact| {
            format!("{}: {} → {}", fact.label, fact.before.unwrap_or_default().words(), fact.after.words())
        };
        differences(shown, found).into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_value_that_differs_is_listed_once() {
        let shown = json!({
            "status": "inactive", "updated_at": "Monday", "tags": ["a", "b"], "open": true, "same": { "x": 1 },
            "conditions": [{ "code": "control", "weight": 50 }, { "code": "variant", "weight": 50 }], "gone": "was here",
        });
        let found = json!({
            "status": "enrolling", "updated_at": "Tuesday", "tags": ["a"], "open": false, "same": { "x": 1 },
            "conditions": [{ "code": "control", "weight": 70 }, { "code": "variant", "weight": 30 }], "new": 7,
        });
        assert_snapshot!(described(&shown, &found), @"
        Conditions 1 weight: 50 → 70
        Conditions 2 weight: 50 → 30
        Gone: was here → nothing
        Open: yes → no
        Status: inactive → enrolling
        Tags: a, b → a
        Updated at: Monday → Tuesday
        New: nothing → 7
        ");
    }

    #[test]
    fn equal_readings_have_no_differences() {
        let reading = json!({ "status": "inactive", "points": [["a"], ["b"]] });
        assert!(differences(&reading, &reading).is_empty());
        assert_snapshot!(described(&json!(1), &json!("1")), @"Everything: 1 → 1");
    }

    #[test]
    fn a_long_value_is_cut_and_its_length_shown() {
        let long = "ä".repeat(1000);
        assert!(described(&json!({ "text": long }), &json!({})).contains("… (1000 characters) → nothing"));
    }
}
