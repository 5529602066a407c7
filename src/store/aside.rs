//! The places of unreadable entries, and those that this process has found. Each store keeps the entries in its own
//! way.

use std::{collections::HashSet, fmt, str::FromStr, sync::Mutex};

use countersign_core::ids::{Partition, ThreadId};
use countersign_graph::store::{Error, Outbound, Seq, ThreadMessage, why_unreadable};

/// The place of an entry that can be unreadable. Its text is shown to operators and names the entry in the stores.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum StoredPlace {
    /// A message in a thread's mailbox; can be set aside.
    Mailbox(ThreadId, Seq),
    /// A message to be sent; can be set aside.
    Message(ThreadId, Seq),
    /// An interaction; can be set aside.
    Inbox(Partition, Seq),
    /// Anything else. It stays where it is: its kind, and the thread and name.
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

    /// Creates the place of a thread's entry that stays where it is.
    pub(super) fn of_thread(kind: &'static str, thread: &ThreadId, which: impl fmt::Display) -> Self {
        Self::Other(kind, format!("{thread} {which}"))
    }

    /// Returns true if this program can read these bytes in this place, as far as a store knows their format.
    pub(super) fn can_hold(&self, stored: &[u8]) -> bool {
        match self {
            Self::Mailbox(..) => serde_json::from_slice::<ThreadMessage>(stored).is_ok(),
            Self::Message(..) => serde_json::from_slice::<Outbound>(stored).is_ok(),
            Self::Inbox(..) => serde_json::from_slice::<serde_json::Value>(stored).is_ok(),
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

    /// Parses a place from which an entry can be set aside.
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
    /// Notes an unreadable entry, for logs and metrics; returns true the first time.
    pub(super) fn note(&self, place: &StoredPlace, why: &str) -> bool {
        let new = self.0.lock().is_ok_and(|mut found| found.insert(place.clone()));
        if new {
            metrics::counter!("countersign_store_unreadable_total", "kind" => place.kind()).increment(1);
            tracing::error!(place = %place, why, "Something stored cannot be read here and is kept; `countersign check` lists it");
        }
        new
    }

    /// Returns true if this process could not read it.
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
    serde_json::from_slice(stored)
        .map_err(|error| Error::Corrupt { what: format!("{what}: {}", why_unreadable(&error)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_back_from_its_name() {
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
