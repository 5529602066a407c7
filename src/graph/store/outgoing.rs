//! What is said, and what became of it.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, ChannelId, MessageTs, Nonce, Slot, ThreadId, UserId},
    reply::{Card, CardState, Reply},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Seq;

/// After so many tries without success a message holds up nobody: later messages of its thread, except those of its own
/// slot, go before it, and those concerned learn that it is not there. With waits of 1, 2, 4, … s that is a minute after
/// the first try: a short outage leaves the order of a thread as it is.
pub const TRIED_OFTEN: u32 = 7;

/// A message to be said, in order within its thread (see [`TRIED_OFTEN`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outgoing {
    /// The message it is, for what is posted once and edited afterwards.
    pub slot: Option<Slot>,
    /// Finds the post in Slack after its answer was lost.
    pub nonce: Nonce,
    /// Whether it only tells of progress: it may be dropped for something newer, and everything else overtakes it.
    pub progress: bool,
    /// Not to be sent before.
    pub not_before: Timestamp,
    /// What is said.
    pub body: Outbound,
}

/// What can be said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[expect(clippy::large_enum_variant, reason = "few exist at a time, and each is written out at once")]
pub enum Outbound {
    /// The line that tells what is being done.
    Status {
        /// One short phrase.
        text: String,
    },
    /// An answer.
    Reply {
        /// What it says.
        reply: Reply,
    },
    /// The card of an action.
    Card {
        /// What it asks.
        card: Card,
        /// How it stands.
        state: CardState,
    },
    /// The card of an action as its record has it when it is sent, in place of what its message says: whoever asks for
    /// this may know an older state than others do.
    Redraw {
        /// Which.
        action: ActionId,
    },
    /// A file.
    File {
        /// Its name.
        name: String,
        /// What stands above it.
        title: String,
        /// What is in it, by its hash ([`super::Store::put_blob`]).
        hash: String,
    },
    /// A word to one person, in their direct messages and not in the thread, with a link to a card.
    Direct {
        /// Who.
        to: UserId,
        /// The message the card is on.
        card: Slot,
        /// What it says.
        reply: Reply,
    },
    /// Takes the message of the slot away, if there is one.
    Remove,
    /// A message by another way than Slack.
    Elsewhere {
        /// The name of the way.
        channel: String,
        /// What is said, in the words of that way.
        body: Value,
    },
}

/// An outgoing message that this worker is to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The thread whose outbox it is in.
    pub thread: ThreadId,
    /// Its position.
    pub seq: Seq,
    /// How often it was tried before: if it was, and the slot is not posted yet, look before posting.
    pub attempts: u32,
    /// Where the slot's message is, if it is posted.
    pub posted: Option<Posted>,
    /// The message.
    pub outgoing: Outgoing,
}

/// Where a message of ours is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    /// The channel.
    pub channel: ChannelId,
    /// The message.
    pub ts: MessageTs,
    /// The open card that it shows, if it shows one. Unknown of what an earlier version posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<ShownCard>,
}

/// An open card, as it can be read in Slack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownCard {
    /// The question it asks.
    pub approval: ApprovalId,
    /// The digest that stands on it.
    pub digest: String,
    /// Since when, by Slack's clock.
    pub since: MessageTs,
}

impl Posted {
    /// A message that shows no open card.
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
    /// From when on it was to be sent.
    pub since: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
}

impl Waiting {
    /// What was to be sent before this waits for so long, three minutes, that it is told.
    pub fn late_before(now: Timestamp) -> Timestamp {
        Timestamp(now.millis() - 180_000)
    }
}

/// What became of an attempt to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is there; where, if it fills a slot.
    Delivered(Option<Posted>),
    /// Again at this time; the attempt counts.
    Retry(Timestamp),
    /// It was not tried: Slack was not asked, or did nothing. Not before this time, and the attempt does not count, so
    /// that progress can still give way to something newer, or does at once if that is there already.
    Deferred(Timestamp),
    /// Slack did nothing and asks for a long wait, or for one after the other. Not before this time, and it counts as tried
    /// [`TRIED_OFTEN`] times, so that nothing else of the thread waits for it.
    Postponed(Timestamp),
    /// It is not to be sent, and nobody misses it.
    Dropped,
    /// It was refused for good, or tried too often: it is kept as a [`super::DeadLetter`], unless something newer for its
    /// slot waits already.
    Failed {
        /// Why, in a word: Slack's code.
        reason: String,
        /// When it was given up.
        at: Timestamp,
    },
}
