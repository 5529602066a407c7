//! Outgoing messages, and the results of sending them.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, ChannelId, MessageTs, Nonce, Slot, ThreadId, UserId},
    reply::{Card, CardState, Reply},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Seq;

/// The number of tries without success after which a message holds up no other: later messages of its thread, except
/// those of its own slot, go before it, and the people concerned learn that it is missing. With waits of 1, 2, 4, … s
/// that is a minute after the first try: a short outage leaves the order of a thread as it is.
pub const TRIED_OFTEN: u32 = 7;

/// A message to be sent, in order within its thread (see [`TRIED_OFTEN`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outgoing {
    /// The slot, for a message that is posted once and edited afterwards.
    pub slot: Option<Slot>,
    /// The key that finds the post in Slack after its answer was lost.
    pub nonce: Nonce,
    /// True if it only reports progress: it may be dropped for something newer, and all other messages overtake it.
    pub progress: bool,
    /// The time before which it is not to be sent.
    pub not_before: Timestamp,
    /// The contents.
    pub body: Outbound,
}

/// The kinds of outgoing message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[expect(clippy::large_enum_variant, reason = "few exist at a time, and each is written out at once")]
pub enum Outbound {
    /// The status line.
    Status {
        /// A short phrase.
        text: String,
    },
    /// An answer.
    Reply {
        /// The reply.
        reply: Reply,
    },
    /// The card of an action.
    Card {
        /// The card.
        card: Card,
        /// The state of the card.
        state: CardState,
    },
    /// The card of an action as its record has it when it is sent, to replace the message: for a sender that may know
    /// an older state than others do.
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
        /// The hash of the contents ([`super::Store::put_blob`]).
        hash: String,
    },
    /// A message to one person, in their direct messages and not in the thread, with a link to a card.
    Direct {
        /// The recipient.
        to: UserId,
        /// The message the card is on.
        card: Slot,
        /// The reply.
        reply: Reply,
    },
    /// The removal of the slot's message, if there is one.
    Remove,
    /// A message by another way than Slack.
    Elsewhere {
        /// The name of the other way.
        channel: String,
        /// The contents, in the format of that way.
        body: Value,
    },
}

/// An outgoing message that this worker is to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The thread whose outbox it is in.
    pub thread: ThreadId,
    /// The position in the outbox.
    pub seq: Seq,
    /// The number of tries before: if there were any, and the slot is not posted yet, look before posting.
    pub attempts: u32,
    /// The slot's message, if it is posted.
    pub posted: Option<Posted>,
    /// The message.
    pub outgoing: Outgoing,
}

/// The place of a message of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    /// The channel.
    pub channel: ChannelId,
    /// The message.
    pub ts: MessageTs,
    /// The open card that it shows, if it shows one. Not known for messages of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<ShownCard>,
}

/// An open card, as it can be read in Slack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownCard {
    /// The question it asks.
    pub approval: ApprovalId,
    /// The digest on the card.
    pub digest: String,
    /// The time since when it shows the card, by Slack's clock.
    pub since: MessageTs,
}

impl Posted {
    /// Creates the place of a message that shows no open card.
    pub fn at(channel: ChannelId, ts: MessageTs) -> Self {
        Self { channel, ts, card: None }
    }
}

/// A message that was to be sent some time ago and is still in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The thread whose outbox it is in.
    pub thread: ThreadId,
    /// The message that it fills or changes.
    pub slot: Option<Slot>,
    /// The time from which on it was to be sent.
    pub since: Timestamp,
    /// The number of tries.
    pub attempts: u32,
}

impl Waiting {
    /// Returns the time before which an unsent message must have been due to be reported as late: three minutes ago.
    pub fn late_before(now: Timestamp) -> Timestamp {
        Timestamp(now.millis() - 180_000)
    }
}

/// The result of an attempt to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The message is delivered; with its place, if it fills a slot.
    Delivered(Option<Posted>),
    /// The message is to be tried again at this time; the attempt counts.
    Retry(Timestamp),
    /// It was not tried: Slack was not asked, or did nothing. It is not to be sent before this time, and the attempt
    /// does not count, so that progress can still give way to something newer, or does at once if that is there
    /// already.
    Deferred(Timestamp),
    /// Slack did nothing and asks for a long wait, or for one after the other. It is not to be sent before this time,
    /// and it counts as tried [`TRIED_OFTEN`] times, so that nothing else of the thread waits for it.
    Postponed(Timestamp),
    /// The message is not to be sent, and is of no use to anyone.
    Dropped,
    /// It was refused for good, or tried too often: it is kept as a [`super::DeadLetter`], unless something newer for
    /// its slot waits already.
    Failed {
        /// The reason, in a word: Slack's code.
        reason: String,
        /// The time at which it was given up.
        at: Timestamp,
    },
}
