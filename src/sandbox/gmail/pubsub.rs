//! A Pub/Sub subscription that receives the notifications of the mailbox.

use std::collections::VecDeque;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use countersign_core::clock::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::failure::Failure;
use crate::call::Call;

/// The duration for which a pulled message is not delivered again, in milliseconds.
const ACK_DEADLINE: i64 = 10_000;
/// The duration for which the mailbox is watched, in milliseconds: seven days.
const WATCH: i64 = 7 * 24 * 3600 * 1000;

/// A notification.
#[derive(Clone, Debug)]
struct Notification {
    id: u64,
    at: i64,
    history: u64,
    /// The time until which it is not delivered again.
    held_until: i64,
    deliveries: u64,
}

/// A topic with one subscription, and the watch that publishes to it.
#[derive(Debug)]
pub(crate) struct PubSub {
    /// The full name of the topic.
    pub(crate) topic: String,
    /// The full name of the subscription.
    pub(crate) subscription: String,
    /// The time until which the mailbox is watched; 0 if it is not.
    watched_until: i64,
    waiting: VecDeque<Notification>,
    next_id: u64,
}

/// The body of a pull.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Pull {
    max_messages: usize,
    #[serde(default)]
    return_immediately: bool,
}

/// The body of an acknowledgement.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Acknowledge {
    ack_ids: Vec<String>,
}

/// The body of a request to watch the mailbox.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Watch {
    topic_name: String,
    #[serde(default)]
    label_ids: Vec<String>,
    #[serde(default)]
    label_filter_behavior: Option<String>,
}

impl PubSub {
    /// Creates a topic and its subscription.
    pub(crate) fn new() -> Self {
        Self {
            topic: "projects/sandbox/topics/mail".to_owned(),
            subscription: "projects/sandbox/subscriptions/mail".to_owned(),
            watched_until: 0,
            waiting: VecDeque::new(),
            next_id: 0,
        }
    }

    /// Starts watching, or continues to.
    pub(crate) fn watch(&mut self, call: &Call, history: u64, now: i64) -> Result<Value, Failure> {
        let Watch { topic_name, label_ids, label_filter_behavior } = call.body()?;
        if topic_name != self.topic {
            return Err(Failure::invalid(format!(
                "Error sending test message to Cloud PubSub {topic_name} : Resource not found (resource={topic_name})."
            )));
        }
        if label_ids.iter().any(|label| label != "INBOX") {
            return Err(Failure::invalid("Invalid label in labelIds"));
        }
        if label_filter_behavior.is_some_and(|behavior| !matches!(behavior.as_str(), "include" | "INCLUDE")) {
            return Err(Failure::invalid("Invalid value at 'label_filter_behavior'"));
        }
        self.watched_until = now + WATCH;
        self.publish(history, now);
        Ok(json!({ "historyId": history.to_string(), "expiration": self.watched_until.to_string() }))
    }

    /// Returns the time until which the mailbox is watched, if it is.
    pub(crate) fn watched_until(&self) -> Option<Timestamp> {
        (self.watched_until > 0).then_some(Timestamp(self.watched_until))
    }

    /// Publishes that the mailbox changed, if it is watched.
    pub(crate) fn publish(&mut self, history: u64, now: i64) {
        if now < self.watched_until {
            self.next_id += 1;
            let (id, at) = (self.next_id, now);
            self.waiting.push_back(Notification { id, at, history, held_until: 0, deliveries: 0 });
        }
    }

    /// Returns the answer to a pull; `None` if there is no message yet and the caller waits for one.
    pub(crate) fn pull(&mut self, call: &Call, address: &str, now: i64) -> Result<Option<Value>, Failure> {
        let Pull { max_messages, return_immediately } = call.body()?;
        if max_messages == 0 {
            return Err(Failure::invalid("The value for max_messages is too small. You passed 0 in the request."));
        }
        let due = self.waiting.iter_mut().filter(|one| one.held_until <= now).take(max_messages);
        let received: Vec<Value> = due
            .map(|one| {
                one.held_until = now + ACK_DEADLINE;
                one.deliveries += 1;
                let data = json!({ "emailAddress": address, "historyId": one.history });
                json!({
                    "ackId": format!("ack-{}-{}", one.id, one.deliveries),
                    "message": {
                        "data": BASE64_STANDARD.encode(data.to_string()),
                        "messageId": one.id.to_string(),
                        "publishTime": Timestamp(one.at).to_string(),
                    },
                })
            })
            .collect();
        Ok(match received.is_empty() {
            true if return_immediately => Some(json!({})),
            true => None,
            false => Some(json!({ "receivedMessages": received })),
        })
    }

    /// Removes messages that were acknowledged. Unknown ids are ignored.
    pub(crate) fn acknowledge(&mut self, call: &Call) -> Result<Value, Failure> {
        let Acknowledge { ack_ids } = call.body()?;
        if ack_ids.is_empty() {
            return Err(Failure::invalid("You have not specified an ack ID in the request."));
        }
        let is_named = |id: u64| ack_ids.iter().any(|ack| ack.starts_with(&format!("ack-{id}-")));
        self.waiting.retain(|one| !is_named(one.id));
        Ok(json!({}))
    }

    /// Returns the number of messages that were not acknowledged.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.waiting.len()
    }
}
