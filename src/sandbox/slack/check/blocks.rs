//! Checks of blocks and their content.

use serde_json::Value;

use super::{
    Checked, Problem,
    elements::{Place, element, image, unique_actions},
    problem,
    text::{list, optional_plain_text, plain_text, required_string, string, text},
};

const NAME: usize = 255;
const MARKDOWN: usize = 12_000;
const MESSAGE: usize = 50;
const ATTACHMENTS: usize = 100;
/// The maximum number of characters in all blocks together, if one of them is Markdown. Slack
/// documents no limit, but has refused 13,172 characters and more.
const MAX_TOTAL: usize = 13_000;

/// The surface on which blocks are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Surface {
    Message,
    Modal,
    Home,
}

/// Checks the layout of a message.
///
/// # Errors
///
/// The first problem, with Slack's name for it.
pub fn message(blocks: &[Value]) -> Checked {
    if blocks.len() > MESSAGE {
        return Err(problem("/blocks", format_args!("no more than {MESSAGE} items allowed")));
    }
    all(blocks, Surface::Message)
}

/// Checks the number of attachments of a message, and their layouts.
///
/// # Errors
///
/// The first problem, with Slack's name for it.
pub(in crate::slack) fn attachments(attachments: &Value) -> Checked {
    let attached = attachments.as_array().map(Vec::as_slice).unwrap_or_default();
    if attached.len() > ATTACHMENTS {
        let reason = format!("no more than {ATTACHMENTS} attachments are allowed [json-pointer:/attachments]");
        return Err(Problem { error: "too_many_attachments", reason });
    }
    for (index, one) in attached.iter().enumerate() {
        let layout = one["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
        message(layout).map_err(|problem| Problem {
            error: "invalid_attachments",
            reason: problem.reason.replace("json-pointer:", &format!("json-pointer:/attachments/{index}")),
        })?;
    }
    Ok(())
}

/// Checks every block of a layout, and the limits for all blocks together.
pub(super) fn all(blocks: &[Value], surface: Surface) -> Checked {
    for (index, block) in blocks.iter().enumerate() {
        one(&format!("/blocks/{index}"), block, surface)?;
    }
    let nested = nested(blocks);
    let mut ids = std::collections::BTreeSet::new();
    for id in nested.iter().filter_map(|block| block["block_id"].as_str().filter(|id| !id.is_empty())) {
        if !ids.insert(id) {
            return Err(problem("/blocks", format_args!("block_id \"{id}\" already exists")));
        }
    }
    let of = |kind: &'static str| nested.iter().filter(move |block| block["type"] == kind);
    if of("table").count() > 1 {
        return Err(Problem { error: "invalid_attachments", reason: "only one table is allowed".to_owned() });
    }
    let markdown: usize = of("markdown").filter_map(|b| b["text"].as_str()).map(|text| text.chars().count()).sum();
    if markdown > MARKDOWN {
        let reason = format!("markdown blocks hold {markdown} characters of {MARKDOWN}");
        return Err(Problem { error: "msg_blocks_too_long", reason });
    }
    let total: usize = blocks.iter().map(visible_length).sum();
    if markdown > 0 && total > MAX_TOTAL {
        let reason = format!("blocks with Markdown among them hold {total} characters of {MAX_TOTAL}");
        return Err(Problem { error: "msg_blocks_too_long", reason });
    }
    Ok(())
}

/// Returns all blocks of a layout, including nested ones.
pub(super) fn nested(blocks: &[Value]) -> Vec<&Value> {
    let mut found = Vec::new();
    for block in blocks {
        found.push(block);
        for holder in ["child_blocks", "tasks"] {
            found.extend(nested(block[holder].as_array().map(Vec::as_slice).unwrap_or_default()));
        }
        if block["type"] == "carousel" {
            found.extend(block["elements"].as_array().into_iter().flatten());
        }
    }
    found
}

/// Returns the number of visible characters in a block.
fn visible_length(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(visible_length).sum(),
        Value::Object(fields) => {
            let own = fields.get("text").and_then(Value::as_str).map_or(0, |text| text.chars().count());
            own + fields.values().map(visible_length).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn one(at: &str, block: &Value, surface: Surface) -> Checked {
    let kind = block["type"].as_str().ok_or_else(|| problem(&format!("{at}/type"), "missing required field"))?;
    string(&format!("{at}/block_id"), &block["block_id"], NAME)?;
    match kind {
        "divider" | "rich_text" | "file" | "video" | "data_table" | "data_visualization" => Ok(()),
        "alert" => text(&format!("{at}/text"), &block["text"], 200),
        "section" => section(at, block),
        "header" => plain_text(&format!("{at}/text"), &block["text"], 150),
        "context" => context(at, block),
        "actions" => {
            let elements = list(&format!("{at}/elements"), &block["elements"], 1, 25)?;
            several(at, elements, Place::Actions)
        }
        "context_actions" if surface == Surface::Message => {
            let elements = list(&format!("{at}/elements"), &block["elements"], 1, 5)?;
            several(at, elements, Place::ContextActions)
        }
        "image" => {
            image(at, block)?;
            optional_plain_text(&format!("{at}/title"), &block["title"], 2_000)
        }
        "input" => {
            plain_text(&format!("{at}/label"), &block["label"], 2_000)?;
            optional_plain_text(&format!("{at}/hint"), &block["hint"], 2_000)?;
            element(&format!("{at}/element"), &block["element"], Place::Input)
        }
        "markdown" if surface == Surface::Message => required_string(&format!("{at}/text"), &block["text"], usize::MAX),
        "table" if surface == Surface::Message => table(at, block),
        "plan" => {
            required_string(&format!("{at}/title"), &block["title"], usize::MAX)?;
            let tasks =
                if block["tasks"].is_null() { &[] } else { list(&format!("{at}/tasks"), &block["tasks"], 0, 50)? };
            tasks.iter().enumerate().try_for_each(|(index, task)| task_card(&format!("{at}/tasks/{index}"), task))
        }
        "task_card" => task_card(at, block),
        "card" => card(at, block),
        "carousel" => {
            let cards = list(&format!("{at}/elements"), &block["elements"], 1, 10)?;
            cards.iter().enumerate().try_for_each(|(index, inner)| card(&format!("{at}/elements/{index}"), inner))
        }
        "container" => {
            optional_plain_text(&format!("{at}/title"), &block["title"], 150)?;
            let children = list(&format!("{at}/child_blocks"), &block["child_blocks"], 1, 10)?;
            let inner = |(index, child)| one(&format!("{at}/child_blocks/{index}"), child, surface);
            children.iter().enumerate().try_for_each(inner)
        }
        _ => Err(problem(&format!("{at}/type"), format_args!("unsupported type: {kind}"))),
    }
}

fn section(at: &str, block: &Value) -> Checked {
    if block["text"].is_null() && block["fields"].is_null() {
        return Err(problem(at, "one of text or fields is required"));
    }
    if !block["text"].is_null() {
        text(&format!("{at}/text"), &block["text"], 3_000)?;
    }
    if !block["fields"].is_null() {
        let fields = list(&format!("{at}/fields"), &block["fields"], 1, 10)?;
        for (index, field) in fields.iter().enumerate() {
            text(&format!("{at}/fields/{index}"), field, 2_000)?;
        }
    }
    if block["accessory"].is_null() {
        return Ok(());
    }
    element(&format!("{at}/accessory"), &block["accessory"], Place::Accessory)
}

fn context(at: &str, block: &Value) -> Checked {
    let elements = list(&format!("{at}/elements"), &block["elements"], 1, 10)?;
    elements.iter().enumerate().try_for_each(|(index, inner)| {
        let at = format!("{at}/elements/{index}");
        if inner["type"] == "image" { image(&at, inner) } else { text(&at, inner, 3_000) }
    })
}

fn several(at: &str, elements: &[Value], place: Place) -> Checked {
    for (index, inner) in elements.iter().enumerate() {
        element(&format!("{at}/elements/{index}"), inner, place)?;
    }
    unique_actions(&format!("{at}/elements"), elements)
}

fn table(at: &str, block: &Value) -> Checked {
    let rows = list(&format!("{at}/rows"), &block["rows"], 1, 100)?;
    for (index, row) in rows.iter().enumerate() {
        list(&format!("{at}/rows/{index}"), row, 1, 20)?;
    }
    Ok(())
}

fn task_card(at: &str, task: &Value) -> Checked {
    string(&format!("{at}/block_id"), &task["block_id"], NAME)?;
    required_string(&format!("{at}/task_id"), &task["task_id"], NAME)?;
    required_string(&format!("{at}/title"), &task["title"], usize::MAX)?;
    status(at, task)?;
    for name in ["details", "output"] {
        if !task[name].is_null() && task[name]["type"] != "rich_text" {
            return Err(problem(&format!("{at}/{name}"), "must be rich_text"));
        }
    }
    Ok(())
}

/// Checks the optional status of a task.
fn status(at: &str, task: &Value) -> Checked {
    match task["status"].as_str() {
        None | Some("pending" | "in_progress" | "complete" | "error") => Ok(()),
        Some(status) => Err(problem(&format!("{at}/status"), format_args!("unsupported status: {status}"))),
    }
}

fn card(at: &str, card: &Value) -> Checked {
    if ["hero_image", "title", "actions", "body"].iter().all(|part| card[*part].is_null()) {
        return Err(problem(at, "one of hero_image, title, actions or body is required"));
    }
    string(&format!("{at}/block_id"), &card["block_id"], NAME)?;
    for (name, most) in [("title", 150), ("subtitle", 150), ("body", 200)] {
        if !card[name].is_null() {
            text(&format!("{at}/{name}"), &card[name], most)?;
        }
    }
    for name in ["hero_image", "icon"] {
        if !card[name].is_null() {
            image(&format!("{at}/{name}"), &card[name])?;
        }
    }
    if card["actions"].is_null() {
        return Ok(());
    }
    let at = format!("{at}/actions");
    let actions = list(&at, &card["actions"], 1, usize::MAX)?;
    for (index, button) in actions.iter().enumerate() {
        element(&format!("{at}/{index}"), button, Place::Actions)?;
    }
    unique_actions(&at, actions)
}
