//! The parts of Block Kit that are used: a function for each block, which returns plain JSON.
//!
//! Every mrkdwn object is `verbatim`, so that Slack does not search it for addresses, channels and names. Texts must
//! already be mrkdwn ([`super::mrkdwn::Mrkdwn`]). The limits are defined here and enforced by the code that renders.
//!
//! Using the library's typed blocks was rejected as a design: they lack some of Slack's fields (such as `verbatim` in
//! some places), and a message is stored and compared as JSON anyway.

use serde_json::{Value, json};

use super::mrkdwn::{line, literal};

/// The maximum number of blocks in a message.
pub const MAX_BLOCKS: usize = 50;
/// The maximum number of characters in a text object.
pub const MAX_TEXT_CHARS: usize = 3000;
/// The maximum number of characters in a field of a section.
pub const MAX_FIELD_CHARS: usize = 2000;
/// The maximum number of fields in a section.
pub const MAX_FIELDS: usize = 10;
/// The maximum number of characters in a header.
pub const MAX_HEADER_CHARS: usize = 150;
/// The maximum number of elements in a context block.
pub const MAX_CONTEXT_ELEMENTS: usize = 10;
/// The maximum number of elements in an actions block.
pub const MAX_ACTIONS: usize = 25;
/// The maximum number of characters on a button.
pub const MAX_BUTTON_CHARS: usize = 75;
/// The maximum number of characters in the value of a button.
pub const MAX_BUTTON_VALUE_CHARS: usize = 2000;
/// The maximum number of rows in a table, including its head.
pub const MAX_ROWS: usize = 100;
/// The maximum number of cells in a row.
pub const MAX_CELLS: usize = 20;
/// The maximum number of characters in the fallback text. Slack refuses a longer one in an update.
pub const MAX_FALLBACK_CHARS: usize = 4000;

/// A message: the blocks, and the text for notifications and screen readers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// The fallback text in mrkdwn, with the same content as the blocks.
    pub text: String,
    /// The blocks, from top to bottom.
    pub blocks: Vec<Value>,
}

/// Returns a text object in mrkdwn.
pub fn mrkdwn(text: &str) -> Value {
    json!({ "type": "mrkdwn", "text": text, "verbatim": true })
}

/// Returns a text object in which nothing is parsed, truncated to `limit`.
pub fn plain(text: &str, limit: usize) -> Value {
    json!({ "type": "plain_text", "text": line(text, limit), "emoji": false })
}

/// Returns a paragraph.
pub fn section(text: &str) -> Value {
    json!({ "type": "section", "text": mrkdwn(text) })
}

/// Returns short texts in two columns; at most [`MAX_FIELDS`].
pub fn fields(texts: &[String]) -> Value {
    json!({ "type": "section", "fields": texts.iter().map(|text| mrkdwn(text)).collect::<Vec<_>>() })
}

/// Returns a text over several lines as a quotation below its label. Nothing in it is parsed, so people see exactly these
/// characters; those that may not be shown appear as escapes.
pub fn quotation(label: &str, words: &str) -> Value {
    let text = |words: &str| json!({ "type": "text", "text": words });
    let mut label = text(&line(label, MAX_HEADER_CHARS));
    label["style"] = json!({ "bold": true });
    let words = match literal(&words.replace("\r\n", "\n")) {
        empty if empty.is_empty() => "\u{2013}".to_owned(),
        words => words,
    };
    json!({ "type": "rich_text", "elements": [
        { "type": "rich_text_section", "elements": [label] },
        { "type": "rich_text_quote", "elements": [text(&words)] },
    ] })
}

/// Returns a heading.
pub fn header(text: &str) -> Value {
    json!({ "type": "header", "text": plain(text, MAX_HEADER_CHARS) })
}

/// Returns small print.
pub fn context(text: &str) -> Value {
    json!({ "type": "context", "elements": [mrkdwn(text)] })
}

/// Returns a block of Markdown. The text must already be sanitised.
pub fn markdown(text: &str) -> Value {
    json!({ "type": "markdown", "text": text })
}

/// Returns a row of buttons; at most [`MAX_ACTIONS`].
pub fn actions(block_id: &str, buttons: &[Value]) -> Value {
    json!({ "type": "actions", "block_id": block_id, "elements": buttons })
}

/// Returns a button.
pub fn button(action_id: &str, label: &str, value: &str) -> Value {
    json!({ "type": "button", "action_id": action_id, "text": plain(label, MAX_BUTTON_CHARS), "value": value })
}

/// Returns two small buttons for feedback, each given by its label and its value.
pub fn feedback(action_id: &str, yes: (&str, &str), no: (&str, &str)) -> Value {
    let one = |(label, value): (&str, &str)| json!({ "text": plain(label, MAX_BUTTON_CHARS), "accessibility_label": line(label, MAX_BUTTON_CHARS), "value": value });
    let pair = json!({
        "type": "feedback_buttons", "action_id": action_id, "positive_button": one(yes), "negative_button": one(no),
    });
    json!({ "type": "context_actions", "elements": [pair] })
}

/// Gives a button a colour: `primary` or `danger`.
pub fn styled(mut button: Value, style: &str) -> Value {
    button["style"] = json!(style);
    button
}

/// Makes a button ask for confirmation.
pub fn confirmed(mut button: Value, title: &str, text: &str, confirm: &str, deny: &str) -> Value {
    button["confirm"] = json!({
        "title": plain(title, 100),
        "text": plain(text, 300),
        "confirm": plain(confirm, 30),
        "deny": plain(deny, 30),
        "style": "danger",
    });
    button
}

/// Returns a table. The first row is its head. Long cells wrap, so that all columns are visible.
pub fn table(rows: &[Vec<Value>]) -> Value {
    let columns = rows.first().map_or(0, Vec::len);
    json!({ "type": "table", "rows": rows, "column_settings": vec![json!({ "is_wrapped": true }); columns] })
}

/// Returns a cell in which nothing is parsed.
pub fn cell(text: &str) -> Value {
    json!({ "type": "raw_text", "text": text })
}

/// Returns a cell of rich text with these elements.
pub fn rich_cell(elements: &[Value]) -> Value {
    json!({ "type": "rich_text", "elements": [{ "type": "rich_text_section", "elements": elements }] })
}
