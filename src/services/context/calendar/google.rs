//! The client of Google Calendar (API v3).
//!
//! A new event gets an id that follows from its key. Google refuses a second event with the same id, so sending a
//! request twice creates one event.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::clock::Timestamp;
use countersign_services::google::TokenSource;
use jiff::{civil::Date, tz::TimeZone};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

use super::{
    Calendar, Event, MAX_ATTENDEES, MAX_DAYS, MAX_DESCRIPTION, MAX_TITLE, NewEvent, Slot, Span, WorkingHours, free,
};
pub use crate::calls::Waits;
use crate::{
    calls::{Call, Credentials, Service},
    contact,
    error::ContextError,
    item::storable,
};

/// The name of the service in errors.
const WHAT: &str = "Google Calendar";

/// The scopes that the client needs.
pub const SCOPES: [&str; 2] =
    ["https://www.googleapis.com/auth/calendar.events", "https://www.googleapis.com/auth/calendar.freebusy"];

/// The maximum number of events of an answer.
const MAX_EVENTS: usize = 250;

/// The maximum length of a key, in bytes. Its id has twice as many characters; Google allows 1,024.
const MAX_KEY: usize = 200;

/// The address and the credentials of Google Calendar.
#[derive(Clone, Debug)]
pub struct GoogleCalendarSettings {
    /// The base address, usually `https://www.googleapis.com/calendar/v3`.
    pub base_url: Url,
    /// The id of the calendar: `primary`, or an address.
    pub calendar: String,
    /// The source of access tokens.
    pub tokens: Arc<TokenSource>,
    /// The working hours of the person.
    pub hours: WorkingHours,
    /// The time limit of a call.
    pub timeout: Duration,
    /// The waits between attempts of a read.
    pub waits: Waits,
}

/// A calendar of Google.
#[derive(Debug)]
pub struct GoogleCalendar {
    service: Service,
    calendar: String,
    hours: WorkingHours,
}

/// The answer about busy times.
#[derive(Deserialize)]
struct FreeBusy {
    calendars: BTreeMap<String, Busy>,
}

#[derive(Deserialize)]
struct Busy {
    #[serde(default)]
    busy: Vec<BusySpan>,
    #[serde(default)]
    errors: Vec<Value>,
}

#[derive(Deserialize)]
struct BusySpan {
    start: jiff::Timestamp,
    end: jiff::Timestamp,
}

/// The answer about events.
#[derive(Deserialize)]
struct Events {
    #[serde(default)]
    items: Vec<Entry>,
}

/// An event as Google describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    id: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    summary: String,
    start: Moment,
    end: Moment,
    html_link: Option<String>,
}

/// A time, or a day.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Moment {
    date_time: Option<jiff::Timestamp>,
    date: Option<Date>,
}

impl GoogleCalendar {
    /// Creates a client. Makes no call yet.
    ///
    /// # Errors
    ///
    /// [`ContextError::Unavailable`] if TLS is not available on this machine.
    pub fn new(settings: GoogleCalendarSettings) -> Result<Self, ContextError> {
        let GoogleCalendarSettings { base_url, calendar, tokens, hours, timeout, waits } = settings;
        let service = Service::new(WHAT, &base_url, Credentials::Google(tokens), timeout, waits)?;
        Ok(Self { service, calendar, hours })
    }

    /// Reads the busy times in a span.
    async fn busy(&self, within: Span) -> Result<Vec<Span>, ContextError> {
        if within.start >= within.end {
            return Ok(Vec::new());
        }
        let body = json!({
            "timeMin": text(within.start),
            "timeMax": text(within.end),
            "items": [{ "id": self.calendar }],
        });
        let call = Call { body: Some(&body), ..Call::new(&Method::POST, "/freeBusy") };
        let mut answer: FreeBusy = self.service.read(call).await?;
        // A calendar is usually listed under the id in the request.
        let busy = match answer.calendars.remove(&self.calendar) {
            Some(busy) => Some(busy),
            None => answer.calendars.into_values().next(),
        };
        let busy = busy.ok_or_else(|| ContextError::decode(WHAT, "the calendar is missing from it"))?;
        if let Some(error) = busy.errors.first() {
            let reason = error["reason"].as_str().filter(|reason| reason.len() <= 64).unwrap_or("unknown error");
            return Err(ContextError::Refused { what: WHAT, status: None, reason: reason.to_owned() });
        }
        Ok(busy.busy.iter().map(|span| Span { start: millis(span.start), end: millis(span.end) }).collect())
    }

    /// Returns the path of the calendar's events.
    fn events(&self) -> String {
        format!("/calendars/{}/events", form_urlencoded::byte_serialize(self.calendar.as_bytes()).collect::<String>())
    }
}

#[async_trait]
impl Calendar for GoogleCalendar {
    async fn free(
        &self,
        from: Timestamp,
        days: u32,
        zone: &TimeZone,
        now: Timestamp,
    ) -> Result<Vec<Slot>, ContextError> {
        let window = free::window(from, days, zone, now);
        let busy = self.busy(window).await?;
        Ok(free::free(&busy, window, self.hours, zone))
    }

    async fn conflicts(&self, proposed: Span) -> Result<Vec<Span>, ContextError> {
        let busy = self.busy(proposed).await?;
        Ok(busy.into_iter().filter(|span| span.overlaps(proposed)).collect())
    }

    async fn upcoming(
        &self,
        now: Timestamp,
        days: u32,
        zone: &TimeZone,
        limit: usize,
    ) -> Result<Vec<Event>, ContextError> {
        let end = free::window(now, days.min(MAX_DAYS), zone, now).end;
        let query = [
            ("timeMin", text(now)),
            ("timeMax", text(end)),
            ("singleEvents", "true".to_owned()),
            ("orderBy", "startTime".to_owned()),
            ("maxResults", limit.clamp(1, MAX_EVENTS).to_string()),
        ];
        let path = self.events();
        let answer: Events = self.service.read(Call { query: &query, ..Call::new(&Method::GET, &path) }).await?;
        let events = answer.items.iter().filter(|entry| entry.status != "cancelled");
        events.take(limit).map(|entry| event_of(entry, zone)).collect()
    }

    async fn create(&self, event: &NewEvent) -> Result<Event, ContextError> {
        let zone = TimeZone::get(&event.time_zone).map_err(|_| {
            ContextError::invalid("The time zone of the event is unknown. It must look like Europe/Berlin.")
        })?;
        let (id, body) = (id_of(&event.key)?, body_of(event)?);
        let (path, query) = (self.events(), [("sendUpdates", "all".to_owned())]);
        let call = Call { query: &query, body: Some(&body), ..Call::new(&Method::POST, &path) };
        match self.service.change::<Entry>(call).await {
            Ok(entry) if entry.id == id => event_of(&entry, &zone),
            Ok(_) => {
                Err(ContextError::NoAnswer { what: WHAT, reason: "its answer is about a different event".to_owned() })
            }
            // It was created by an earlier request.
            Err(refused @ ContextError::Refused { status: Some(409), .. }) => {
                self.find(&event.key, &zone).await?.ok_or(refused)
            }
            Err(error) => Err(error),
        }
    }

    async fn find(&self, key: &str, zone: &TimeZone) -> Result<Option<Event>, ContextError> {
        let path = format!("{}/{}", self.events(), id_of(key)?);
        match self.service.read::<Entry>(Call::new(&Method::GET, &path)).await {
            Ok(entry) if entry.status == "cancelled" => Ok(None),
            Ok(entry) => event_of(&entry, zone).map(Some),
            Err(ContextError::Refused { status: Some(404 | 410), .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn check(&self) -> Result<String, ContextError> {
        let query = [("maxResults", "1".to_owned())];
        let path = self.events();
        self.service.read::<Events>(Call { query: &query, ..Call::new(&Method::GET, &path) }).await?;
        Ok("Google Calendar answers, and the events can be read".to_owned())
    }
}

/// Returns the id of an event with a key: its bytes in hexadecimal digits, which Google allows.
fn id_of(key: &str) -> Result<String, ContextError> {
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(ContextError::invalid(format!(
            "The key of the event has {} bytes. It must have 1 to {MAX_KEY}.",
            key.len()
        )));
    }
    let digits: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("cs{digits}"))
}

/// Returns the body of a request for a new event.
fn body_of(event: &NewEvent) -> Result<Value, ContextError> {
    let NewEvent { key, title, span, time_zone, attendees, description } = event;
    if span.start >= span.end {
        return Err(ContextError::invalid("The event ends before it begins."));
    }
    if attendees.len() > MAX_ATTENDEES {
        return Err(ContextError::invalid(format!(
            "The event has {} attendees. It can have at most {MAX_ATTENDEES}.",
            attendees.len()
        )));
    }
    let attendees: Vec<_> = attendees
        .iter()
        .map(|address| Ok(json!({ "email": contact::checked(address)? })))
        .collect::<Result<_, ContextError>>()?;
    let moment = |at| json!({ "dateTime": text(at), "timeZone": time_zone });
    let mut body = json!({
        "id": id_of(key)?,
        "summary": storable(&contact::one_line(title), MAX_TITLE),
        "start": moment(span.start),
        "end": moment(span.end),
        "attendees": attendees,
    });
    if let Some(description) = description {
        body["description"] = json!(storable(description, MAX_DESCRIPTION));
    }
    Ok(body)
}

fn event_of(entry: &Entry, zone: &TimeZone) -> Result<Event, ContextError> {
    let unclear = || ContextError::decode(WHAT, "an event has no time");
    let moment = |moment: &Moment| match (moment.date_time, moment.date) {
        (Some(at), _) => Some(millis(at)),
        (None, Some(day)) => day.to_zoned(zone.clone()).ok().map(|at| millis(at.timestamp())),
        (None, None) => None,
    };
    let span = Span { start: moment(&entry.start).ok_or_else(unclear)?, end: moment(&entry.end).ok_or_else(unclear)? };
    Ok(Event {
        id: entry.id.clone(),
        title: storable(&entry.summary, MAX_TITLE),
        span,
        is_all_day: entry.start.date_time.is_none(),
        link: entry.html_link.clone().filter(|link| link.starts_with("https://")),
    })
}

fn millis(at: jiff::Timestamp) -> Timestamp {
    Timestamp(at.as_millisecond())
}

/// Returns a time as Google reads it.
fn text(at: Timestamp) -> String {
    at.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_event() -> NewEvent {
        NewEvent {
            key: "mail-1/event".into(),
            title: "Call with Alice".into(),
            span: Span { start: Timestamp(0), end: Timestamp(1_800_000) },
            time_zone: "Europe/Berlin".into(),
            attendees: vec!["Alice <Alice@Example.com>".into()],
            description: None,
        }
    }

    #[test]
    fn a_new_event_has_an_id_that_follows_from_its_key() {
        let body = body_of(&new_event()).unwrap();
        assert_eq!(
            body,
            json!({
                "id": "cs6d61696c2d312f6576656e74",
                "summary": "Call with Alice",
                "start": { "dateTime": "1970-01-01T00:00:00.000Z", "timeZone": "Europe/Berlin" },
                "end": { "dateTime": "1970-01-01T00:30:00.000Z", "timeZone": "Europe/Berlin" },
                "attendees": [{ "email": "alice@example.com" }],
            })
        );
        assert!(id_of("").is_err() && id_of(&"k".repeat(201)).is_err());
    }

    #[test]
    fn an_event_that_cannot_be_is_not_sent() {
        let event = NewEvent { span: Span { start: Timestamp(5), end: Timestamp(5) }, ..new_event() };
        assert!(matches!(body_of(&event), Err(ContextError::Invalid { .. })));
        let event = NewEvent { attendees: vec!["nobody".into()], ..new_event() };
        assert!(matches!(body_of(&event), Err(ContextError::Invalid { .. })));
        let event = NewEvent { attendees: vec!["a@b.c".into(); 21], ..new_event() };
        assert!(matches!(body_of(&event), Err(ContextError::Invalid { .. })));
    }

    #[test]
    fn a_day_begins_and_ends_at_midnight_of_the_time_zone() {
        let entry =
            json!({ "id": "1", "summary": "Fair", "start": { "date": "2026-11-24" }, "end": { "date": "2026-11-25" } });
        let entry: Entry = serde_json::from_value(entry).unwrap();
        let zone = TimeZone::get("America/New_York").unwrap();
        let event = event_of(&entry, &zone).unwrap();
        assert_eq!(event.line(&zone), "Fair (Tue 2026-11-24, all day)");
        assert_eq!(event.span.end.since(event.span.start), Duration::from_secs(24 * 3600));
    }
}
