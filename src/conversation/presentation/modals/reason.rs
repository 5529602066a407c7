//! The window for the reason of a rejection. Nothing is decided before it is submitted, and a reason is optional.

use countersign_graph::action::ActionRecord;
use countersign_slack::{blocks, mrkdwn::Mrkdwn};
use serde_json::{Value, json};

use super::{MAX_TITLE_CHARS, REJECT, window};

/// The block id of the only field.
pub const FIELD: &str = "reason";

/// The maximum length of a reason, in characters.
pub const MAX_REASON_CHARS: usize = 1000;

/// Draws the window for a person who rejects the request.
pub fn draw(record: &ActionRecord) -> Value {
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
    view["callback_id"] = json!(REJECT);
    view["private_metadata"] = json!(record.approval.as_str());
    view["submit"] = blocks::plain("Reject", MAX_TITLE_CHARS);
    view["close"] = blocks::plain("Go back", MAX_TITLE_CHARS);
    view
}
