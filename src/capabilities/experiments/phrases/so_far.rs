//! A new experiment as far as it is described, in one line: `“Foo” in assign-prog, 60/40`.

use serde_json::{Map, Value};

/// Returns the known parameters in words; `None` if there are none. Every parameter is named.
pub(super) fn words(params: &Map<String, Value>) -> Option<String> {
    let given = |key: &str| params.get(key).filter(|value| !is_empty(value));
    let name = given("name").map_or("a new experiment".to_owned(), |name| format!("“{}”", plain(name)));
    let context = given("context").map(|context| format!(" in {}", plain(context)));
    let mut parts = vec![format!("{name}{}", context.unwrap_or_default())];
    for (key, value) in
        params.iter().filter(|(key, value)| !matches!(key.as_str(), "name" | "context") && !is_empty(value))
    {
        let value = plain(value);
        parts.push(match key.as_str() {
            "decision_points" => format!("at {value}"),
            "copy_of" => format!("a copy of “{value}”"),
            "conditions_of" => format!("the conditions of “{value}”"),
            "points_of" => format!("the decision points of “{value}”"),
            "site" => format!("site {value}"),
            "target" => format!("target {value}"),
            "conditions" => format!("conditions {value}"),
            "weights" => value,
            "description" => format!("“{value}”"),
            "start_on" => format!("starts {value}"),
            "end_on" => format!("ends {value}"),
            "ends_after_users" => format!("ends after {value} users"),
            "ends_after_groups" => format!("ends after {value} groups"),
            "inclusion" => format!("includes {value}"),
            "exclusion" => format!("excludes {value}"),
            "unit" => format!("assigned by {value}"),
            "tags" => format!("tags {value}"),
            "beyond_context" => "new to the context".to_owned(),
            other => format!("{} {value}", other.replace('_', " ")),
        });
    }
    let has_any = params.values().any(|value| !is_empty(value));
    has_any.then(|| parts.join(", "))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => match (fields.get("code"), fields.get("weight")) {
            (Some(code), Some(weight)) => format!("{} {}%", plain(code), plain(weight)),
            (Some(code), None) => plain(code),
            _ => {
                let all = fields.iter().map(|(key, value)| format!("{key} {}", plain(value)));
                all.collect::<Vec<_>>().join(", ")
            }
        },
        Value::Number(number) => match number.as_f64() {
            Some(number) => number.to_string(),
            None => number.to_string(),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::tests::params, words};

    #[test]
    fn every_known_parameter_is_named() {
        let given = json!({
            "name": "Foo", "context": "assign-prog", "conditions": ["control", "hints"], "weights": "60/40",
            "ends_after_users": 200, "exclusion": ["u1", "class 5B"], "consistency": "experiment",
        });
        assert_eq!(
            words(&params(given)).as_deref(),
            Some(
                "“Foo” in assign-prog, conditions control, hints, consistency experiment, ends after 200 users, \
                 excludes u1, class 5B, 60/40"
            )
        );
        assert_eq!(
            words(&params(json!({ "context": "mathstream" }))).as_deref(),
            Some("a new experiment in mathstream")
        );
        let weights = json!({ "name": "Foo", "weights": { "control": 30.0, "variant": 70.0 } });
        assert_eq!(words(&params(weights)).as_deref(), Some("“Foo”, control 30, variant 70"));
        assert_eq!(words(&params(json!({}))), None);
    }
}
