//! The client of Google Calendar against the stand-in.

use std::{sync::Arc, time::Duration};

use countersign::{
    clock::{ManualClock, SystemClock, Timestamp},
    context::{
        ContextError,
        calendar::{
            Calendar as _, NewEvent, Span, WorkingHours,
            google::{GoogleCalendar, GoogleCalendarSettings, Waits},
        },
    },
    send_permit::SendPermit,
    services::google::{RefreshToken, TokenSource},
};
use countersign_sandbox::{
    calendar::{Options, SandboxCalendar},
    faults::Fault,
    google::{CLIENT_ID, CLIENT_SECRET, REFRESH_TOKEN, SandboxGoogle},
};
use jiff::tz::TimeZone;

/// A calendar that wants tokens, what mints them, and a client.
struct World {
    google: SandboxGoogle,
    calendar: SandboxCalendar,
    client: GoogleCalendar,
    clock: ManualClock,
    zone: TimeZone,
}

impl World {
    async fn start() -> Self {
        let clock = ManualClock::default();
        let google = SandboxGoogle::start().await.unwrap();
        let options = Options { tokens: Some(google.tokens()), clock: Arc::new(clock.clone()), ..Options::default() };
        let calendar = SandboxCalendar::start(options).await.unwrap();
        let refresh = RefreshToken {
            endpoint: google.endpoint().parse().unwrap(),
            client_id: CLIENT_ID.to_owned(),
            client_secret: CLIENT_SECRET.into(),
            token: REFRESH_TOKEN.into(),
        };
        let timeout = Duration::from_secs(5);
        let tokens = TokenSource::refresh_token(refresh, timeout, Arc::new(SystemClock)).unwrap();
        let client = GoogleCalendar::new(GoogleCalendarSettings {
            base_url: calendar.url().parse().unwrap(),
            calendar: "primary".to_owned(),
            tokens: Arc::new(tokens),
            hours: WorkingHours::default(),
            timeout,
            waits: Waits { first: Duration::from_millis(1), longest: Duration::from_millis(2) },
        });
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        Self { google, calendar, client: client.unwrap(), clock, zone }
    }

    /// Creates an event under a permit.
    async fn create(&self, event: &NewEvent) -> Result<String, ContextError> {
        let permit = SendPermit::new(Arc::new(SystemClock), Duration::from_secs(30));
        Ok(permit.during(self.client.create(event)).await?.id)
    }

    fn calls(&self) -> usize {
        self.calendar.ledger().len()
    }
}

fn at(text: &str) -> Timestamp {
    Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

fn new_event() -> NewEvent {
    NewEvent {
        key: "mail-1".into(),
        title: "Call with Alice".into(),
        span: Span { start: at("2026-11-24T09:00:00Z"), end: at("2026-11-24T09:30:00Z") },
        time_zone: "Europe/Berlin".into(),
        attendees: vec!["alice@example.com".into()],
        description: Some("About order 4711".into()),
    }
}

#[tokio::test]
async fn free_times_are_what_events_leave_of_the_working_hours() {
    let world = World::start().await;
    world.calendar.has("Standup", at("2026-11-24T08:30:00Z"), at("2026-11-24T09:00:00Z"));
    world.calendar.has("Lunch", at("2026-11-24T11:00:00Z"), at("2026-11-24T12:00:00Z"));
    let gone = world.calendar.has("Canceled", at("2026-11-24T13:00:00Z"), at("2026-11-24T14:00:00Z"));
    world.calendar.cancels(&gone);
    let now = at("2026-11-23T20:00:00Z");
    let slots = world.client.free(now, 2, &world.zone, now).await.unwrap();
    let slots: Vec<_> = slots.iter().map(|slot| slot.in_zone(&world.zone)).collect();
    let expected = ["Tue 2026-11-24 09:00–09:30", "Tue 2026-11-24 10:00–12:00", "Tue 2026-11-24 13:00–17:00"];
    assert_eq!(slots, expected);
}

#[tokio::test]
async fn a_proposed_time_conflicts_with_what_overlaps_it() {
    let world = World::start().await;
    let (start, end) = (at("2026-11-24T09:00:00Z"), at("2026-11-24T10:00:00Z"));
    world.calendar.has("Standup", start, end);
    let inside = Span { start: at("2026-11-24T09:30:00Z"), end: at("2026-11-24T11:00:00Z") };
    assert_eq!(world.client.conflicts(inside).await.unwrap().len(), 1);
    let after = Span { start: end, end: at("2026-11-24T11:00:00Z") };
    assert!(world.client.conflicts(after).await.unwrap().is_empty(), "one ends when the other begins");
}

#[tokio::test]
async fn upcoming_events_come_in_order() {
    let world = World::start().await;
    world.calendar.has("Later", at("2026-11-25T12:00:00Z"), at("2026-11-25T13:00:00Z"));
    world.calendar.has("Sooner", at("2026-11-24T09:00:00Z"), at("2026-11-24T10:00:00Z"));
    world.calendar.has("Over", at("2026-11-23T09:00:00Z"), at("2026-11-23T10:00:00Z"));
    world.calendar.has_days("Fair", "2026-11-26", "2026-11-27");
    let now = at("2026-11-23T12:00:00Z");
    let events = world.client.upcoming(now, 7, &world.zone, 10).await.unwrap();
    let lines: Vec<_> = events.iter().map(|event| event.line(&world.zone)).collect();
    let expected =
        ["Sooner (Tue 2026-11-24 10:00–11:00)", "Later (Wed 2026-11-25 13:00–14:00)", "Fair (Thu 2026-11-26, all day)"];
    assert_eq!(lines, expected);
    assert_eq!(world.client.upcoming(now, 7, &world.zone, 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_event_is_created_once_however_often_it_is_sent() {
    let world = World::start().await;
    let id = world.create(&new_event()).await.unwrap();
    assert_eq!(world.create(&new_event()).await.unwrap(), id);
    let [stored] = &world.calendar.events()[..] else { panic!("one event is stored") };
    assert_eq!((stored.id.as_str(), stored.summary.as_deref()), (id.as_str(), Some("Call with Alice")));
    assert_eq!((stored.attendees.len(), stored.time_zone.as_str()), (1, "Europe/Berlin"));
    assert_eq!(world.calendar.invitations().len(), 1, "she was invited once");
}

#[tokio::test]
async fn a_lost_answer_is_told_from_a_lost_request() {
    let world = World::start().await;
    world.calendar.faults().next_on("POST", Fault::LostAnswer);
    assert!(matches!(world.create(&new_event()).await, Err(ContextError::NoAnswer { .. })));
    assert_eq!(world.client.find("mail-1", &world.zone).await.unwrap().unwrap().title, "Call with Alice");

    let other = NewEvent { key: "mail-2".into(), ..new_event() };
    world.calendar.faults().next_on("POST", Fault::LostRequest);
    assert!(matches!(world.create(&other).await, Err(ContextError::NoAnswer { .. })));
    assert!(world.client.find("mail-2", &world.zone).await.unwrap().is_none());
    world.calendar.faults().next_on("POST", Fault::Status(503).after());
    assert!(matches!(world.create(&other).await, Err(ContextError::NoAnswer { .. })));
    world.create(&other).await.unwrap();
    assert_eq!(world.calendar.events().len(), 2);
}

#[tokio::test]
async fn nothing_is_created_without_a_permit() {
    let world = World::start().await;
    assert_eq!(world.client.create(&new_event()).await.unwrap_err(), ContextError::RunOut);
    let over = SendPermit::new(Arc::new(SystemClock), Duration::ZERO);
    assert_eq!(over.during(world.client.create(&new_event())).await.unwrap_err(), ContextError::RunOut);
    assert_eq!(world.calls(), 0);
}

#[tokio::test]
async fn reads_are_tried_three_times_if_the_failure_may_pass() {
    let world = World::start().await;
    for fault in [Fault::Status(500), Fault::TooMany(0), Fault::Status(403), Fault::Proxy(502), Fault::LostRequest] {
        let before = world.calls();
        world.calendar.faults().next(fault.clone());
        world.calendar.faults().next(fault.clone());
        world.client.check().await.unwrap();
        assert_eq!(world.calls() - before, 3, "{fault:?}");
    }
    world.calendar.faults().every(1, "", Fault::Status(503));
    let before = world.calls();
    assert!(matches!(world.client.check().await, Err(ContextError::Unavailable { .. })));
    assert_eq!(world.calls() - before, 3);
}

#[tokio::test]
async fn a_refusal_is_not_tried_again() {
    let world = World::start().await;
    for status in [400, 404, 409] {
        let before = world.calls();
        world.calendar.faults().next(Fault::Status(status));
        let refused = world.client.check().await.unwrap_err();
        assert!(matches!(refused, ContextError::Refused { status: Some(own), .. } if own == status), "{refused}");
        assert_eq!(world.calls() - before, 1);
    }
}

#[tokio::test]
async fn a_token_that_is_refused_early_is_replaced() {
    let world = World::start().await;
    world.client.check().await.unwrap();
    world.google.tokens().revoke();
    world.client.check().await.unwrap();
    assert_eq!(world.google.tokens().count(), 2);
    world.google.withdraws_consent();
    let refused = world.client.check().await.unwrap_err();
    assert!(matches!(&refused, ContextError::SignIn { .. }), "{refused}");
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    let world = World::start().await;
    world.calendar.faults().next(Fault::Flood { status: 200, pause_ms: 0 });
    let refused = world.client.check().await.unwrap_err();
    assert!(matches!(&refused, ContextError::Decode { .. }), "{refused}");
}

#[tokio::test]
async fn a_late_request_takes_effect_once() {
    let world = World::start().await;
    world.calendar.faults().next_on("POST", Fault::Late { after_ms: 60_000, is_closed: true });
    assert!(matches!(world.create(&new_event()).await, Err(ContextError::NoAnswer { .. })));
    world.create(&new_event()).await.unwrap();
    world.clock.advance(Duration::from_secs(61));
    assert_eq!(world.calendar.events().len(), 1, "the late one was refused as a duplicate");
}
