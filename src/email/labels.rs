//! The labels by which the mail account shows what was handled.
//!
//! A label is a note of the account to itself: nobody outside receives anything. It follows a decision that is recorded
//! already, so it needs none of its own. It is a message of the outbox, in the same atomic write as the step that closes
//! the mail; so it is neither lost nor set for a step that was not saved. Setting a label twice changes nothing.

use countersign_mail::{Handled, MailAccount, MailError, MailId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::book::Book;

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

/// The result of setting a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Labelled {
    /// The label is set, or the mail no longer exists.
    Done,
    /// The account does not answer; the call can be repeated.
    Later,
    /// The account refuses, and would refuse again; or the message is no label. Contains the reason in a few words.
    Never(&'static str),
}

/// Sets the label of a message for [`CHANNEL`].
pub async fn deliver(account: &dyn MailAccount, book: &Book, body: &Value) -> Labelled {
    let Ok(LabelOrder { mail, handled }) = LabelOrder::deserialize(body) else { return Labelled::Never("not_a_label") };
    let mail = match book.current_id(&mail).await {
        Ok(mail) => mail,
        Err(error) => {
            tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot read the list of mails");
            return Labelled::Later;
        }
    };
    match account.mark(&mail, handled).await {
        Ok(()) => Labelled::Done,
        Err(MailError::Refused { status: Some(404), .. }) => Labelled::Done,
        Err(MailError::Refused { .. }) => Labelled::Never("label_refused"),
        Err(error) => {
            tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot label a mail; trying again");
            Labelled::Later
        }
    }
}
