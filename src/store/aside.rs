//! What cannot be read: its name, and what this process has found of it so far. Both stores keep it in their own way.

use std::{collections::HashSet, fmt, str::FromStr, sync::Mutex};

use countersign_core::ids::{Partition, ThreadId};
use countersign_graph::store::{Error, Outbound, Seq, ThreadMessage, why_unreadable};

/// Something that can be unreadable, by its place. As text it is what operators see, and what stores keep it under.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// A letter; can be set aside.
    Mailbox(ThreadId, Seq),
    /// A message to be sent; can be set aside.
    Message(ThreadId, Seq),
    /// An interaction; can be set aside.
    Inbox(Partition, Seq),
    /// Anything else. It stays where it is: its kind, the thread, and which one.
    Other(&'static str, String),
}

impl Place {
    /// What it is, for metrics.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Mailbox(..) => "letter",
            Self::Message(..) => "message",
            Self::Inbox(..) => "desk",
            Self::Other(kind, _) => kind,
        }
    }

    /// Something of a thread that stays where it is.
    pub(super) fn of_thread(kind: &'static str, thread: &ThreadId, which: impl fmt::Display) -> Self {
        Self::Other(kind, format!("{thread} {which}"))
    }

    /// Whether this program can read these bytes in this place, as far as a store knows what they mean.
    pub(super) fn can_hold(&self, stored: &[u8]) -> bool {
        match self {
            Self::Mailbox(..) => serde_json::from_slice::<ThreadMessage>(stored).is_ok(),
            Self::Message(..) => serde_json::from_slice::<Outbound>(stored).is_ok(),
            Self::Inbox(..) => serde_json::from_slice::<serde_json::Value>(stored).is_ok(),
            Self::Other(..) => false,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mailbox(thread, seq) => write!(f, "letter {thread} {seq}"),
            Self::Message(thread, seq) => write!(f, "message {thread} {seq}"),
            Self::Inbox(partition, seq) => write!(f, "desk {:02} {seq}", partition.number()),
            Self::Other(kind, which) => write!(f, "{kind} {which}"),
        }
    }
}

impl FromStr for Place {
    type Err = ();

    /// A place from which something can be set aside.
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

/// What this process could not read so far.
#[derive(Debug, Default)]
pub(super) struct Found(Mutex<HashSet<Place>>);

impl Found {
    /// Notes something that cannot be read, for logs and metrics; `true` the first time.
    pub(super) fn note(&self, place: &Place, why: &str) -> bool {
        let new = self.0.lock().is_ok_and(|mut found| found.insert(place.clone()));
        if new {
            metrics::counter!("countersign_store_unreadable_total", "kind" => place.kind()).increment(1);
            tracing::error!(place = %place, why, "Something stored cannot be read here and is kept; `countersign check` lists it");
        }
        new
    }

    /// Whether this process could not read it.
    pub(super) fn has(&self, place: &Place) -> bool {
        self.0.lock().is_ok_and(|found| found.contains(place))
    }
}

/// Why something could not be read, without a word of what it says.
pub(super) fn why(error: &Error) -> String {
    match error {
        Error::Corrupt { what } => what.clone(),
        error => error.to_string(),
    }
}

/// A stored value; `what` says where it was, if it cannot be read.
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
        for place in
            [Place::Mailbox(thread.clone(), 5), Place::Message(thread.clone(), 6), Place::Inbox(thread.partition(), 7)]
        {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        assert!(
            Place::of_thread("action", &thread, "a1").to_string().parse::<Place>().is_err(),
            "it stays where it is"
        );
        let found = Found::default();
        let place = Place::Inbox(thread.partition(), 7);
        assert!(
            !found.has(&place) && found.note(&place, "no reason") && !found.note(&place, "again") && found.has(&place)
        );
    }
}
