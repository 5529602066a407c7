//! Tests of the context of a mail, with sources that answer from memory.

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::{
    calendar::{NewEvent, Span},
    contacts::StoredContacts,
    item::DIMENSIONS,
    sqlite::SqliteContext,
};

/// An embedder whose vectors have a component for each letter.
#[derive(Debug)]
struct Letters;

#[async_trait]
impl Embedder for Letters {
    fn name(&self) -> &str {
        "letters"
    }

    async fn embed(&self, text: &str) -> Result<Embedded, ContextError> {
        let mut vector = vec![0.0; DIMENSIONS];
        for byte in text.bytes() {
            vector[usize::from(byte)] += 1.0;
        }
        Ok(Embedded { vector, tokens: text.len() as u64 })
    }
}

/// An embedder and a calendar that are not available.
#[derive(Debug)]
struct Away;

#[async_trait]
impl Embedder for Away {
    fn name(&self) -> &str {
        "away"
    }

    async fn embed(&self, _: &str) -> Result<Embedded, ContextError> {
        Err(ContextError::unavailable("the model", "status 503"))
    }
}

/// A calendar with one event and one free time; `None` if it is not available.
#[derive(Debug)]
struct OneEvent(Option<Event>);

#[async_trait]
impl Calendar for OneEvent {
    async fn free(&self, from: Timestamp, _: u32, _: &TimeZone, _: Timestamp) -> Result<Vec<Slot>, ContextError> {
        Ok(vec![Slot { start: from, end: from + Duration::from_secs(3600), duration_minutes: 60 }])
    }

    async fn conflicts(&self, _: Span) -> Result<Vec<Span>, ContextError> {
        Ok(Vec::new())
    }

    async fn upcoming(&self, _: Timestamp, _: u32, _: &TimeZone, _: usize) -> Result<Vec<Event>, ContextError> {
        self.0.clone().map(|event| vec![event]).ok_or_else(|| ContextError::unavailable("the calendar", "status 500"))
    }

    async fn create(&self, _: &NewEvent) -> Result<Event, ContextError> {
        Err(ContextError::RunOut)
    }

    async fn find(&self, _: &str, _: &TimeZone) -> Result<Option<Event>, ContextError> {
        Ok(None)
    }

    async fn check(&self) -> Result<String, ContextError> {
        Ok("one event".to_owned())
    }
}

fn event() -> Event {
    let span = Span { start: Timestamp(9 * 3_600_000), end: Timestamp(10 * 3_600_000) };
    Event { id: "1".into(), title: "Planning".into(), span, is_all_day: false, link: None }
}

struct Setup {
    context: Context,
    _folder: tempfile::TempDir,
}

fn setup() -> Setup {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn ContextStore> = Arc::new(SqliteContext::open(&folder.path().join("context.sqlite")).unwrap());
    let contacts = StoredContacts::new(store.clone(), "us@example.com");
    Setup { context: Context::new("us@example.com", store, Arc::new(contacts)), _folder: folder }
}

static UTC: TimeZone = TimeZone::UTC;

fn about(text: &str) -> About<'_> {
    let (id, sender) = ("new", Some("Alice <alice@example.com>"));
    About { id, text, sender, with_calendar: true, now: Timestamp(0), zone: &UTC }
}

async fn remember(context: &Context, id: &str, text: &str) {
    context.remember(Kind::Email, id, text, json!({ "subject": text }), Timestamp(1)).await.unwrap();
}

#[tokio::test]
async fn the_lines_are_similar_mails_then_the_contact_then_events() {
    let Setup { context, _folder } = setup();
    let context = context.with_embedder(Arc::new(Letters)).with_calendar(Arc::new(OneEvent(Some(event()))));
    remember(&context, "1", "refund for order 4711").await;
    remember(&context, "new", "refund for order 4711, please").await;
    context.contacts().seen(Some("Alice Example"), "alice@example.com", Timestamp(0)).await.unwrap();
    let found = context.gather(&about("refund for order 4711, please")).await;
    assert_eq!(found.failures, [""; 0]);
    assert_eq!(found.similar.iter().map(|found| found.source_id.as_str()).collect::<Vec<_>>(), ["1"], "not itself");
    assert_eq!(found.slots.len(), 1);
    let lines = found.lines(&TimeZone::UTC);
    let [similar, contact, events] = &lines[..] else { panic!("{lines:?}") };
    assert!(similar.starts_with("Similar email (similarity 0."), "{similar}");
    assert!(similar.ends_with("): refund for order 4711"), "{similar}");
    assert_eq!(contact, "CRM Contact — Name: Alice Example; Tags: auto-synced, business; Last contact: 1970-01-01");
    assert_eq!(events, "Upcoming calendar events: Planning (Thu 1970-01-01 09:00–10:00)");
}

#[tokio::test]
async fn a_source_that_fails_leaves_the_others() {
    let Setup { context, _folder } = setup();
    remember(&context, "1", "refund for order 4711").await;
    context.contacts().seen(Some("Alice"), "alice@example.com", Timestamp(0)).await.unwrap();
    let context = context.with_embedder(Arc::new(Away)).with_calendar(Arc::new(OneEvent(None)));
    let found = context.gather(&about("order 4711: refund")).await;
    assert_eq!(
        found.failures,
        [
            "Embedding the email failed: the model is not available: status 503.",
            "Reading the calendar failed: the calendar is not available: status 500.",
        ]
    );
    assert_eq!(found.similar[0].how, How::Words);
    assert_eq!(
        found.lines(&TimeZone::UTC)[0],
        "Similar email (similarity 1.00, by shared words): refund for order 4711"
    );
    assert!(found.contact.is_some() && found.slots.len() == 1 && found.events.is_empty());
}

#[tokio::test]
async fn a_mail_without_text_and_sender_has_no_context() {
    let Setup { context, _folder } = setup();
    let context = context.with_embedder(Arc::new(Letters));
    remember(&context, "1", "").await;
    let nothing = About { sender: None, ..about("  ") };
    assert_eq!(context.gather(&nothing).await, Gathered::default());
}

#[tokio::test]
async fn the_calendar_is_read_only_if_it_is_wanted() {
    let Setup { context, _folder } = setup();
    let context = context.with_calendar(Arc::new(OneEvent(None)));
    let found = context.gather(&About { with_calendar: false, ..about("hello") }).await;
    assert_eq!(found, Gathered::default());
}

#[tokio::test]
async fn a_forgotten_mail_is_not_found() {
    let Setup { context, _folder } = setup();
    remember(&context, "1", "refund for order 4711").await;
    context.forget(Kind::Email, "1").await.unwrap();
    assert!(context.gather(&about("refund for order 4711")).await.similar.is_empty());
}

#[tokio::test]
async fn what_was_gathered_is_stored_and_read_again() {
    let gathered = Gathered { events: vec![event()], failures: vec!["x".into()], ..Gathered::default() };
    let stored = serde_json::to_value(&gathered).unwrap();
    assert_eq!(stored.as_object().unwrap().len(), 2, "empty fields are left out");
    assert_eq!(serde_json::from_value::<Gathered>(stored).unwrap(), gathered);
    assert_eq!(serde_json::from_value::<Gathered>(json!({})).unwrap(), Gathered::default());
}
