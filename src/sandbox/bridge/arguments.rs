//! The check of arguments against the schema of a tool, with the messages of the validator that the
//! bridge uses.

use serde_json::{Value, json};

use super::failure::Failure;

/// A problem with one argument.
#[derive(Clone, Debug)]
pub(crate) struct Issue {
    kind: &'static str,
    place: Vec<Value>,
    message: String,
    input: Value,
    context: Option<Value>,
}

/// Returns all violations of the schema in `arguments`.
pub(crate) fn issues(arguments: &Value, schema: &Value) -> Vec<Issue> {
    let mut found = Vec::new();
    check(arguments, schema, schema, &mut Vec::new(), &mut found);
    found
}

/// Returns the refusal of a REST route: all problems, in the format of the framework.
pub(crate) fn refuse_body(issues: &[Issue]) -> Failure {
    let detail: Vec<Value> = issues
        .iter()
        .map(|issue| {
            let place: Vec<Value> = std::iter::once(json!("body")).chain(issue.place.iter().cloned()).collect();
            let mut one = json!({ "type": issue.kind, "loc": place, "msg": issue.message, "input": issue.input });
            if let Some(context) = &issue.context {
                one["ctx"] = context.clone();
            }
            one
        })
        .collect();
    Failure::bare(422, json!({ "detail": detail }))
}

/// Returns the refusal of a tool: the first problem, in an envelope.
pub(crate) fn refuse_call(issue: &Issue) -> Failure {
    let words = |part: &Value| part.as_str().map_or_else(|| part.to_string(), str::to_owned);
    let place: Vec<String> = issue.place.iter().map(words).collect();
    Failure::input(issue.message.clone()).at(place.join(".")).kind(issue.kind)
}

fn check(value: &Value, schema: &Value, root: &Value, place: &mut Vec<Value>, found: &mut Vec<Issue>) {
    let schema = match schema["$ref"].as_str() {
        Some(link) => root.pointer(link.trim_start_matches('#')).unwrap_or(&Value::Null),
        None => schema,
    };
    if let Some(choices) = schema["anyOf"].as_array() {
        if value.is_null() && choices.iter().any(|choice| choice["type"] == "null") {
            return;
        }
        if let Some(choice) = choices.iter().find(|choice| choice["type"] != "null") {
            check(value, choice, root, place, found);
        }
        return;
    }
    let mut refuse = |kind, message: String, context: Option<Value>| {
        found.push(Issue { kind, place: place.clone(), message, input: value.clone(), context });
    };
    match schema["type"].as_str() {
        Some("object") => {
            let Some(fields) = value.as_object() else {
                return refuse("dict_type", "Input should be a valid dictionary".to_owned(), None);
            };
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !fields.contains_key(name) {
                    let place = place.iter().cloned().chain([json!(name)]).collect();
                    let message = "Field required".to_owned();
                    found.push(Issue { kind: "missing", place, message, input: value.clone(), context: None });
                }
            }
            for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(value) = fields.get(name) {
                    place.push(json!(name));
                    check(value, inner, root, place, found);
                    place.pop();
                }
            }
        }
        Some("array") => {
            let Some(items) = value.as_array() else {
                return refuse("list_type", "Input should be a valid list".to_owned(), None);
            };
            if let Some(least) = schema["minItems"].as_u64().filter(|least| (items.len() as u64) < *least) {
                let plural = if least == 1 { "item" } else { "items" };
                let message =
                    format!("List should have at least {least} {plural} after validation, not {}", items.len());
                return refuse(
                    "too_short",
                    message,
                    Some(json!({ "min_length": least, "actual_length": items.len() })),
                );
            }
            if let Some(most) = schema["maxItems"].as_u64().filter(|most| (items.len() as u64) > *most) {
                let message = format!("List should have at most {most} items after validation, not {}", items.len());
                return refuse("too_long", message, Some(json!({ "max_length": most, "actual_length": items.len() })));
            }
            for (at, item) in items.iter().enumerate() {
                place.push(json!(at));
                let inner = if schema["items"].is_null() { &schema["prefixItems"][at] } else { &schema["items"] };
                check(item, inner, root, place, found);
                place.pop();
            }
        }
        Some("string") => {
            let Some(text) = value.as_str() else {
                return refuse("string_type", "Input should be a valid string".to_owned(), None);
            };
            let length = text.chars().count() as u64;
            let plural = |count: u64| if count == 1 { "character" } else { "characters" };
            if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
                let message = format!("String should have at least {least} {}", plural(least));
                refuse("string_too_short", message, Some(json!({ "min_length": least })));
            } else if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
                let message = format!("String should have at most {most} {}", plural(most));
                refuse("string_too_long", message, Some(json!({ "max_length": most })));
            }
        }
        Some("boolean") if !value.is_boolean() => {
            refuse("bool_parsing", "Input should be a valid boolean, unable to interpret input".to_owned(), None);
        }
        Some(kind @ ("number" | "integer")) => {
            if let Err((kind, message)) = number(value, kind == "integer") {
                return refuse(kind, message.to_owned(), None);
            }
            let given = as_number(value).unwrap_or_default();
            for (key, name, kind, words, fits) in [
                ("minimum", "ge", "greater_than_equal", "greater than or equal to", given >= bound(schema, "minimum")),
                ("exclusiveMinimum", "gt", "greater_than", "greater than", given > bound(schema, "exclusiveMinimum")),
                ("maximum", "le", "less_than_equal", "less than or equal to", given <= bound(schema, "maximum")),
            ] {
                if !schema[key].is_null() && !fits {
                    let limit = bound(schema, key);
                    refuse(kind, format!("Input should be {words} {limit}"), Some(json!({ name: schema[key] })));
                }
            }
        }
        _ => {}
    }
}

fn bound(schema: &Value, key: &str) -> f64 {
    schema[key].as_f64().unwrap_or_default()
}

/// Returns a number. As in the bridge, it may be in a text.
pub(crate) fn as_number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()))?;
    Some(number).filter(|number: &f64| number.is_finite())
}

fn number(value: &Value, whole: bool) -> Result<(), (&'static str, &'static str)> {
    let parsed = as_number(value);
    match (value, whole, parsed) {
        (Value::String(_), true, None) => {
            Err(("int_parsing", "Input should be a valid integer, unable to parse string as an integer"))
        }
        (Value::String(_), false, None) => {
            Err(("float_parsing", "Input should be a valid number, unable to parse string as a number"))
        }
        (_, true, None) => Err(("int_type", "Input should be a valid integer")),
        (_, false, None) => Err(("float_type", "Input should be a valid number")),
        (_, true, Some(number)) if number.fract() != 0.0 => {
            Err(("int_from_float", "Input should be a valid integer, got a number with a fractional part"))
        }
        _ => Ok(()),
    }
}

/// Returns a text argument, if there is one.
pub(crate) fn text<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments[name].as_str()
}

/// Returns the refusal of a value that conforms to the schema but violates another rule.
pub(crate) fn value_error(field: &str, message: &str) -> Failure {
    Failure::input(format!("Value error, {message}")).at(field).kind("value_error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_problem_is_reported_with_its_place() {
        let schema = json!({
            "$defs": { "C": { "type": "object", "properties": { "size": { "type": "integer", "minimum": 1 } } } },
            "type": "object", "required": ["id"],
            "properties": { "id": { "type": "string" }, "cohort": { "$ref": "#/$defs/C" } },
        });
        let found = issues(&json!({ "cohort": { "size": 0 } }), &schema);
        assert_eq!(found.len(), 2);
        let refused = refuse_call(&found[1]);
        assert_eq!(refused.message, "Input should be greater than or equal to 1");
        assert_eq!(refused.details().unwrap()[0]["field"], "cohort.size");
        assert!(issues(&json!({ "id": "a", "cohort": { "size": 2 } }), &schema).is_empty());
    }
}
