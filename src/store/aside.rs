//! The places of unreadable entries, and a record of the entries that this process could not read.
//! Each store keeps such entries in its own way.

use std::{borrow::Cow, collections::HashSet, fmt, str::FromStr, sync::Mutex};

use countersign_core::ids::{Partition, ThreadId};
use countersign_graph::store::{Error, Outbound, Seq, ThreadMessage, Versioned, read_versioned, why_unreadable};

use crate::packed;

/// The place of an entry that cannot be read. Its text is shown to operators and identifies the
/// entry in the stores.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum StoredPlace {
    /// A message in a thread's mailbox, which can be set aside.
    Mailbox(ThreadId, Seq),
    /// An outgoing message, which can be set aside.
    Message(ThreadId, Seq),
    /// An interaction, which can be set aside.
    Inbox(Partition, Seq),
    /// Any other entry, which stays where it is: its kind, and its thread and name.
    Other(&'static str, String),
}

impl StoredPlace {
    /// Returns the kind, for metrics.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Mailbox(..) => "letter",
            Self::Message(..) => "message",
            Self::Inbox(..) => "desk",
            Self::Other(kind, _) => kind,
        }
    }

    /// Creates the place of an entry of a thread that stays where it is.
    pub(super) fn of_thread(kind: &'static str, thread: &ThreadId, which: impl fmt::Display) -> Self {
        Self::Other(kind, format!("{thread} {which}"))
    }

    /// Returns true if this program can read these bytes in this place, as far as a store knows the
    /// format.
    pub(super) fn can_hold(&self, stored: &[u8]) -> bool {
        let what = "an entry";
        match self {
            Self::Mailbox(..) => parse::<ThreadMessage>(what, stored).is_ok(),
            Self::Message(..) => parse::<Outbound>(what, stored).is_ok(),
            Self::Inbox(..) => parse::<serde_json::Value>(what, stored).is_ok(),
            Self::Other(..) => false,
        }
    }
}

impl fmt::Display for StoredPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mailbox(thread, seq) => write!(f, "letter {thread} {seq}"),
            Self::Message(thread, seq) => write!(f, "message {thread} {seq}"),
            Self::Inbox(partition, seq) => write!(f, "desk {:02} {seq}", partition.number()),
            Self::Other(kind, which) => write!(f, "{kind} {which}"),
        }
    }
}

impl FromStr for StoredPlace {
    type Err = ();

    /// Parses a place; only places whose entries can be set aside are accepted.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, ' ');
        let (Some(kind), Some(owner), Some(seq)) = (parts.next(), parts.next(), parts.next()) else { return Err(()) };
        let seq = seq.parse().map_err(|_| ())?;
        let thread = || owner.parse::<ThreadId>().map_err(|_| ());
        match kind {
            "letter" => Ok(Self::Mailbox(thread()?, seq)),
            "message" => Ok(Self::Message(thread()?, seq)),
            "desk" => {
                let number = owner.parse::<u8>().map_err(|_| ())?;
                let partition = Partition::all().find(|partition| partition.number() == number).ok_or(())?;
                Ok(Self::Inbox(partition, seq))
            }
            _ => Err(()),
        }
    }
}

/// The entries that this process could not read so far.
#[derive(Debug, Default)]
pub(super) struct UnreadableEntries(Mutex<HashSet<StoredPlace>>);

impl UnreadableEntries {
    /// Records an unreadable entry, and logs and counts it the first time. Returns true the first
    /// time.
    pub(super) fn note(&self, place: &StoredPlace, why: &str) -> bool {
        let new = self.0.lock().is_ok_and(|mut found| found.insert(place.clone()));
        if new {
            metrics::counter!("countersign_store_unreadable_total", "kind" => place.kind()).increment(1);
            tracing::error!(place = %place, why, "A stored entry cannot be read by this process and is kept; `countersign check` lists it");
        }
        new
    }

    /// Returns true if this process could not read the entry.
    pub(super) fn has(&self, place: &StoredPlace) -> bool {
        self.0.lock().is_ok_and(|found| found.contains(place))
    }
}

/// Describes why an entry could not be read, without any of its contents.
pub(super) fn reason_of(error: &Error) -> String {
    match error {
        Error::Corrupt { what } => what.clone(),
        error => error.to_string(),
    }
}

/// Parses a stored value; `what` names its place in an error.
pub(super) fn parse<T: serde::de::DeserializeOwned>(what: &str, stored: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(&unpack(what, stored)?)
        .map_err(|error| Error::Corrupt { what: format!("{what}: {}", why_unreadable(&error)) })
}

/// Parses a stored value that names the version of its format; `known` is the newest one that this program knows.
pub(super) fn parse_versioned<T: Versioned>(what: &str, stored: &[u8], known: u32) -> Result<T, Error> {
    read_versioned(what, &unpack(what, stored)?, known)
}

/// Returns the text of a packed value.
pub(super) fn unpack<'a>(what: &str, stored: &'a [u8]) -> Result<Cow<'a, [u8]>, Error> {
    packed::unpack(stored).map_err(|error| Error::Corrupt { what: format!("{what}: {error}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_parsed_from_its_name() {
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.1".into() };
        for place in [
            StoredPlace::Mailbox(thread.clone(), 5),
            StoredPlace::Message(thread.clone(), 6),
            StoredPlace::Inbox(thread.partition(), 7),
        ] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        assert!(
            StoredPlace::of_thread("action", &thread, "a1").to_string().parse::<StoredPlace>().is_err(),
            "it stays where it is"
        );
        let found = UnreadableEntries::default();
        let place = StoredPlace::Inbox(thread.partition(), 7);
        assert!(
            !found.has(&place) && found.note(&place, "no reason") && !found.note(&place, "again") && found.has(&place)
        );
    }
}
