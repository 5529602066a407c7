//! The `state.values` of a view or message, from the values that the page or a test fills in.
//!
//! Values can be in Slack's format (`{block: {action: {"type": …, "value": …}}}`) or plain: by
//! block and action, by block, or by the label of the field. An option can be given by its value or
//! its label.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::world::message::{interactive, text_of};

/// Returns the values of all fields in a layout: the given ones, or else those before, or else the
/// initial ones.
pub(super) fn filled_in(blocks: &[Value], given: &Value, before: &Value) -> Value {
    let mut values = Map::new();
    for (block_id, element) in interactive(blocks) {
        let kind = text_of(&element["type"]);
        let Some((key, _)) = keys(&kind) else { continue };
        let action_id = text_of(&element["action_id"]);
        let label = blocks.iter().find(|b| b["block_id"] == block_id.as_str()).map(|b| text_of(&b["label"]));
        let value = find(given, &block_id, &action_id, label.as_deref()).map_or_else(
            || {
                let kept = &before[&block_id][&action_id];
                if kept.is_object() { kept.clone() } else { json!({ "type": kind, key: initial(&element) }) }
            },
            |value| wrapped(&element, value),
        );
        let block = values.entry(block_id).or_insert_with(|| json!({}));
        block[action_id] = value;
    }
    Value::Object(values)
}

/// Returns the errors for empty required fields, which Slack's clients show without asking the app.
pub(super) fn missing(blocks: &[Value], values: &Value) -> BTreeMap<String, String> {
    let mut errors = BTreeMap::new();
    for block in blocks.iter().filter(|block| block["type"] == "input" && block["optional"] != true) {
        let (block_id, action_id) = (text_of(&block["block_id"]), text_of(&block["element"]["action_id"]));
        let kind = text_of(&block["element"]["type"]);
        let Some((key, _)) = keys(&kind) else { continue };
        let empty = match &values[&block_id][&action_id][key] {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(several) => several.is_empty() && kind != "checkboxes",
            _ => false,
        };
        if empty {
            errors.insert(block_id, "Please complete this required field.".to_owned());
        }
    }
    errors
}

/// Returns the `actions` entry for an element that a person used, with the chosen value.
pub(super) fn action(block_id: &str, element: &Value, chosen: &Value, action_ts: &str) -> Value {
    let kind = text_of(&element["type"]);
    let mut action = json!({
        "type": kind, "block_id": block_id, "action_id": element["action_id"], "action_ts": action_ts,
    });
    for kept in ["text", "value", "style", "placeholder", "url", "confirm"] {
        if !element[kept].is_null() {
            action[kept] = element[kept].clone();
        }
    }
    if kind == "feedback_buttons" {
        let pressed = ["positive_button", "negative_button"].map(|name| &element[name]);
        let pressed =
            pressed.into_iter().find(|button| button["value"] == *chosen).unwrap_or(&element["positive_button"]);
        action["value"] = pressed["value"].clone();
        action["text"] = pressed["text"].clone();
    }
    if let Some((key, _)) = keys(&kind) {
        action[key] = wrapped(element, chosen)[key].clone();
    }
    action
}

/// Returns the keys of the value and the initial value of a kind of element; `None` for kinds
/// without a value.
fn keys(kind: &str) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        "plain_text_input" | "email_text_input" | "url_text_input" | "number_input" => ("value", "initial_value"),
        "rich_text_input" => ("rich_text_value", "initial_value"),
        "static_select" | "external_select" | "radio_buttons" | "overflow" => ("selected_option", "initial_option"),
        "multi_static_select" | "multi_external_select" | "checkboxes" => ("selected_options", "initial_options"),
        "users_select" => ("selected_user", "initial_user"),
        "multi_users_select" => ("selected_users", "initial_users"),
        "channels_select" => ("selected_channel", "initial_channel"),
        "multi_channels_select" => ("selected_channels", "initial_channels"),
        "conversations_select" => ("selected_conversation", "initial_conversation"),
        "multi_conversations_select" => ("selected_conversations", "initial_conversations"),
        "datepicker" => ("selected_date", "initial_date"),
        "timepicker" => ("selected_time", "initial_time"),
        "datetimepicker" => ("selected_date_time", "initial_date_time"),
        _ => return None,
    })
}

fn initial(element: &Value) -> Value {
    let kind = text_of(&element["type"]);
    let Some((key, initial)) = keys(&kind) else { return Value::Null };
    match &element[initial] {
        Value::Null if key == "selected_options" => json!([]),
        value => value.clone(),
    }
}

fn find<'a>(given: &'a Value, block_id: &str, action_id: &str, label: Option<&str>) -> Option<&'a Value> {
    let by_block = given.get(block_id).or_else(|| given.get(label.filter(|label| !label.is_empty())?));
    match by_block {
        Some(block) if block.get(action_id).is_some() => block.get(action_id),
        // An object is either the value itself or contains values of other actions of the block.
        Some(Value::Object(object)) if !object.contains_key("type") && !object.contains_key("value") => None,
        Some(value) => Some(value),
        None => given.get(action_id),
    }
}

fn wrapped(element: &Value, value: &Value) -> Value {
    let kind = text_of(&element["type"]);
    let Some((key, _)) = keys(&kind) else { return value.clone() };
    let plain = match value.get(key) {
        Some(inner) => inner,
        None => value,
    };
    let options: Vec<&Value> = option_lists(element).collect();
    let option = |wanted: &Value| {
        let text = wanted["value"].as_str().or_else(|| wanted.as_str()).unwrap_or_default();
        let shown = |option: &&&Value| option["value"] == text || text_of(&option["text"]) == text;
        options.iter().find(shown).map_or_else(|| wanted.clone(), |option| (*option).clone())
    };
    let chosen = match (key, plain) {
        (_, Value::Null) => Value::Null,
        ("selected_option", wanted) => option(wanted),
        ("selected_options", Value::Array(wanted)) => wanted.iter().map(option).collect(),
        (_, Value::Number(number)) if key == "value" => json!(number.to_string()),
        (_, plain) => plain.clone(),
    };
    json!({ "type": kind, key: chosen })
}

fn option_lists(element: &Value) -> impl Iterator<Item = &Value> {
    let grouped = element["option_groups"].as_array().into_iter().flatten();
    let grouped = grouped.flat_map(|group| group["options"].as_array().into_iter().flatten());
    element["options"].as_array().into_iter().flatten().chain(grouped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Vec<Value> {
        let option =
            |value: &str| json!({ "text": { "type": "plain_text", "text": value.to_uppercase() }, "value": value });
        vec![
            json!({ "type": "input", "block_id": "why", "label": { "type": "plain_text", "text": "Reason" },
                    "element": { "type": "plain_text_input", "action_id": "text" } }),
            json!({ "type": "input", "block_id": "how", "optional": true, "label": { "type": "plain_text", "text": "How" },
                    "element": { "type": "static_select", "action_id": "pick", "options": [option("a"), option("b")] } }),
        ]
    }

    #[test]
    fn values_can_be_plain_or_in_slacks_format() {
        let plain = filled_in(&form(), &json!({ "Reason": "late", "how": "B" }), &Value::Null);
        assert_eq!(plain["why"]["text"], json!({ "type": "plain_text_input", "value": "late" }));
        assert_eq!(plain["how"]["pick"]["selected_option"]["value"], "b");
        assert_eq!(filled_in(&form(), &plain, &Value::Null), plain);
    }

    #[test]
    fn an_empty_required_field_is_an_error() {
        let values = filled_in(
            &form(),
            &json!({ "why": { "text": { "type": "plain_text_input", "value": "" } } }),
            &Value::Null,
        );
        assert_eq!(missing(&form(), &values).into_keys().collect::<Vec<_>>(), ["why"]);
    }
}
