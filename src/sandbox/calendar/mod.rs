//! The stand-in for Google Calendar: a real HTTP server with the calendar of one person.
//!
//! It answers about busy times and events, and creates events. Unknown fields and parameters, missing scopes, empty
//! ranges and ids that are taken are refused in Google's format. Invitations are recorded, not sent.
//!
//! Start at [`SandboxCalendar`]. Tokens are issued by [`crate::google`].

mod routes;

use std::sync::Arc;

use countersign_core::clock::{Clock, SystemClock, Timestamp};
use serde::Serialize;

use self::routes::World;
use crate::{
    faults::Faults,
    google::{PERSON, Tokens},
    ledger::Request,
    stand_in::{self, Place, StandIn},
};

/// The options of the stand-in.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address of the calendar's owner, which is also the id of the calendar.
    pub address: String,
    /// The issuer of the access tokens that requests must have; `None` if any token will do.
    pub tokens: Option<Arc<Tokens>>,
    /// The port on 127.0.0.1; 0 means a free one.
    pub port: u16,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self { address: PERSON.to_owned(), tokens: None, port: 0, clock: Arc::new(SystemClock) }
    }
}

/// An event in the calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredEvent {
    /// The id.
    pub id: String,
    /// The title; `None` if it has none.
    pub summary: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The beginning.
    pub start: Timestamp,
    /// The end.
    pub end: Timestamp,
    /// The first day and the day after the last one, for an event about days.
    pub days: Option<(String, String)>,
    /// The time zone in which the event is shown.
    pub time_zone: String,
    /// The addresses of the invited people.
    pub attendees: Vec<String>,
    /// True if the event does not block its time.
    pub is_free: bool,
    /// True if the event was canceled.
    pub is_cancelled: bool,
}

/// An invitation that would have been sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Invitation {
    /// The id of the event.
    pub event: String,
    /// The address of the invited person.
    pub to: String,
}

/// A running stand-in. Dropping it stops the server.
#[derive(Debug)]
pub struct SandboxCalendar {
    server: StandIn<World>,
}

impl SandboxCalendar {
    /// Starts a server with an empty calendar.
    ///
    /// # Errors
    ///
    /// If the port is taken.
    pub async fn start(options: Options) -> std::io::Result<Self> {
        let Options { address, tokens, port, clock } = options;
        let world = World::new(address, tokens);
        Ok(Self { server: StandIn::start(world, (), Place::new(port, clock), stand_in::routes).await? })
    }

    /// Returns the base URL of the API.
    pub fn url(&self) -> String {
        format!("{}/calendar/v3", self.server.url())
    }

    /// Adds an event, as the owner of the calendar can. Returns its id.
    pub fn has(&self, title: &str, start: Timestamp, end: Timestamp) -> String {
        self.server.world().add(title, start, end)
    }

    /// Adds an event about whole days, such as `2026-11-24` to `2026-11-25`, in UTC. Returns its id.
    ///
    /// # Panics
    ///
    /// If a day isn't.
    pub fn has_days(&self, title: &str, first: &str, after: &str) -> String {
        self.server.world().add_days(title, first, after)
    }

    /// Cancels an event, as the owner of the calendar can.
    pub fn cancels(&self, id: &str) {
        self.server.world().cancel(id);
    }

    /// Returns all events in the order in which they were added, with the canceled ones.
    pub fn events(&self) -> Vec<StoredEvent> {
        self.server.world().events.clone()
    }

    /// Returns all invitations so far.
    pub fn invitations(&self) -> Vec<Invitation> {
        self.server.world().invitations.clone()
    }

    /// Returns every request so far.
    pub fn ledger(&self) -> Vec<Request> {
        self.server.requests()
    }

    /// Returns the faults.
    pub fn faults(&self) -> Faults {
        self.server.faults.clone()
    }
}
