//! Identifiers, each with a type of its own.
//!
//! Slack's ids are opaque strings: a timestamp would lose digits as a number, and adjacent arguments of the same type
//! are easily swapped. So ids get these types where they arrive, and their text is never changed. Copies of
//! an id share its text unless it is short, so an id is cheap to copy. The format of keys in a store is up to the store.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use smol_str::SmolStr;

use crate::{clock::Timestamp, hash::sha256};

/// Declares a string type for the ids of one kind of thing. The caller imports [`fmt`] and the traits of serde.
#[macro_export]
macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name($crate::SmolStr);

        impl $name {
            /// Wraps the text unchanged.
            pub fn new(text: impl Into<$crate::SmolStr>) -> Self {
                Self(text.into())
            }

            /// Returns the text unchanged.
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
                Self(text.into())
            }
        }
    };
}

/// Declares a string type for ids that we generate ourselves.
macro_rules! fresh_id {
    ($(#[$doc:meta])* $name:ident) => {
        string_id! {
            $(#[$doc])*
            $name
        }

        impl $name {
            /// Creates a random id that was never used before.
            pub fn fresh() -> Self {
                Self::new(uuid::Uuid::new_v4().to_string())
            }
        }
    };
}

string_id! {
    /// The id of a Slack workspace (`T…`), or of the organisation (`E…`) if Slack sends no workspace.
    TeamId
}
string_id! {
    /// The id of a Slack conversation: channel (`C…`), private channel (`G…`) or direct message (`D…`).
    ChannelId
}

impl ChannelId {
    /// Returns true if the conversation is a direct message with the bot, which nobody else can read.
    pub fn is_direct(&self) -> bool {
        self.as_str().starts_with('D')
    }
}

string_id! {
    /// The id of a Slack user (`U…` or `W…`).
    UserId
}

/// The beginning of the ids of keys. No person has such an id, since Slack's have only letters and digits.
const KEY: &str = "key:";

impl UserId {
    /// Returns the id under which a program asks that signs in with the API key of this name. No person can have it.
    pub fn of_key(name: &str) -> Self {
        Self::new(format!("{KEY}{name}"))
    }

    /// Returns the name of the API key, if a program asks and not a person.
    pub fn key(&self) -> Option<&str> {
        self.0.strip_prefix(KEY)
    }
}

string_id! {
    /// The time of a message by Slack's clock, which identifies the message within its channel. Opaque.
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
    /// The name of a graph. Each thread belongs to one graph from its first message on.
    GraphName
}

impl GraphName {
    /// Returns true if this is the graph of threads that name none.
    pub fn is_default(&self) -> bool {
        self.as_str() == CHAT
    }
}

/// The name of the chat graph.
pub const CHAT: &str = "chat";

/// The default is the chat graph, to which all threads belonged before they named their graph.
impl Default for GraphName {
    fn default() -> Self {
        Self::new(CHAT)
    }
}

string_id! {
    /// A deduplication key, such as `event:Ev123` or `message:C1:1700000000.000100`. Of several things with the same
    /// key, only the first is handled.
    DedupKey
}
fresh_id! {
    /// The id of one pass through a graph, from the message that started it to the answer. Also the trace id.
    RunId
}
fresh_id! {
    /// The id of one change in the outside world, from proposal to outcome.
    ActionId
}
fresh_id! {
    /// The id of one atomic write, by which a repeated write is recognised.
    CommitId
}
string_id! {
    /// The id of one worker of one process, for leases.
    WorkerId
}
string_id! {
    /// The role of one of our messages in a thread, such as `turn:4` or `card:A1`. The message is posted once and
    /// edited afterwards.
    Slot
}
fresh_id! {
    /// A random key by which a message is found in Slack if the answer to its posting was lost.
    Nonce
}

/// The number of partitions of a store. It must not change, since a thread's partition is part of its keys.
pub const PARTITIONS: u8 = 64;

/// A part of a store. A thread and everything that belongs to it are in the same partition.
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

    /// Returns the partition of a text: always the same one, and evenly distributed over texts.
    pub fn of(text: &str) -> Self {
        Self(sha256(text.as_bytes())[0] % PARTITIONS)
    }
}

/// The id of a Slack thread, by which all durable data is keyed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadId {
    /// The workspace.
    pub team: TeamId,
    /// The channel.
    pub channel: ChannelId,
    /// The first message of the thread.
    pub root: MessageTs,
}

impl ThreadId {
    /// Returns the partition of this thread.
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
            _ => Err(format!("`{text}` isn't a thread; write it as TEAM/CHANNEL/TS, such as T1/C1/1700000000.000100")),
        }
    }
}

/// The id of a pending question. It is sent in the value of a button and returned with the click.
///
/// It consists of two hexadecimal digits for the partition of its record, since a click in the App Home or on an
/// ephemeral message carries no thread, and a random part, so that it cannot be guessed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "SmolStr")]
pub struct ApprovalId(SmolStr);

impl ApprovalId {
    /// Creates an id for a question in `thread`. `random` must come from a cryptographically secure source.
    pub fn new(thread: &ThreadId, random: u128) -> Self {
        Self(format!("{:02x}{random:032x}", thread.partition().number()).into())
    }

    /// Returns the id as in the value of a button.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the partition of the record.
    pub fn partition(&self) -> Partition {
        Partition(u8::from_str_radix(&self.0[..2], 16).expect("validated on creation"))
    }
}

impl Serialize for ApprovalId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl TryFrom<String> for ApprovalId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        SmolStr::from(text).try_into()
    }
}

impl TryFrom<SmolStr> for ApprovalId {
    type Error = String;

    fn try_from(text: SmolStr) -> Result<Self, String> {
        let hexadecimal = text.len() == 34 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let known = hexadecimal && u8::from_str_radix(&text[..2], 16).is_ok_and(|p| p < PARTITIONS);
        if known { Ok(Self(text)) } else { Err("not the key of an approval".to_owned()) }
    }
}

impl From<ApprovalId> for String {
    fn from(id: ApprovalId) -> Self {
        id.0.into()
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
    fn an_approval_id_contains_its_partition() {
        let approval = ApprovalId::new(&thread(), 7);
        assert_eq!(approval.partition(), thread().partition());
        assert_eq!(ApprovalId::try_from(approval.to_string()), Ok(approval));
        assert!(ApprovalId::try_from("ff00000000000000000000000000000007".to_owned()).is_err(), "no such partition");
        assert!(ApprovalId::try_from("approve".to_owned()).is_err());
    }
}
