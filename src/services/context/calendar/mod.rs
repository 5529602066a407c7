//! The calendar of one person: free times, events, and new events.
//!
//! [`free`] computes free times from busy ones and knows no service. [`google`] is the client of Google Calendar.

pub mod free;
pub mod google;

use std::fmt::{self, Debug};

use async_trait::async_trait;
use countersign_core::clock::Timestamp;
use jiff::{Zoned, tz::TimeZone};
use serde::{Deserialize, Serialize};

pub use self::free::WorkingHours;
use crate::{contact::one_line, error::ContextError};

/// The maximum number of days of a request.
pub const MAX_DAYS: u32 = 31;

/// The maximum length of the title of an event, in characters.
pub const MAX_TITLE: usize = 500;

/// The maximum length of the description of an event, in characters.
pub const MAX_DESCRIPTION: usize = 8_000;

/// The maximum number of people who are invited to an event.
pub const MAX_ATTENDEES: usize = 20;

/// A time from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// The beginning.
    pub start: Timestamp,
    /// The end.
    pub end: Timestamp,
}

impl Span {
    /// Returns true if both have a moment in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end && self.start < self.end && other.start < other.end
    }
}

/// A free time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// The beginning.
    pub start: Timestamp,
    /// The end.
    pub end: Timestamp,
    /// The length in whole minutes, at least 1.
    pub duration_minutes: u32,
}

impl Slot {
    /// Describes the slot in a time zone: `Tue 2026-11-24 09:00–10:30`.
    pub fn in_zone(&self, zone: &TimeZone) -> String {
        describe(Span { start: self.start, end: self.end }, zone)
    }
}

/// An event of the calendar.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The id of the calendar.
    pub id: String,
    /// The title; empty if it has none, or if it may not be read.
    pub title: String,
    /// The beginning and the end. All-day events begin and end at midnight.
    pub span: Span,
    /// True if the event is about days rather than times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_all_day: bool,
    /// The address of the event's page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

impl Event {
    /// Describes the event in one line: `Planning (Tue 2026-11-24 09:00–10:30)`.
    pub fn line(&self, zone: &TimeZone) -> String {
        let title = if self.title.is_empty() { "Busy".to_owned() } else { one_line(&self.title) };
        match self.is_all_day {
            true => format!("{title} ({}, all day)", zoned(self.span.start, zone).strftime("%a %Y-%m-%d")),
            false => format!("{title} ({})", describe(self.span, zone)),
        }
    }
}

impl Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("id", &self.id).field("span", &self.span).finish_non_exhaustive()
    }
}

/// An event to be created.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewEvent {
    /// A key that identifies the event: it is created once, however often it is sent. At most 200 bytes.
    pub key: String,
    /// The title.
    pub title: String,
    /// The beginning and the end.
    pub span: Span,
    /// The name of the time zone in which the event is shown, such as `Europe/Berlin`.
    pub time_zone: String,
    /// The addresses of the people who are invited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attendees: Vec<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Debug for NewEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewEvent").field("key", &self.key).field("span", &self.span).finish_non_exhaustive()
    }
}

/// The calendar of one person.
#[async_trait]
pub trait Calendar: Send + Sync + Debug {
    /// Returns the free times within working hours, from `from` to the end of the day `days - 1` days later in the
    /// time zone, never before `now`.
    ///
    /// # Errors
    ///
    /// Fails if the calendar cannot be read.
    async fn free(
        &self,
        from: Timestamp,
        days: u32,
        zone: &TimeZone,
        now: Timestamp,
    ) -> Result<Vec<Slot>, ContextError>;

    /// Returns the busy times that overlap a proposed one.
    ///
    /// # Errors
    ///
    /// Fails if the calendar cannot be read.
    async fn conflicts(&self, proposed: Span) -> Result<Vec<Span>, ContextError>;

    /// Returns the next events, from `now` to the end of the day `days - 1` days later.
    ///
    /// # Errors
    ///
    /// Fails if the calendar cannot be read.
    async fn upcoming(
        &self,
        now: Timestamp,
        days: u32,
        zone: &TimeZone,
        limit: usize,
    ) -> Result<Vec<Event>, ContextError>;

    /// Creates an event and invites people, under the permit of the current action. If there is one with the same key,
    /// it is returned.
    ///
    /// # Errors
    ///
    /// [`ContextError::NoAnswer`] if the outcome is not known; [`Self::find`] tells it later.
    async fn create(&self, event: &NewEvent) -> Result<Event, ContextError>;

    /// Returns the event that was created with a key.
    ///
    /// # Errors
    ///
    /// Fails if the calendar cannot be read.
    async fn find(&self, key: &str, zone: &TimeZone) -> Result<Option<Event>, ContextError>;

    /// Checks that the calendar can be read, and describes it in one line.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    async fn check(&self) -> Result<String, ContextError>;
}

/// Returns a moment in a time zone.
fn zoned(at: Timestamp, zone: &TimeZone) -> Zoned {
    jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default().to_zoned(zone.clone())
}

/// Describes a span in a time zone.
fn describe(span: Span, zone: &TimeZone) -> String {
    let (start, end) = (zoned(span.start, zone), zoned(span.end, zone));
    let end_form = if start.date() == end.date() { "%H:%M" } else { "%a %Y-%m-%d %H:%M" };
    format!("{}–{}", start.strftime("%a %Y-%m-%d %H:%M"), end.strftime(end_form))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    #[test]
    fn events_and_slots_are_described_in_the_time_zone() {
        let zone = TimeZone::get("America/New_York").unwrap();
        let span = Span { start: at("2026-11-24T14:00:00Z"), end: at("2026-11-24T15:30:00Z") };
        let event = Event { id: "1".into(), title: "Planning\nQ1".into(), span, is_all_day: false, link: None };
        assert_eq!(event.line(&zone), "Planning Q1 (Tue 2026-11-24 09:00–10:30)");
        let slot = Slot { start: span.start, end: span.end, duration_minutes: 90 };
        assert_eq!(slot.in_zone(&zone), "Tue 2026-11-24 09:00–10:30");
        let night = Span { start: at("2026-11-25T04:00:00Z"), end: at("2026-11-25T06:00:00Z") };
        assert_eq!(describe(night, &zone), "Tue 2026-11-24 23:00–Wed 2026-11-25 01:00");
        assert!(!format!("{event:?}").contains("Planning"));
    }
}
