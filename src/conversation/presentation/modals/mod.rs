//! Windows in Slack: a form, a reason, the full content of a card.
//!
//! A window is opened immediately, since its trigger expires after three seconds, and filled when
//! its content has been loaded. A submission is checked before it is acknowledged, so that errors
//! are shown at their fields.

pub mod check;
pub mod form;
pub mod show_all;

use countersign_core::reply::Reply;
use countersign_graph::action::ActionRecord;
use countersign_slack::{
    blocks::{self, Message},
    mrkdwn::Mrkdwn,
};
use serde_json::{Value, json};

use super::render;

/// The `callback_id` of the form of an open card.
pub const EDIT: &str = "edit";

/// The `callback_id` of the form of a rejected card, which requests a changed action.
pub const CHANGE: &str = "change";

/// The `callback_id` of the form that answers a question in the middle of a change.
pub const ANSWER: &str = "answer";

/// The `callback_id` of the window that rejects a request, with the reason.
pub const REJECT: &str = "reject";

/// The block id of the only field of that window.
pub const REASON: &str = "reason";

/// The maximum length of a reason, in characters.
pub const MAX_REASON_CHARS: usize = 1000;

/// The maximum length of a window's title and buttons, in characters.
const MAX_TITLE_CHARS: usize = 24;

/// The maximum number of blocks in a window.
const MAX_BLOCKS: usize = 100;

/// Returns a window without input.
pub fn window(title: &str, blocks: &[Value]) -> Value {
    json!({
        "type": "modal",
        "title": blocks::plain(title, MAX_TITLE_CHARS),
        "close": blocks::plain("Close", MAX_TITLE_CHARS),
        "blocks": &blocks[..blocks.len().min(MAX_BLOCKS)],
    })
}

/// Returns the window that is shown while its content is being loaded.
pub fn loading(title: &str) -> Value {
    window(title, &[blocks::section("One moment…")])
}

/// Returns a window that shows a reply.
pub fn message_window(title: &str, reply: &Reply) -> Value {
    let Message { blocks, .. } = render::reply(reply);
    window(title, &blocks)
}

/// Returns the answer that keeps the window open and shows an error at each of these blocks.
pub fn errors(wrong: &std::collections::BTreeMap<String, String>) -> Value {
    json!({ "response_action": "errors", "errors": wrong })
}

/// Returns the answer that replaces the content of the window.
pub fn replacement(view: &Value) -> Value {
    json!({ "response_action": "update", "view": view })
}

/// Draws the window for a person who rejects a request. Nothing is decided before it is submitted, and a reason is optional.
pub fn reason(record: &ActionRecord) -> Value {
    let text = Mrkdwn::new(1000).bold(record.act());
    let text = match record.scope.is_from_outside {
        true => text.plain("."),
        false => text.plain(", asked by ").person(&record.requested_by).plain("."),
    };
    let text = text.plain(" Nothing is decided until you press ").raw("*Reject*").plain(".");
    let mut view = window(
        "Reject this request?",
        &[
            blocks::section(&text.finish()),
            json!({
                "type": "input",
                "block_id": REASON,
                "optional": true,
                "label": blocks::plain("Reason", 2000),
                "element": {
                    "type": "plain_text_input",
                    "action_id": REASON,
                    "multiline": true,
                    "max_length": MAX_REASON_CHARS,
                    "placeholder": blocks::plain("For example: 60/40 would be safer", 150),
                },
            }),
        ],
    );
    view["callback_id"] = json!(REJECT);
    view["private_metadata"] = json!(record.approval.as_str());
    view["submit"] = blocks::plain("Reject", MAX_TITLE_CHARS);
    view["close"] = blocks::plain("Go back", MAX_TITLE_CHARS);
    view
}
