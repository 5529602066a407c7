//! Names of things, each with a type of its own.
//!
//! Slack's ids are opaque strings: a timestamp that becomes a number loses digits, and two ids of one type in a
//! row get swapped. So bytes are parsed into these where they come in and carried inside as they are.
//! The form of a key in a store is the store's business, not this module's.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::clock::Timestamp;

/// Declares a string that names one kind of thing.
macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps the text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Returns the text as it came in.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

/// Declares a string that names one kind of thing and is made up by us.
macro_rules! fresh_id {
    ($(#[$doc:meta])* $name:ident) => {
        string_id! {
            $(#[$doc])*
            $name
        }

        impl $name {
            /// Creates a name that was never used before.
            pub fn fresh() -> Self {
                Self(uuid::Uuid::new_v4().to_string())
            }
        }
    };
}

string_id! {
    /// A Slack workspace (`T…`), or the organisation (`E…`) where Slack sends no workspace.
    TeamId
}
string_id! {
    /// A Slack conversation: channel (`C…`), private channel (`G…`) or direct message (`D…`).
    ChannelId
}

impl ChannelId {
    /// Returns true if it is a direct message, which nobody else reads.
    pub fn is_direct(&self) -> bool {
        self.as_str().starts_with('D')
    }
}

string_id! {
    /// A Slack user (`U…` or `W…`).
    UserId
}
string_id! {
    /// The time of a message by Slack's clock, which is also its name within its channel. Opaque.
    MessageTs
}

impl MessageTs {
    /// Returns the time at which the message was sent; `None` if it is not a number of seconds.
    pub fn sent_at(&self) -> Option<Timestamp> {
        let (seconds, fraction) = self.as_str().split_once('.')?;
        let millis = seconds.parse::<i64>().ok()?.checked_mul(1000)?;
        Some(Timestamp(millis.checked_add(fraction.get(..3)?.parse().ok()?)?))
    }
}

string_id! {
    /// A graph. A thread belongs to one from its first message on.
    GraphName
}

impl GraphName {
    /// Returns true if it is the graph of a thread that names none.
    pub fn is_default(&self) -> bool {
        self.as_str() == CHAT
    }
}

/// The name of the chat graph.
pub const CHAT: &str = "chat";

/// The chat graph: every thread belonged to it before threads named their graph.
impl Default for GraphName {
    fn default() -> Self {
        Self::new(CHAT)
    }
}

string_id! {
    /// A key by which something is handled only once, such as `event:Ev123` or `message:C1:1700000000.000100`.
    DedupKey
}
fresh_id! {
    /// One pass through a graph: from the message that started it to its answer. The trace id.
    RunId
}
fresh_id! {
    /// One change in the outside world, from proposal to outcome.
    ActionId
}
fresh_id! {
    /// One atomic write; a repeat is recognised by it.
    CommitId
}
string_id! {
    /// One worker of one process, for leases.
    WorkerId
}
string_id! {
    /// A message of ours by its role in the thread, such as `turn:4` or `card:A1`: posted once, edited from then on.
    Slot
}
fresh_id! {
    /// The random key by which a post is recognised in Slack after its answer was lost.
    Nonce
}

/// The number of partitions of a store. Fixed: a thread's partition is part of its keys.
pub const PARTITIONS: u8 = 64;

/// The share of a store that holds one thread with everything that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Partition(u8);

impl Partition {
    /// Returns all partitions, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..PARTITIONS).map(Self)
    }

    /// Returns the number, below [`PARTITIONS`].
    pub fn number(self) -> u8 {
        self.0
    }

    /// Returns the partition to which an arbitrary text is assigned, evenly and for ever.
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes())[0] % PARTITIONS)
    }
}

/// A Slack thread: everything durable is keyed by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadId {
    /// The workspace.
    pub team: TeamId,
    /// The channel.
    pub channel: ChannelId,
    /// The message that opened the thread.
    pub root: MessageTs,
}

impl ThreadId {
    /// Returns the partition that holds this thread.
    pub fn partition(&self) -> Partition {
        Partition::of(&self.to_string())
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.team, self.channel, self.root)
    }
}

impl std::str::FromStr for ThreadId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, '/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(team), Some(channel), Some(root)) if !team.is_empty() && !channel.is_empty() && !root.is_empty() => {
                Ok(Self { team: team.into(), channel: channel.into(), root: root.into() })
            }
            _ => Err(format!(
                "`{text}` is no thread; a thread is written TEAM/CHANNEL/TS, such as T1/C1/1700000000.000100"
            )),
        }
    }
}

/// Names one pending question; travels in a button's value and comes back with the click.
///
/// Random, so that it cannot be guessed, behind two hexadecimal digits with the partition of its record: a click in the
/// App Home or on an ephemeral message carries no thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ApprovalId(String);

impl ApprovalId {
    /// Creates a key for a question in `thread`; `random` is 128 bits from a good source.
    pub fn new(thread: &ThreadId, random: u128) -> Self {
        Self(format!("{:02x}{random:032x}", thread.partition().number()))
    }

    /// Returns the key as it stands in a button.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the partition that holds the record.
    pub fn partition(&self) -> Partition {
        Partition(u8::from_str_radix(&self.0[..2], 16).expect("checked when it was made"))
    }
}

impl TryFrom<String> for ApprovalId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let hexadecimal = text.len() == 34 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let known = hexadecimal && u8::from_str_radix(&text[..2], 16).is_ok_and(|p| p < PARTITIONS);
        if known { Ok(Self(text)) } else { Err("not the key of an approval".to_owned()) }
    }
}

impl From<ApprovalId> for String {
    fn from(id: ApprovalId) -> Self {
        id.0
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread() -> ThreadId {
        ThreadId { team: "T1".into(), channel: "C1".into(), root: "1700000000.000100".into() }
    }

    #[test]
    fn a_thread_reads_back_what_it_writes() {
        assert_eq!(thread().to_string().parse(), Ok(thread()));
        assert!("T1/C1".parse::<ThreadId>().is_err());
    }

    #[test]
    fn an_approval_leads_home_by_itself() {
        let approval = ApprovalId::new(&thread(), 7);
        assert_eq!(approval.partition(), thread().partition());
        assert_eq!(ApprovalId::try_from(approval.to_string()), Ok(approval));
        assert!(ApprovalId::try_from("ff00000000000000000000000000000007".to_owned()).is_err(), "no such partition");
        assert!(ApprovalId::try_from("approve".to_owned()).is_err());
    }
}
