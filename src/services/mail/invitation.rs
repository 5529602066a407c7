//! An invitation to an event, as it came with a mail.

use std::fmt;

use countersign_core::clock::Timestamp;
use jiff::civil::{Date, DateTime};
use serde::{Deserialize, Serialize};

use super::address::Address;

/// An event in a mail: an invitation to it, its cancellation, or the answer of someone who was invited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The purpose of the mail.
    pub kind: InvitationKind,
    /// The title, on one line; possibly empty.
    pub title: String,
    /// The start.
    pub start: EventTime,
    /// The end, if it is later than the start; of whole days, the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<EventTime>,
    /// The place, on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The person who invites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organizer: Option<Address>,
    /// True if the event takes place again and again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
}

/// The purpose of a mail with an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvitationKind {
    /// It invites.
    Invites,
    /// It cancels the event.
    Cancels,
    /// Someone answers an invitation. Contains the answer, such as `accepted`; possibly empty.
    Answers(String),
}

/// A time of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventTime {
    /// The local time as it is written, such as `2025-03-04T10:00`, or the day, such as `2025-03-04`.
    pub written: String,
    /// The name of the time zone, as it is written; `None` for a day, and for a time without a zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The moment, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

impl Invitation {
    /// Returns the time in words: `Tue, Mar 4, 2025, 10:00 AM to 11:00 AM (Europe/Berlin)`.
    pub fn when(&self) -> String {
        let Some(end) = &self.end else { return format!("{}{}", self.start.words(None), self.start.zone_words()) };
        let zone = if end.zone == self.start.zone { String::new() } else { self.start.zone_words() };
        format!("{}{zone} to {}{}", self.start.words(None), end.words(Some(&self.start)), end.zone_words())
    }
}

impl EventTime {
    /// Returns the local time in words, without the day if it is that of `before`.
    fn words(&self, before: Option<&Self>) -> String {
        let day = self.written.get(..10).unwrap_or(&self.written);
        let shown =
            day.parse::<Date>().map_or_else(|_| day.to_owned(), |day| day.strftime("%a, %b %-d, %Y").to_string());
        let time = self.written.parse::<DateTime>().ok().filter(|_| !self.is_day());
        let time = time.map(|at| at.strftime("%-I:%M %p").to_string());
        match time {
            None => shown,
            Some(time) if before.is_some_and(|before| before.written.get(..10) == Some(day)) => time,
            Some(time) => format!("{shown}, {time}"),
        }
    }

    fn zone_words(&self) -> String {
        match &self.zone {
            _ if self.is_day() => String::new(),
            Some(zone) => format!(" ({zone})"),
            None => " (no time zone given)".to_owned(),
        }
    }

    fn is_day(&self) -> bool {
        self.written.len() <= 10
    }
}

impl fmt::Display for Invitation {
    /// Describes the event on one line: title, time, place and organizer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            InvitationKind::Invites => {}
            InvitationKind::Cancels => f.write_str("Canceled: ")?,
            InvitationKind::Answers(answer) if answer.is_empty() => f.write_str("Reply to an invitation: ")?,
            InvitationKind::Answers(answer) => write!(f, "Reply to an invitation ({answer}): ")?,
        }
        let title = if self.title.is_empty() { "(no title)" } else { &self.title };
        write!(f, "{title}, {}", self.when())?;
        if self.repeats {
            f.write_str(", repeats")?;
        }
        if let Some(place) = &self.place {
            write!(f, ", {place}")?;
        }
        match &self.organizer {
            Some(organizer) => write!(f, ", from {organizer}"),
            None => Ok(()),
        }
    }
}
