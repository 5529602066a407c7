//! The lookups of the mail graph in the sources of context.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_context::{
    Contact, Context, ContextError, EmbeddingUsage, Kind, calendar::Event, gather, store::Match,
};
use countersign_core::{
    clock::{Clock, Timestamp},
    reply::Text,
};
use countersign_email::lookup::{About, Found, FreeSlot, KnownContact, LookupError, MailLookup};
use countersign_graph::store::Usage;
use countersign_mail::{Address, Mail, MailId, topic};
use jiff::tz::TimeZone;
use serde_json::json;

/// The maximum length of a sender's name that is kept with a mail, in characters.
const MAX_NAME_CHARS: usize = 80;

/// The maximum length of a subject in a line for people, in characters.
const MAX_SUBJECT_CHARS: usize = 100;

/// The maximum length of a detail of a contact in a line for people, in characters.
const MAX_DETAIL_CHARS: usize = 150;

/// The lookups of the mail graph in the sources of context.
#[derive(Debug)]
pub(super) struct ContextLookup {
    context: Arc<Context>,
    zone: TimeZone,
    clock: Arc<dyn Clock>,
}

impl ContextLookup {
    /// Creates the lookups. Times are shown in `zone`.
    pub(super) fn new(context: Arc<Context>, zone: TimeZone, clock: Arc<dyn Clock>) -> Self {
        Self { context, zone, clock }
    }
}

#[async_trait]
impl MailLookup for ContextLookup {
    async fn gather(&self, about: &About<'_>) -> Found {
        let text = text_of(about.mail);
        let about = gather::About {
            id: about.mail.id.as_str(),
            text: &text,
            sender: about.mail.sender().map(|sender| sender.address.as_str()),
            with_calendar: about.with_events,
            now: about.now,
            zone: &self.zone,
        };
        let gathered = self.context.gather(&about).await;
        let similar = gathered.similar.iter().map(shown_mail);
        Found {
            context: gathered.lines(&self.zone),
            shown: similar.chain(gathered.events.iter().map(|event| shown_event(event, &self.zone))).collect(),
            contact: gathered.contact.as_ref().map(known),
            failures: gathered.failures,
            usage: gathered.usage.map(usage),
        }
    }

    async fn contact(&self, address: &Address) -> Result<Option<KnownContact>, LookupError> {
        let found = self.context.contacts().find(&address.address).await;
        Ok(found.map_err(|error| failed(&error))?.as_ref().map(known))
    }

    async fn free_slots(&self, from: Timestamp, days: u32) -> Result<Vec<FreeSlot>, LookupError> {
        let Some(calendar) = self.context.calendar() else {
            return Err(LookupError("No calendar is set up.".to_owned()));
        };
        let slots = calendar.free(from, days, &self.zone, self.clock.now()).await.map_err(|error| failed(&error))?;
        let shown = |at: Timestamp| {
            let at = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default();
            at.to_zoned(self.zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
        };
        let slots = slots.iter().map(|slot| FreeSlot {
            start: shown(slot.start),
            end: shown(slot.end),
            duration_minutes: slot.duration_minutes,
        });
        Ok(slots.collect())
    }

    async fn seen(&self, sender: &Address, at: Timestamp) -> Result<(), LookupError> {
        let seen = self.context.contacts().seen(sender.name.as_deref(), &sender.address, at).await;
        seen.map(drop).map_err(|error| failed(&error))
    }

    async fn remember(&self, mail: &Mail, answer: Option<&str>) -> Result<Option<Usage>, LookupError> {
        let mut text = text_of(mail);
        if let Some(answer) = answer {
            text.push_str("\n\nOur answer: ");
            text.push_str(answer);
        }
        let sender = mail.sender().map(|sender| sender.name.as_ref().unwrap_or(&sender.address));
        let sender = sender.map(|sender| one_line(sender, MAX_NAME_CHARS));
        let subject = one_line(topic(&mail.subject), MAX_SUBJECT_CHARS);
        let metadata = json!({ "is_answered": answer.is_some(), "subject": subject, "from": sender });
        let remembered = self.context.remember(Kind::Email, mail.id.as_str(), &text, metadata, mail.received_at).await;
        remembered.map(|used| used.map(usage)).map_err(|error| failed(&error))
    }

    async fn forget(&self, mail: &MailId) -> Result<(), LookupError> {
        self.context.forget(Kind::Email, mail.as_str()).await.map_err(|error| failed(&error))
    }
}

/// Returns the usage of the model for embeddings as that of any model.
fn usage(EmbeddingUsage { model, calls, tokens }: EmbeddingUsage) -> Usage {
    Usage { model, calls, input_tokens: tokens, ..Usage::default() }
}

/// Returns the text by which mails are compared.
fn text_of(mail: &Mail) -> String {
    format!("{} {}", mail.subject, mail.text).trim().to_owned()
}

/// Describes a contact, also one of whom only the address is known.
fn known(contact: &Contact) -> KnownContact {
    let line = contact.line();
    let line = if line.is_empty() { "known, without details".to_owned() } else { line };
    KnownContact { line, shown: shown_contact(contact) }
}

/// Describes a contact for people: “Buyer at Acme, 555-0100, last contact Mar 3, 9:00 AM”. Tags are left out: they are
/// for programs.
fn shown_contact(contact: &Contact) -> Text {
    let field = |field: &Option<String>| field.as_deref().map(|text| one_line(text, MAX_DETAIL_CHARS));
    let work = match (field(&contact.title), field(&contact.company)) {
        (Some(title), Some(company)) => Some(format!("{title} at {company}")),
        (title, company) => title.or(company),
    };
    let known = [work, field(&contact.phone), field(&contact.notes)].into_iter().flatten().map(Text::from);
    let last = contact.last_contacted_at.map(|at| Text::from("last contact ").moment(at));
    let details = known.chain(last).reduce(|all, next| all.plain(", ").join(next));
    details.unwrap_or_else(|| "in your contacts, without details".into())
}

/// Describes a similar mail for people: “similar email “Prices” from Dana Fields, Mar 3, 9:00 AM (answered)”.
fn shown_mail(found: &Match) -> Text {
    let noted = |field: &str| found.metadata[field].as_str().filter(|text| !text.is_empty());
    let subject = match noted("subject") {
        Some(subject) => subject.to_owned(),
        None => one_line(&found.text, MAX_SUBJECT_CHARS),
    };
    let text = Text::from(format!("similar email “{subject}”"));
    let text = match noted("from") {
        Some(from) => text.plain(format!(" from {from}")),
        None => text,
    };
    let text = text.plain(", ").moment(found.at);
    if found.metadata["is_answered"] == true { text.plain(" (answered)") } else { text }
}

/// Describes an event for people: “Planning, Mar 4, 9:00 AM”.
fn shown_event(event: &Event, zone: &TimeZone) -> Text {
    let title =
        if event.title.trim().is_empty() { "busy".to_owned() } else { one_line(&event.title, MAX_SUBJECT_CHARS) };
    if !event.is_all_day {
        return Text::from(format!("{title}, ")).moment(event.span.start);
    }
    // A day has no time that another time zone could shift.
    let at = jiff::Timestamp::from_millisecond(event.span.start.millis()).unwrap_or_default();
    Text::from(format!("{title}, {}, all day", at.to_zoned(zone.clone()).strftime("%b %-d")))
}

/// Returns at most `most` characters of a text, on one line.
fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn failed(error: &ContextError) -> LookupError {
    LookupError(format!("{error}."))
}

#[cfg(test)]
mod tests {
    use countersign_context::{calendar::Span, store::How};

    use super::*;

    const MARCH_3: Timestamp = Timestamp(1_740_992_400_000);

    #[test]
    fn a_contact_is_described_as_people_would() {
        let contact = Contact {
            title: Some("Buyer".into()),
            company: Some("Acme\nCorp".into()),
            tags: vec!["auto-synced".into()],
            last_contacted_at: Some(MARCH_3),
            ..Contact::new("dana@example.org")
        };
        let expected = Text::from("Buyer at Acme Corp").plain(", ").plain("last contact ").moment(MARCH_3);
        assert_eq!(known(&contact).shown, expected);
        assert_eq!(known(&contact).line, contact.line());
        assert_eq!(known(&Contact::new("a@b.c")).shown.words(), "in your contacts, without details");
    }

    #[test]
    fn a_similar_mail_is_named_by_its_subject_and_its_time() {
        let found = |metadata| Match {
            kind: Kind::Email,
            source_id: "m1".into(),
            text: "Prices How much is the small plan?".into(),
            similarity: 0.83,
            how: How::Cosine,
            metadata,
            at: MARCH_3,
        };
        let noted = found(json!({ "is_answered": true, "subject": "Prices", "from": "Dana Fields" }));
        let start = Text::from("similar email “Prices”").plain(" from Dana Fields").plain(", ");
        assert_eq!(shown_mail(&noted), start.moment(MARCH_3).plain(" (answered)"));
        let older = shown_mail(&found(json!({ "is_answered": false })));
        assert!(older.words().starts_with("similar email “Prices How much is the small plan?”, "), "{older:?}");
    }

    #[test]
    fn an_event_is_shown_in_the_zone_of_the_reader() {
        let span = Span { start: MARCH_3, end: Timestamp(MARCH_3.millis() + 3_600_000) };
        let event = Event { id: "1".into(), title: "Planning".into(), span, is_all_day: false, link: None };
        assert_eq!(shown_event(&event, &TimeZone::UTC), Text::from("Planning, ").moment(MARCH_3));
        let day = Event { is_all_day: true, title: String::new(), ..event };
        assert_eq!(shown_event(&day, &TimeZone::UTC).words(), "busy, Mar 3, all day");
    }
}
