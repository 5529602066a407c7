//! The window for the reason of a rejection. It opens after the rejection has been recorded, and a
//! reason is optional.

use countersign_core::ids::UserId;
use countersign_graph::action::ActionRecord;
use countersign_slack::{blocks, mrkdwn::Mrkdwn};
use serde_json::{Value, json};

use super::{MAX_TITLE_CHARS, REASON, window};

/// The block id of the only field.
pub const FIELD: &str = "reason";

/// The maximum length of a reason, in characters.
pub const MAX_REASON_CHARS: usize = 1000;

/// Draws the window for the person who rejected the request. `not_made` is a sentence that says that the change was not
/// made.
pub fn draw(record: &ActionRecord, by: &UserId, not_made: &str) -> Value {
    let text = Mrkdwn::new(600).plain("Rejected: ").bold(record.act()).plain(". ").plain(not_made).plain(" You can ");
    let text = match record.requested_by == *by {
        true => text.plain("say"),
        false => text.plain("tell ").person(&record.requested_by),
    };
    let text = text.plain(" why, or just close this window.");
    let mut view = window(
        "Why not?",
        &[
            blocks::section(&text.finish()),
            json!({
                "type": "input",
                "block_id": FIELD,
                "optional": true,
                "label": blocks::plain("Reason", 2000),
                "element": {
                    "type": "plain_text_input",
                    "action_id": FIELD,
                    "multiline": true,
                    "max_length": MAX_REASON_CHARS,
                    "placeholder": blocks::plain("For example: 60/40 would be safer", 150),
                },
            }),
        ],
    );
    view["callback_id"] = json!(REASON);
    view["private_metadata"] = json!(record.approval.as_str());
    view["submit"] = blocks::plain("Send reason", MAX_TITLE_CHARS);
    view
}
