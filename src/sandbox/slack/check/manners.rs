//! Rules for content that Slack accepts but a good app does not send. Tests fail on such content.

use serde_json::Value;

use super::{Checked, Problem};

/// The maximum length of a text that Slack recommends, in characters. It accepts longer ones.
const TEXT: usize = 4_000;

/// The prefixes of mentions that notify groups of people.
const BROADCASTS: [&str; 4] = ["<!channel", "<!here", "<!everyone", "<!subteam"];

fn bad(words: impl std::fmt::Display) -> Problem {
    Problem { error: "bad_manners", reason: words.to_string() }
}

/// Checks the body of a message: a layout must have a fallback text, the text must not be too long,
/// and nothing may notify groups of people.
pub(in crate::slack) fn message_text(body: &Value) -> Checked {
    let text = body["text"].as_str().unwrap_or_default();
    let blocks = body["blocks"].as_array().map_or(0, Vec::len);
    if blocks > 0 && text.trim().is_empty() {
        return Err(bad("a layout without `text`: notifications and screen readers have nothing to say"));
    }
    let length = text.chars().count();
    if length > TEXT {
        return Err(bad(format_args!("`text` has {length} characters; Slack recommends at most {TEXT}")));
    }
    no_broadcast("", body)
}

/// Checks that no text in the value notifies groups of people. Text in which Slack parses no
/// mentions may contain anything.
pub(in crate::slack) fn no_broadcast(at: &str, value: &Value) -> Checked {
    match value {
        Value::String(text) => match BROADCASTS.iter().find(|token| text.contains(**token)) {
            Some(token) => Err(bad(format_args!("`{token}` calls everybody [json-pointer:{at}]"))),
            None => Ok(()),
        },
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(n, item)| no_broadcast(&format!("{at}/{n}"), item))
        }
        Value::Object(fields) => {
            let unparsed = matches!(value["type"].as_str(), Some("plain_text" | "raw_text" | "text"));
            let parsed =
                |name: &str| !unparsed && !matches!(name, "value" | "initial_value" | "private_metadata" | "metadata");
            fields
                .iter()
                .filter(|(name, _)| parsed(name))
                .try_for_each(|(name, item)| no_broadcast(&format!("{at}/{name}"), item))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// Checks that a block that an edit changes has a new `block_id`. Clients keep the state of a block
/// by its id.
pub(in crate::slack) fn new_block_ids(before: &[Value], after: &[Value]) -> Checked {
    for (n, block) in after.iter().enumerate() {
        let Some(id) = block["block_id"].as_str().filter(|id| !id.is_empty()) else { continue };
        let changed = before.iter().any(|older| older["block_id"] == id && !same(older, block));
        if changed {
            return Err(bad(format_args!(
                "block_id \"{id}\" stands for something else now [json-pointer:/blocks/{n}]"
            )));
        }
    }
    Ok(())
}

/// Returns true if two layouts are the same, except for ids that Slack added to the first.
fn same(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            after.iter().all(|(name, value)| before.get(name).is_some_and(|older| same(older, value)))
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(before, after)| same(before, after))
        }
        (before, after) => before == after,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_layout_needs_a_text_and_must_not_notify_everybody() {
        let section = |text: &str| json!([{ "type": "section", "text": { "type": "mrkdwn", "text": text } }]);
        for (body, fine) in [
            (json!({ "text": "hello", "blocks": section("hello") }), true),
            (json!({ "text": "hello" }), true),
            (json!({ "blocks": section("hello") }), false),
            (json!({ "text": "x".repeat(4_001) }), false),
            (json!({ "text": "<!here> hello" }), false),
            (json!({ "text": "hello", "blocks": section("<!subteam^S1> hello") }), false),
            (json!({ "text": "hello", "blocks": [{ "type": "markdown", "text": "<!channel>" }] }), false),
            (
                json!({ "text": "hello", "blocks": [{ "type": "header", "text": { "type": "plain_text", "text": "<!here>" } }] }),
                true,
            ),
        ] {
            assert_eq!(message_text(&body).is_ok(), fine, "{body}");
        }
    }

    #[test]
    fn a_changed_block_needs_a_new_id() {
        let button =
            |id: &str, label: &str| json!({ "type": "actions", "block_id": id, "elements": [{ "text": label }] });
        let mut shown = button("card:1", "Start");
        shown["elements"][0]["action_id"] = json!("given out by Slack");
        assert_eq!(new_block_ids(&[shown.clone()], &[button("card:1", "Start")]), Ok(()));
        assert_eq!(new_block_ids(&[shown.clone()], &[button("card:2", "Stop")]), Ok(()));
        let reason = new_block_ids(&[shown], &[button("card:1", "Stop")]).unwrap_err().reason;
        assert_eq!(reason, "block_id \"card:1\" stands for something else now [json-pointer:/blocks/0]");
    }
}
