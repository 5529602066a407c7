//! Outgoing messages, and the results of sending them.

use countersign_core::{
    clock::Timestamp,
    draft::Draft,
    ids::{ActionId, ApprovalId, ChannelId, MessageTs, Nonce, Slot, ThreadId, UserId},
    reply::{Card, CardState, Reply},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Seq;
use crate::shared::Shared;

/// The number of failed attempts after which a message no longer holds up others: later messages of
/// its thread, except those for its own slot, are sent before it, and the people concerned are
/// notified that it is missing. With delays of 1, 2, 4, … s, this number is reached a minute after
/// the first attempt, so a short outage does not change the order of a thread's messages.
pub const TRIED_OFTEN: u32 = 7;

/// A message to be sent. The messages of a thread are sent in order (see [`TRIED_OFTEN`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outgoing {
    /// The slot, for a message that is posted once and edited later.
    pub slot: Option<Slot>,
    /// The key that identifies the message in Slack if the response to the post was lost.
    pub nonce: Nonce,
    /// True if the message only reports progress: a newer message may replace it, and all other
    /// messages are sent before it.
    pub progress: bool,
    /// The time before which the message must not be sent.
    pub not_before: Timestamp,
    /// The contents.
    pub body: Outbound,
}

/// The kinds of outgoing message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outbound {
    /// The status line.
    Status {
        /// A short phrase.
        text: String,
        /// The draft of the answer so far, which is shown in place of the phrase where that is possible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        draft: Option<Draft>,
    },
    /// A reply in the thread.
    Reply {
        /// The reply.
        reply: Reply,
    },
    /// The card of an action.
    Card {
        /// The card.
        card: Shared<Card>,
        /// The state of the card.
        state: CardState,
    },
    /// The card of an action, rendered from its record when it is sent, for a sender whose copy
    /// of the record may be outdated.
    Redraw {
        /// The action.
        action: ActionId,
    },
    /// A file.
    File {
        /// The file's name.
        name: String,
        /// The title shown above the file.
        title: String,
        /// The description of a picture, for people who cannot see it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        alt: String,
        /// The hash of the contents ([`super::Store::put_blob`]).
        hash: String,
    },
    /// A direct message to one person, with a link to a card.
    Direct {
        /// The recipient.
        to: UserId,
        /// The message that shows the card.
        card: Slot,
        /// The reply.
        reply: Reply,
    },
    /// The deletion of the slot's message, if it was posted.
    Remove,
    /// A message sent through a channel other than Slack.
    Elsewhere {
        /// The name of the channel.
        channel: String,
        /// The contents, in the channel's format.
        body: Value,
    },
}

/// An outgoing message that this worker has claimed to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The thread whose outbox it is in.
    pub thread: ThreadId,
    /// The position in the outbox.
    pub seq: Seq,
    /// The number of earlier attempts. If there were any and the slot is not posted yet, the
    /// message must be looked up before it is posted.
    pub attempts: u32,
    /// The posted message of the slot, if there is one.
    pub posted: Option<Posted>,
    /// The message.
    pub outgoing: Outgoing,
}

/// The location of a posted message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    /// The channel.
    pub channel: ChannelId,
    /// The message.
    pub ts: MessageTs,
    /// The open card that the message shows, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<ShownCard>,
}

/// An open card, as people see it in Slack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownCard {
    /// The approval id of its question.
    pub approval: ApprovalId,
    /// The digest on the card.
    pub digest: String,
    /// The time at which the message began to show the card, by Slack's clock.
    pub since: MessageTs,
}

impl Posted {
    /// Creates the location of a message that shows no open card.
    pub fn at(channel: ChannelId, ts: MessageTs) -> Self {
        Self { channel, ts, card: None }
    }
}

/// A message that was due some time ago and is still in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The thread whose outbox it is in.
    pub thread: ThreadId,
    /// The slot that it fills or changes.
    pub slot: Option<Slot>,
    /// The time at which it was due.
    pub since: Timestamp,
    /// The number of attempts so far.
    pub attempts: u32,
}

impl Waiting {
    /// Returns the due time before which an unsent message is reported as late: three minutes
    /// before `now`.
    pub fn late_before(now: Timestamp) -> Timestamp {
        Timestamp(now.millis() - 180_000)
    }
}

/// The result of an attempt to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The message was delivered. Contains its location if it fills a slot.
    Delivered(Option<Posted>),
    /// The message must be retried at this time. The attempt counts.
    Retry(Timestamp),
    /// The message was not sent: Slack was not called, or did nothing. It must not be sent before
    /// this time, and the attempt does not count. A progress message can therefore still be
    /// replaced by a newer message, and is replaced at once if there already is one.
    Deferred(Timestamp),
    /// Slack refused the call and asked for a long wait, or for several waits in a row. The message
    /// must not be sent before this time, and it counts as tried [`TRIED_OFTEN`] times, so that no other
    /// message of the thread waits for it.
    Postponed(Timestamp),
    /// The message is obsolete and is not sent.
    Dropped,
    /// The message was permanently refused or tried too often. It is kept as a
    /// [`super::DeadLetter`], unless a newer message for its slot is already waiting.
    Failed {
        /// The reason in one word: Slack's error code.
        reason: String,
        /// The time at which sending was given up.
        at: Timestamp,
    },
}
