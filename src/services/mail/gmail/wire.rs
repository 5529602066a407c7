//! The part of the API's format that is used. Unknown fields are ignored.

use serde::{Deserialize, Serialize};

/// The label of messages in the inbox.
pub(super) const INBOX: &str = "INBOX";
/// The label of messages that were sent.
pub(super) const SENT: &str = "SENT";
/// The label of the messages of drafts.
pub(super) const DRAFT: &str = "DRAFT";

/// The mailbox.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Profile {
    pub(super) email_address: String,
    #[serde(default)]
    pub(super) messages_total: u64,
    pub(super) history_id: String,
}

/// A message; most fields depend on the requested format.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) thread_id: String,
    pub(super) label_ids: Vec<String>,
    pub(super) snippet: String,
    /// The time of its arrival, in milliseconds since 1970.
    pub(super) internal_date: String,
    pub(super) size_estimate: u64,
    pub(super) raw: String,
    pub(super) payload: Payload,
}

impl Message {
    /// Returns true if the message has this label.
    pub(super) fn has(&self, label: &str) -> bool {
        self.label_ids.iter().any(|own| own == label)
    }

    /// Returns the first header with this name, in any case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.payload.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| header.value.trim())
    }
}

/// The first part of a message.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Payload {
    pub(super) headers: Vec<Header>,
}

/// A header.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) value: String,
}

/// A page of messages.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Messages {
    pub(super) messages: Vec<Message>,
    pub(super) next_page_token: Option<String>,
}

/// A thread.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Thread {
    pub(super) messages: Vec<Message>,
}

/// A draft.
#[derive(Debug, Deserialize)]
pub(super) struct Draft {
    pub(super) id: String,
    #[serde(default)]
    pub(super) message: Message,
}

/// A page of drafts.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Drafts {
    pub(super) drafts: Vec<Draft>,
    pub(super) next_page_token: Option<String>,
}

/// A page of the history.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct HistoryPage {
    pub(super) history: Vec<HistoryRecord>,
    pub(super) history_id: Option<String>,
    pub(super) next_page_token: Option<String>,
}

/// Changes of messages.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct HistoryRecord {
    pub(super) id: String,
    pub(super) messages_added: Vec<Changed>,
    pub(super) labels_added: Vec<Changed>,
}

/// A change of one message, with the labels that were added.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Changed {
    pub(super) message: Message,
    pub(super) label_ids: Vec<String>,
}

/// All labels.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LabelList {
    pub(super) labels: Vec<Label>,
}

/// A label.
#[derive(Debug, Deserialize)]
pub(super) struct Label {
    pub(super) id: String,
    pub(super) name: String,
}

/// An answer of which nothing is used.
#[derive(Debug, Deserialize)]
pub(super) struct Ignored {}

/// The answer to a request to watch the mailbox.
#[derive(Debug, Deserialize)]
pub(super) struct Watched {
    /// The time until which it is watched, in milliseconds since 1970.
    pub(super) expiration: String,
}

/// The answer to a pull.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Pulled {
    pub(super) received_messages: Vec<Received>,
}

/// A notification.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Received {
    pub(super) ack_id: String,
}

/// A new message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewMessage<'a> {
    pub(super) raw: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread_id: Option<&'a str>,
}

/// An error.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorAnswer {
    pub(super) error: ApiError,
}

/// The contents of an error.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiError {
    pub(super) message: String,
    pub(super) errors: Vec<ApiErrorDetail>,
}

/// A detail of an error.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiErrorDetail {
    pub(super) reason: String,
}
