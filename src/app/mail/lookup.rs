//! The lookups of the mail graph in the sources of context.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_context::{Context, ContextError, EmbeddingUsage, Kind, gather};
use countersign_core::clock::{Clock, Timestamp};
use countersign_email::lookup::{About, Found, FreeSlot, LookupError, MailLookup};
use countersign_graph::store::Usage;
use countersign_mail::{Address, Mail, MailId};
use jiff::tz::TimeZone;
use serde_json::json;

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
        Found {
            context: gathered.lines(&self.zone),
            contact: gathered.contact.as_ref().map(known),
            failures: gathered.failures,
            usage: gathered.usage.map(usage),
        }
    }

    async fn contact(&self, address: &Address) -> Result<Option<String>, LookupError> {
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
        let metadata = json!({ "is_answered": answer.is_some() });
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

/// Describes a contact in one line, also one of whom only the address is known.
fn known(contact: &countersign_context::Contact) -> String {
    let line = contact.line();
    if line.is_empty() { "known, without details".to_owned() } else { line }
}

fn failed(error: &ContextError) -> LookupError {
    LookupError(format!("{error}."))
}
