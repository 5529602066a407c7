//! Windows over the conversation: a form, a reason, everything that a card covers.
//!
//! A window is opened at once, since what opens it is good for three seconds only, and filled when what it shows has been
//! read. What comes back is checked before it is acknowledged, so that what is wrong is said at its field.

pub mod check;
pub mod form;
pub mod reason;
pub mod show_all;
pub mod wrong;

use countersign_core::reply::Reply;
use countersign_slack::blocks::{self, Message};
use serde_json::{Value, json};

use super::render;

/// What a submitted window is for: its `callback_id`.
pub const EDIT: &str = "edit";

/// The form of a rejected card, to ask for something like it.
pub const CHANGE: &str = "change";

/// The reason of a rejection.
pub const REASON: &str = "reason";

/// Characters in a title and on the buttons of a window.
const TITLE: usize = 24;

/// Blocks in a window.
const BLOCKS: usize = 100;

/// A window without anything to enter.
pub fn window(title: &str, blocks: &[Value]) -> Value {
    json!({
        "type": "modal",
        "title": blocks::plain(title, TITLE),
        "close": blocks::plain("Close", TITLE),
        "blocks": &blocks[..blocks.len().min(BLOCKS)],
    })
}

/// What stands there until there is something to show.
pub fn loading(title: &str) -> Value {
    window(title, &[blocks::section("One moment…")])
}

/// A window that says something.
pub fn saying(title: &str, reply: &Reply) -> Value {
    let Message { blocks, .. } = render::reply(reply);
    window(title, &blocks)
}

/// Keeps the window open and says what is wrong, by block.
pub fn errors(wrong: &std::collections::BTreeMap<String, String>) -> Value {
    json!({ "response_action": "errors", "errors": wrong })
}

/// Shows something else in the window.
pub fn instead(view: &Value) -> Value {
    json!({ "response_action": "update", "view": view })
}
