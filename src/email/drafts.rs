//! Deleting the drafts of replies that were certainly not sent.
//!
//! A reply is made as a draft in the mailbox before it is sent. When sending has certainly failed, another try makes a
//! draft of its own, so the old one would stay in the mailbox for good. The order to delete it is a message of the outbox,
//! like a label: it is tried again until the account has carried it out, and carrying it out twice changes nothing.

use countersign_core::{
    cause::chain,
    ids::{ActionId, ThreadId},
};
use countersign_graph::{
    action::{ActionRecord, Status},
    store::{ActionKey, Store},
};
use countersign_mail::{MailAccount, MailError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    labels::Delivered,
    send::{self, outgoing},
};

/// The name of the channel that carries the orders to the account.
pub const CHANNEL: &str = "mail-drafts";

/// An order to delete the draft of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscardOrder {
    /// The action that failed to send the reply.
    pub action: ActionId,
}

impl DiscardOrder {
    /// Returns the order for an action; `None` unless it was to send a reply and has certainly failed.
    pub(super) fn of(record: &ActionRecord) -> Option<Self> {
        may_go(record).then(|| Self { action: record.id.clone() })
    }

    /// Returns the body of the message for [`CHANNEL`].
    pub fn into_body(self) -> Value {
        serde_json::to_value(self).expect("an order is plain data")
    }
}

/// Returns true if the draft of an action can never be sent any more.
fn may_go(record: &ActionRecord) -> bool {
    record.name == send::NAME && record.status == Status::Failed && record.intent_at.is_some()
}

/// Carries out the order of a message for [`CHANNEL`] in this thread.
pub async fn deliver(account: &dyn MailAccount, store: &dyn Store, thread: &ThreadId, body: &Value) -> Delivered {
    let Ok(DiscardOrder { action }) = DiscardOrder::deserialize(body) else { return Delivered::Never("not_an_order") };
    let record = match store.action(ActionKey::Of(thread, &action)).await {
        Ok(Some(record)) if may_go(&record) => record,
        Ok(_) => return Delivered::Done,
        Err(error) => {
            tracing::warn!(error = chain(&error), "Cannot read the action of a draft");
            return Delivered::Later;
        }
    };
    let Ok(out) = outgoing(&record) else { return Delivered::Never("reply_unreadable") };
    match account.discard(&out).await {
        Ok(()) => Delivered::Done,
        Err(MailError::Refused { .. }) => Delivered::Never("deletion_refused"),
        Err(error) => {
            tracing::warn!(error = chain(&error), "Cannot delete a draft; trying again");
            Delivered::Later
        }
    }
}
