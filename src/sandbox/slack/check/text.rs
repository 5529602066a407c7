//! Checks of strings, text objects and lists.

use serde_json::Value;

use super::{Checked, problem};

/// Checks an optional string with at most `most` characters.
pub(super) fn string(at: &str, value: &Value, most: usize) -> Checked {
    match value {
        Value::Null => Ok(()),
        Value::String(text) if text.chars().count() <= most => Ok(()),
        Value::String(_) => Err(problem(at, format_args!("must be no more than {most} characters"))),
        _ => Err(problem(at, "must be a string")),
    }
}

/// Checks a required string with 1 to `most` characters.
pub(super) fn required_string(at: &str, value: &Value, most: usize) -> Checked {
    match value.as_str() {
        Some("") => Err(problem(at, "must be more than 0 characters")),
        Some(_) => string(at, value, most),
        None => Err(problem(at, "missing required field")),
    }
}

/// Checks a text object with 1 to `most` characters.
pub(super) fn text(at: &str, value: &Value, most: usize) -> Checked {
    let kind = value["type"].as_str().unwrap_or_default();
    if !value.is_object() {
        return Err(problem(at, "missing required field"));
    }
    if kind != "mrkdwn" && kind != "plain_text" {
        return Err(problem(&format!("{at}/type"), format_args!("unsupported type: {kind}")));
    }
    required_string(&format!("{at}/text"), &value["text"], most)
}

/// Checks a text object of type `plain_text`.
pub(super) fn plain_text(at: &str, value: &Value, most: usize) -> Checked {
    if value.is_object() && value["type"] != "plain_text" {
        return Err(problem(&format!("{at}/type"), "must be plain_text"));
    }
    text(at, value, most)
}

/// Checks an optional text object of type `plain_text`.
pub(super) fn optional_plain_text(at: &str, value: &Value, most: usize) -> Checked {
    if value.is_null() { Ok(()) } else { plain_text(at, value, most) }
}

/// Checks a list with `least` to `most` items.
pub(super) fn list<'a>(at: &str, value: &'a Value, least: usize, most: usize) -> Result<&'a [Value], super::Problem> {
    match value.as_array() {
        None => Err(problem(at, "missing required field")),
        Some(items) if items.len() < least => Err(problem(at, format_args!("must provide at least {least} items"))),
        Some(items) if items.len() > most => Err(problem(at, format_args!("no more than {most} items allowed"))),
        Some(items) => Ok(items),
    }
}

/// Checks that the values of the field `name` are unique in a list. Items without it are ignored.
pub(super) fn unique(at: &str, items: &[Value], name: &str) -> Checked {
    let mut seen = std::collections::BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        if let Some(value) = item[name].as_str().filter(|value| !value.is_empty())
            && !seen.insert(value)
        {
            return Err(problem(&format!("{at}/{index}/{name}"), format_args!("{name} \"{value}\" already exists")));
        }
    }
    Ok(())
}
