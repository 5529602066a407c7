//! Windows over the conversation: a form, a reason, the full content of a card.
//!
//! A window is opened at once, since its trigger is good for three seconds only, and filled when its content has been
//! read. A submission is checked before it is acknowledged, so that errors are shown at their fields.

pub mod check;
pub mod form;
pub mod form_errors;
pub mod reason;
pub mod show_all;

use countersign_core::reply::Reply;
use countersign_slack::blocks::{self, Message};
use serde_json::{Value, json};

use super::render;

/// The `callback_id` of the form of an open card.
pub const EDIT: &str = "edit";

/// The `callback_id` of the form of a rejected card, to ask for something similar.
pub const CHANGE: &str = "change";

/// The `callback_id` of the form that answers a question in the middle of a change.
pub const ANSWER: &str = "answer";

/// The `callback_id` of the window for the reason of a rejection.
pub const REASON: &str = "reason";

/// Characters in a title and on the buttons of a window.
const TITLE: usize = 24;

/// Blocks in a window.
const BLOCKS: usize = 100;

/// Returns a window without input.
pub fn window(title: &str, blocks: &[Value]) -> Value {
    json!({
        "type": "modal",
        "title": blocks::plain(title, TITLE),
        "close": blocks::plain("Close", TITLE),
        "blocks": &blocks[..blocks.len().min(BLOCKS)],
    })
}

/// Returns the window shown while its content is being read.
pub fn loading(title: &str) -> Value {
    window(title, &[blocks::section("One moment…")])
}

/// Returns a window that shows a reply.
pub fn message_window(title: &str, reply: &Reply) -> Value {
    let Message { blocks, .. } = render::reply(reply);
    window(title, &blocks)
}

/// Keeps the window open and shows errors, by block.
pub fn errors(wrong: &std::collections::BTreeMap<String, String>) -> Value {
    json!({ "response_action": "errors", "errors": wrong })
}

/// Replaces the content of the window.
pub fn replacement(view: &Value) -> Value {
    json!({ "response_action": "update", "view": view })
}
