//! The labels by which the mail account shows what was handled.
//!
//! A label is a note of the account to itself: nobody outside receives anything. It follows a decision that is recorded
//! already, so it needs none of its own. It is a message of the outbox, in the same atomic write as the step that closes
//! the mail; so it is neither lost nor set for a step that was not saved. Setting a label twice changes nothing.

use countersign_mail::{Handled, MailAccount, MailError, MailId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::register::MailRegister;

/// The name of the channel that carries labels to the account.
pub const CHANNEL: &str = "mail-labels";

/// A label for a mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelOrder {
    /// The mail.
    pub mail: MailId,
    /// The way in which it was handled.
    pub handled: Handled,
}

impl LabelOrder {
    /// Returns the body of the message for [`CHANNEL`].
    pub fn into_body(self) -> Value {
        serde_json::to_value(self).expect("a label is plain data")
    }
}

/// The result of carrying out an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// It is carried out, or there is nothing to do any more.
    Done,
    /// Something does not answer; the call can be repeated.
    Later,
    /// It is refused, and would be refused again; or the message is no order. Contains the reason in a few words.
    Never(&'static str),
}

/// Sets the label of a message for [`CHANNEL`].
pub async fn deliver(account: &dyn MailAccount, book: &MailRegister, body: &Value) -> Delivered {
    let Ok(LabelOrder { mail, handled }) = LabelOrder::deserialize(body) else {
        return Delivered::Never("not_a_label");
    };
    let mail = match book.current_id(&mail).await {
        Ok(mail) => mail,
        Err(error) => {
            tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot read the list of mails");
            return Delivered::Later;
        }
    };
    match account.mark(&mail, handled).await {
        Ok(()) => Delivered::Done,
        Err(MailError::Refused { status: Some(404), .. }) => Delivered::Done,
        Err(MailError::Refused { .. }) => Delivered::Never("label_refused"),
        Err(error) => {
            tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot label a mail; trying again");
            Delivered::Later
        }
    }
}
