//! The handling of requests on the state of the calendar.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use countersign_core::clock::Timestamp;
use jiff::{civil::Date, tz::TimeZone};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Invitation, StoredEvent};
use crate::{
    call::{Call, Reply, Service},
    google::{Holder, SCOPES, Tokens},
};

/// The longest range of a question about busy times.
const LONGEST_RANGE: Duration = Duration::from_secs(93 * 24 * 3600);

/// The maximum number of events of an answer.
const MAX_RESULTS: usize = 2500;

/// The scope for events.
const EVENTS: &str = "https://www.googleapis.com/auth/calendar.events";

/// The scope for busy times.
const FREE_BUSY: &str = "https://www.googleapis.com/auth/calendar.freebusy";

/// The state of the calendar.
#[derive(Debug)]
pub(super) struct World {
    address: String,
    tokens: Option<Arc<Tokens>>,
    pub(super) events: Vec<StoredEvent>,
    pub(super) invitations: Vec<Invitation>,
}

/// A refusal: status, reason and message.
type Refusal = (u16, &'static str, String);

/// The body of a question about busy times.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FreeBusy {
    time_min: jiff::Timestamp,
    time_max: jiff::Timestamp,
    items: Vec<Item>,
    #[serde(default)]
    time_zone: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    id: String,
}

/// The body of a request for a new event.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewEvent {
    id: Option<String>,
    summary: Option<String>,
    description: Option<String>,
    start: Moment,
    end: Moment,
    #[serde(default)]
    attendees: Vec<Attendee>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Moment {
    date_time: Option<jiff::Timestamp>,
    date: Option<Date>,
    time_zone: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attendee {
    email: String,
}

impl World {
    /// Creates an empty calendar.
    pub(super) fn new(address: String, tokens: Option<Arc<Tokens>>) -> Self {
        Self { address, tokens, events: Vec::new(), invitations: Vec::new() }
    }

    /// Adds an event. Returns its id.
    pub(super) fn add(&mut self, title: &str, start: Timestamp, end: Timestamp) -> String {
        let id = format!("own{:05}", self.events.len());
        self.events.push(StoredEvent {
            id: id.clone(),
            summary: (!title.is_empty()).then(|| title.to_owned()),
            description: None,
            start,
            end,
            days: None,
            time_zone: "UTC".to_owned(),
            attendees: Vec::new(),
            is_free: false,
            is_cancelled: false,
        });
        id
    }

    /// Adds an event about days. Returns its id.
    pub(super) fn add_days(&mut self, title: &str, first: &str, after: &str) -> String {
        let midnight = |day: &str| {
            let day: Date = day.parse().expect("the day is one");
            let at = TimeZone::UTC.to_timestamp(day.at(0, 0, 0, 0)).expect("the day is near");
            Timestamp(at.as_millisecond())
        };
        let id = self.add(title, midnight(first), midnight(after));
        if let Some(event) = self.events.last_mut() {
            event.days = Some((first.to_owned(), after.to_owned()));
        }
        id
    }

    /// Cancels an event.
    pub(super) fn cancel(&mut self, id: &str) {
        self.events.iter_mut().filter(|event| event.id == id).for_each(|event| event.is_cancelled = true);
    }

    fn dispatch(&mut self, call: &Call, now: Timestamp) -> Result<Reply, Refusal> {
        let holder = self.holder(call)?;
        let parts = call.parts();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let ["calendar", "v3", rest @ ..] = &parts[..] else { return Err(not_found()) };
        match (call.method.as_str(), rest) {
            ("POST", ["freeBusy"]) => {
                may(&holder, FREE_BUSY)?;
                self.free_busy(call)
            }
            ("GET", ["calendars", calendar, "events"]) => {
                self.is_own(&holder, calendar)?;
                self.list(call, now)
            }
            ("POST", ["calendars", calendar, "events"]) => {
                self.is_own(&holder, calendar)?;
                self.create(call)
            }
            ("GET", ["calendars", calendar, "events", id]) => {
                self.is_own(&holder, calendar)?;
                known_parameters(call, &["timeZone"])?;
                self.events
                    .iter()
                    .find(|event| event.id == *id)
                    .map(|event| Reply::ok(resource(event)))
                    .ok_or_else(not_found)
            }
            _ => Err(not_found()),
        }
    }

    fn holder(&self, call: &Call) -> Result<Holder, Refusal> {
        let unauthorized = || (401, "authError", "Invalid Credentials".to_owned());
        let token = call.token.as_deref().filter(|token| !token.is_empty()).ok_or_else(unauthorized)?;
        match &self.tokens {
            Some(tokens) => tokens.holder(token).ok_or_else(unauthorized),
            None => {
                let scopes = SCOPES.iter().map(|scope| (*scope).to_owned()).collect();
                Ok(Holder { person: Some(self.address.clone()), scopes })
            }
        }
    }

    /// Checks that the calendar is that of the person, and that its events may be used.
    fn is_own(&self, holder: &Holder, calendar: &str) -> Result<(), Refusal> {
        may(holder, EVENTS)?;
        let is_person = holder.person.as_ref() == Some(&self.address);
        if calendar == self.address || (calendar == "primary" && is_person) { Ok(()) } else { Err(not_found()) }
    }

    fn free_busy(&self, call: &Call) -> Result<Reply, Refusal> {
        known_parameters(call, &[])?;
        let FreeBusy { time_min, time_max, items, time_zone } = body(call)?;
        if time_min >= time_max {
            return Err((400, "timeRangeEmpty", "The specified time range is empty.".to_owned()));
        }
        let (from, to) = (millis(time_min), millis(time_max));
        if to.since(from) > LONGEST_RANGE {
            return Err((400, "timeRangeTooLong", "The requested time range is too long.".to_owned()));
        }
        if let Some(zone) = time_zone {
            zone_named(&zone)?;
        }
        let mut calendars = Map::new();
        for Item { id } in items {
            let answer = if id == "primary" || id == self.address {
                let mut busy: Vec<_> = self.busy(from, to).collect();
                busy.sort_unstable();
                let busy: Vec<_> =
                    busy.iter().map(|(start, end)| json!({ "start": text(*start), "end": text(*end) })).collect();
                json!({ "busy": busy })
            } else {
                json!({ "errors": [{ "domain": "global", "reason": "notFound" }], "busy": [] })
            };
            calendars.insert(id, answer);
        }
        Ok(Reply::ok(json!({
            "kind": "calendar#freeBusy", "timeMin": text(from), "timeMax": text(to), "calendars": calendars,
        })))
    }

    /// Returns the busy times in a range, cut to it.
    fn busy(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let blocking = self.events.iter().filter(|event| !event.is_cancelled && !event.is_free);
        blocking
            .filter(move |event| event.start < to && from < event.end)
            .map(move |event| (event.start.max(from), event.end.min(to)))
    }

    fn list(&self, call: &Call, now: Timestamp) -> Result<Reply, Refusal> {
        known_parameters(call, &["timeMin", "timeMax", "singleEvents", "orderBy", "maxResults", "timeZone"])?;
        let time = |name| match call.parameter(name) {
            None => Ok(None),
            Some(text) => text.parse::<jiff::Timestamp>().map(|at| Some(millis(at))).map_err(|_| bad_request()),
        };
        let (from, to) = (time("timeMin")?, time("timeMax")?);
        if from.zip(to).is_some_and(|(from, to)| from >= to) {
            return Err((400, "timeRangeEmpty", "The specified time range is empty.".to_owned()));
        }
        let is_single = call.parameter("singleEvents") == Some("true");
        match call.parameter("orderBy") {
            None | Some("updated") => {}
            Some("startTime") if is_single => {}
            Some(_) => {
                return Err((
                    400,
                    "badRequest",
                    "The requested ordering is not available for the particular query.".to_owned(),
                ));
            }
        }
        let limit = call.parameter("maxResults").map_or(Ok(250), str::parse::<usize>).map_err(|_| bad_request())?;
        if limit == 0 {
            return Err(bad_request());
        }
        let mut events: Vec<_> = self
            .events
            .iter()
            .filter(|event| !event.is_cancelled)
            .filter(|event| from.is_none_or(|from| from < event.end) && to.is_none_or(|to| event.start < to))
            .collect();
        if call.parameter("orderBy") == Some("startTime") {
            events.sort_by_key(|event| event.start);
        }
        let items: Vec<_> = events.into_iter().take(limit.min(MAX_RESULTS)).map(resource).collect();
        Ok(Reply::ok(json!({
            "kind": "calendar#events", "summary": self.address, "timeZone": "UTC", "updated": text(now),
            "accessRole": "owner", "items": items,
        })))
    }

    fn create(&mut self, call: &Call) -> Result<Reply, Refusal> {
        known_parameters(call, &["sendUpdates"])?;
        let sends = match call.parameter("sendUpdates") {
            None | Some("none" | "externalOnly") => false,
            Some("all") => true,
            Some(_) => return Err(bad_request()),
        };
        let NewEvent { id, summary, description, start, end, attendees } = body(call)?;
        let id = match id {
            None => format!("made{:05}", self.events.len()),
            Some(id) if (5..=1024).contains(&id.len()) && id.chars().all(|c| matches!(c, 'a'..='v' | '0'..='9')) => id,
            Some(_) => return Err((400, "invalid", "Invalid resource id value.".to_owned())),
        };
        if self.events.iter().any(|event| event.id == id) {
            return Err((409, "duplicate", "The requested identifier already exists.".to_owned()));
        }
        let (Some(from), Some(to)) = (start.date_time, end.date_time) else {
            return Err((400, "required", "Missing end time.".to_owned()));
        };
        if start.date.is_some() || end.date.is_some() {
            return Err((400, "invalid", "Invalid start time.".to_owned()));
        }
        if from >= to {
            return Err((400, "timeRangeEmpty", "The specified time range is empty.".to_owned()));
        }
        for zone in [&start.time_zone, &end.time_zone].into_iter().flatten() {
            zone_named(zone)?;
        }
        let attendees: Vec<String> = attendees.into_iter().map(|attendee| attendee.email).collect();
        let distinct: BTreeSet<_> = attendees.iter().collect();
        if distinct.len() < attendees.len() || attendees.iter().any(|email| !email.contains('@')) {
            return Err((400, "invalid", "Invalid attendee email.".to_owned()));
        }
        if sends {
            let invitations = attendees.iter().map(|to| Invitation { event: id.clone(), to: to.clone() });
            self.invitations.extend(invitations);
        }
        let event = StoredEvent {
            id,
            summary,
            description,
            start: millis(from),
            end: millis(to),
            days: None,
            time_zone: start.time_zone.unwrap_or_else(|| "UTC".to_owned()),
            attendees,
            is_free: false,
            is_cancelled: false,
        };
        let reply = Reply::changed(200, resource(&event));
        self.events.push(event);
        Ok(reply)
    }
}

impl Service for World {
    fn reply(&mut self, call: &Call, now: Timestamp) -> Reply {
        self.dispatch(call, now).unwrap_or_else(|(status, reason, message)| Reply {
            status,
            body: failure(status, reason, &message),
            effect: false,
        })
    }

    fn failure(status: u16) -> Value {
        match status {
            401 => failure(401, "authError", "Invalid Credentials"),
            403 => failure(403, "userRateLimitExceeded", "User Rate Limit Exceeded"),
            404 => failure(404, "notFound", "Not Found"),
            409 => failure(409, "duplicate", "The requested identifier already exists."),
            429 => failure(429, "rateLimitExceeded", "Rate Limit Exceeded"),
            other if other < 500 => failure(other, "badRequest", "Bad Request"),
            other => failure(other, "backendError", "Backend Error"),
        }
    }
}

/// Returns an error in Google's format.
fn failure(status: u16, reason: &str, message: &str) -> Value {
    let error = json!({ "domain": "global", "reason": reason, "message": message });
    json!({ "error": { "errors": [error], "code": status, "message": message } })
}

fn not_found() -> Refusal {
    (404, "notFound", "Not Found".to_owned())
}

fn bad_request() -> Refusal {
    (400, "badRequest", "Bad Request".to_owned())
}

fn may(holder: &Holder, scope: &str) -> Result<(), Refusal> {
    let refused = || (403, "insufficientPermissions", "Request had insufficient authentication scopes.".to_owned());
    if holder.may(scope) { Ok(()) } else { Err(refused()) }
}

fn known_parameters(call: &Call, known: &[&str]) -> Result<(), Refusal> {
    match call.query.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => Err((
            400,
            "badRequest",
            format!("Invalid JSON payload received. Unknown name \"{name}\": Cannot bind query parameter."),
        )),
    }
}

/// Reads the body of a request, which must not contain unknown fields.
fn body<T: for<'de> Deserialize<'de>>(call: &Call) -> Result<T, Refusal> {
    if call.body.is_empty() {
        return Err((400, "required", "Required".to_owned()));
    }
    serde_json::from_slice(&call.body).map_err(|error| match error.is_data() {
        true => (400, "badRequest", format!("Invalid JSON payload received. {error}")),
        false => (400, "parseError", "Parse Error".to_owned()),
    })
}

fn zone_named(name: &str) -> Result<(), Refusal> {
    TimeZone::get(name)
        .map(drop)
        .map_err(|_| (400, "invalid", "Invalid time zone definition for start time.".to_owned()))
}

/// Describes an event as Google does.
fn resource(event: &StoredEvent) -> Value {
    let moment = |at: Timestamp, day: Option<&String>| match day {
        Some(day) => json!({ "date": day }),
        None => json!({ "dateTime": text(at), "timeZone": event.time_zone }),
    };
    let days = event.days.as_ref();
    let mut resource = json!({
        "kind": "calendar#event",
        "id": event.id,
        "status": if event.is_cancelled { "cancelled" } else { "confirmed" },
        "htmlLink": format!("https://www.google.com/calendar/event?eid={}", event.id),
        "start": moment(event.start, days.map(|(first, _)| first)),
        "end": moment(event.end, days.map(|(_, after)| after)),
    });
    if let Some(summary) = &event.summary {
        resource["summary"] = json!(summary);
    }
    if let Some(description) = &event.description {
        resource["description"] = json!(description);
    }
    if !event.attendees.is_empty() {
        let attendees = event.attendees.iter().map(|email| json!({ "email": email, "responseStatus": "needsAction" }));
        resource["attendees"] = attendees.collect();
    }
    resource
}

fn millis(at: jiff::Timestamp) -> Timestamp {
    Timestamp(at.as_millisecond())
}

/// Returns a time as Google writes it, in whole seconds.
fn text(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.millis()).map_or_else(|_| String::new(), |at| format!("{at:.0}"))
}
