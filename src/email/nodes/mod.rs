//! The nodes of the mail graph, one file each.
//!
//! No node fails because an outside system does. Each continues as the contract says and notes the failure; where the
//! failure matters, a person decides.

pub(super) mod answered;
pub(super) mod classify;
pub(super) mod close;
pub(super) mod decide;
pub(super) mod execute_tools;
pub(super) mod generate;
pub(super) mod retrieve;
pub(super) mod review;
pub(super) mod start;
pub(super) mod talk;

use std::time::Duration;

use countersign_core::{cause::chain, clock::Timestamp};
use countersign_graph::node::Context;
use countersign_mail::Mail;
use serde_json::{Value, json};

use self::{generate::Generate, review::Review};
use super::{
    deps::Deps,
    register::{Entry, MailStatus},
    rules::{Class, MAX_MODEL_CHARS, Source, cut},
    state::{Cause, MailState, StepEntry},
};

/// The failure of a run whose time is over.
const TOO_LONG: &str = "the run took longer than 60 s";

/// Returns the mail as data for a model.
fn data_of(mail: &Mail) -> Value {
    json!({
        "from": mail.from.as_ref().map(ToString::to_string),
        "to": mail.to.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "cc": mail.cc.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "received_at": mail.received_at.to_string(),
        "subject": mail.subject,
        "text": cut(&mail.text, MAX_MODEL_CHARS),
        "events": mail.invitations.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "attachments": mail.attachments.iter().map(|attachment| &attachment.name).collect::<Vec<_>>(),
    })
}

/// Adds the step to the trace. `facts` is an object.
fn note_step(state: &mut MailState, deps: &Deps, context: &Context, step: &str, facts: Value) {
    let Value::Object(mut facts) = facts else { return };
    let error = facts.remove("error").and_then(|error| error.as_str().map(str::to_owned));
    let took = deps.clock.now().since(context.now);
    metrics::histogram!("countersign_mail_step_seconds", "step" => step.to_owned()).record(took.as_secs_f64());
    let latency_ms = millis(took);
    state.note_step(StepEntry { step: step.to_owned(), latency_ms, error, facts });
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// Notes that a person says the mail is no spam. Returns the node that shows its draft: a new one if the last one was
/// written for spam.
async fn not_spam(deps: &Deps, state: &mut MailState, now: Timestamp) -> &'static str {
    state.turn.cause = Cause::Mail;
    state.is_spam = false;
    let was_class = state.class() == Class::Spam;
    if was_class {
        (state.classification, state.confidence, state.classified_by) = (Some(Class::Other), 1.0, Source::Person);
        state.reasoning.clear();
    }
    let (class, confidence) = (state.classification, state.confidence);
    update_entry(deps, state, |entry| {
        (entry.class, entry.confidence) = (class, confidence);
        entry.is_spam &= entry.status != MailStatus::Sent; // otherwise, the new card opens it again
        true
    })
    .await;
    let is_kept = !was_class || state.drafted_by == Source::Person;
    if is_kept && !state.draft_response.trim().is_empty() {
        return Review::NAME;
    }
    state.turn.began = now; // the time of a run passes without the wait for the person
    Generate::NAME
}

/// Changes the entry of the thread's mail in the list. A failure is only logged, since the list is just a view of
/// the thread.
async fn update_entry(deps: &Deps, state: &MailState, change: impl Fn(&mut Entry) -> bool + Send + Sync) {
    let Some(mail) = &state.email else { return };
    if let Err(error) = deps.book.update(&mail.id, change).await {
        tracing::warn!(error = chain(&error), "Cannot update the list of mails");
    }
}
