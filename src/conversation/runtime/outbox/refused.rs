//! Handles messages that could not be sent: they are tried again, or kept as undelivered and
//! reported.
//!
//! Only an unambiguous refusal by Slack is final immediately. A proxy's error page, a redirect or
//! an unknown code may be gone at the next attempt. A message that is given up is kept as a dead
//! letter, and can be sent again by a button. The people concerned are notified in the thread, or
//! by a direct message if the thread cannot be written to. Messages that are still being tried are
//! reported by [`super::delayed`].

use std::time::Duration;

use countersign_core::{
    clock::Timestamp,
    ids::{CommitId, Nonce, Slot, UserId},
    reply::{Card, CardState, Part, Reply, Text},
};
use countersign_graph::{
    action::ActionRecord,
    request::reply_in_thread,
    store::{self, ActionFilter, Changes, Claimed, Outbound, Outgoing, Sent},
};
use countersign_slack::client_error::Error;

use super::Sender;
use crate::record::undelivered::{is_report, kind, slot_of_direct_notice, slot_of_notice};

/// The maximum number of attempts while Slack cannot be reached. With the waits below, these last
/// more than a day.
const MAX_ATTEMPTS: u32 = 1500;

/// The maximum number of attempts for a message that Slack answers with an unknown code. These last
/// about five minutes.
const MAX_UNCLEAR_ATTEMPTS: u32 = 10;

/// The maximum wait between two attempts.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(60);

/// An upper bound of the duration of all attempts with their waits.
pub(super) const MAX_RETRY_TIME: Duration = Duration::from_secs(26 * 3600);

/// The maximum number of a thread's actions that are searched for the one of a card.
const MAX_ACTIONS: usize = 50;

impl Sender {
    /// Gives a message up without another attempt if too many earlier ones ended without a result.
    pub(super) fn tried_too_often(&self, claimed: &Claimed) -> Option<Sent> {
        (claimed.attempts >= MAX_ATTEMPTS).then(|| self.give_up(claimed, "tried_too_often"))
    }

    /// Returns the result of a failed attempt: when to try again, if at all.
    pub(super) fn after_failure(&self, claimed: &Claimed, error: &Error) -> Sent {
        let (now, tried) = (self.0.clock.now(), claimed.attempts + 1);
        let wait = || Sent::Retry(next_attempt(now, claimed.attempts));
        self.note_refusal(claimed, error);
        match error {
            Error::RateLimited { retry_after } => self.on_rate_limit(claimed, *retry_after),
            _ if self.is_repeatable_report(claimed, error) => Sent::Dropped,
            _ if error.is_final() => self.give_up(claimed, &error.word()),
            // A status or removal is optional, and not worth delaying other messages.
            Error::Gone { .. } | Error::Refused { .. } if is_optional(&claimed.outgoing.body) => Sent::Dropped,
            Error::Gone { code } | Error::Refused { code }
                if tried >= MAX_UNCLEAR_ATTEMPTS && is_about_message(code) =>
            {
                self.give_up(claimed, code)
            }
            _ if tried >= MAX_ATTEMPTS => self.give_up(claimed, &error.word()),
            Error::Auth { .. } => wait(), // the client logs it, once
            _ => {
                tracing::warn!(thread.id = %claimed.thread, attempts = claimed.attempts, error = countersign_core::cause::chain(&error), "A message was not sent; it is tried again");
                wait()
            }
        }
    }

    /// Returns the next attempt after the store did not return the card to be sent.
    pub(super) fn retry_after_store_error(&self, claimed: &Claimed, error: &store::Error) -> Sent {
        tracing::warn!(thread.id = %claimed.thread, error = countersign_core::cause::chain(&error), "A card cannot be redrawn yet");
        Sent::Retry(next_attempt(self.0.clock.now(), claimed.attempts))
    }

    fn give_up(&self, claimed: &Claimed, reason: &str) -> Sent {
        let body = &claimed.outgoing.body;
        // A deleted message cannot be changed any more. The client itself reports a missing scope, once.
        let is_over = (reason == "message_not_found" && claimed.posted.is_some())
            || (reason == "missing_scope" && matches!(body, Outbound::Direct { .. }));
        if is_optional(body) || is_over || is_report(&claimed.outgoing) {
            tracing::warn!(thread.id = %claimed.thread, reason, "An optional message is dropped");
            return Sent::Dropped;
        }
        metrics::counter!("countersign_undelivered_total", "kind" => kind(body)).increment(1);
        tracing::error!(thread.id = %claimed.thread, reason, kind = kind(body), "A message is given up and kept as undelivered");
        Sent::Failed { reason: reason.to_owned(), at: self.0.clock.now() }
    }

    /// Returns the people who get a direct message about an undelivered one, and the card that this message links to. They
    /// are those who requested and approved the card, or else the person for whom the thread last worked.
    async fn people_to_notify(&self, claimed: &Claimed) -> (Vec<UserId>, Slot) {
        let thread = &claimed.thread;
        let filter = ActionFilter { thread: Some(thread.clone()), statuses: Vec::new(), limit: MAX_ACTIONS };
        let actions = self.0.store.actions(&filter).await.unwrap_or_default();
        let of_card = |record: &&ActionRecord| Some(&record.slot) == claimed.outgoing.slot.as_ref();
        if let Some(record) = actions.iter().find(of_card) {
            let mut people = vec![record.requested_by.clone()];
            people.extend(record.approved_by().into_iter().filter(|person| *person != record.requested_by));
            return (people, record.slot.clone());
        }
        let saved = self.0.store.load(thread).await.unwrap_or_default();
        let last = self.0.memories.read(saved).and_then(|before| before.works_for);
        let by = last.or_else(|| actions.first().map(|record| record.requested_by.clone()));
        (by.into_iter().collect(), slot_of_notice(&claimed.outgoing))
    }

    /// Reports that a message could not be shown: in its thread, or directly to the people who
    /// requested and approved the change if the thread cannot be written to. The report is written before the
    /// message is given up, in a slot of its own, so that a repeated report updates the same
    /// message.
    pub(super) async fn report_failure(&self, claimed: &Claimed, reason: &str) {
        let (thread, now) = (&claimed.thread, self.0.clock.now());
        let mut changes = Changes::new(CommitId::fresh(), thread.clone());
        let reply = failure_report(&claimed.outgoing, reason);
        if Error::is_about_place(reason) {
            let (people, card) = self.people_to_notify(claimed).await;
            changes.outbox.extend(people.into_iter().enumerate().map(|(nth, to)| Outgoing {
                slot: Some(slot_of_direct_notice(&claimed.outgoing, (nth > 0).then_some(&to))),
                nonce: Nonce::fresh(),
                progress: false,
                not_before: now,
                body: Outbound::Direct { to, card: card.clone(), reply: reply.clone() },
            }));
        } else if !matches!(claimed.outgoing.body, Outbound::Direct { .. }) {
            changes.outbox.push(reply_in_thread(slot_of_notice(&claimed.outgoing).as_str(), now, reply));
        }
        if !changes.outbox.is_empty()
            && let Err(error) = self.0.store.apply(&changes).await
        {
            tracing::warn!(
                error = countersign_core::cause::chain(&error),
                "Cannot report that a message could not be shown"
            );
        }
    }
}

/// Returns the report on a message that could not be shown. Where it is the state of a change, the report tells that, since
/// nobody may be able to read it on the card.
fn failure_report(outgoing: &Outgoing, reason: &str) -> Reply {
    let act = |card: &Card| Text::new().bold(card.title.trim_end_matches('?'));
    let (told, what, then) = match &outgoing.body {
        Outbound::Card { card, state: CardState::Open { asked_by, .. } } => {
            let what = Text::new().person(asked_by.clone()).plain(", I couldn't show the card ");
            (None, what.bold(card.title.clone()), "No one can approve it until it appears.")
        }
        Outbound::Card { card, state } => {
            let told = match state {
                CardState::Closed { decision, outcome: Some(outcome), .. } => {
                    outcome.clone().plain(" · ").join(decision.clone())
                }
                CardState::Closed { decision, .. } => act(card).plain(" · ").join(decision.clone()),
                CardState::Running { .. } | CardState::Open { .. } => act(card).plain(" was approved and is running."),
            };
            (Some(told), Text::from("I couldn't show this on its card"), "The card may look out of date.")
        }
        Outbound::File { name, .. } => {
            (None, Text::from("I couldn't share the file ").code(name.clone()), "Nothing is lost.")
        }
        _ => (None, Text::from("I couldn't show an answer"), "Nothing is lost."),
    };
    let report = what.plain(": Slack refused it (").code(reason).plain(format!("). {then}"));
    let reply = match told {
        Some(told) => Reply::text(told).and(Part::Text(report)),
        None => Reply::text(report),
    };
    reply.resend("Send again", outgoing.nonce.as_str())
}

/// Returns true if an unknown code may refer to this message: it comes from Slack, or means that
/// the call is too large. Other HTTP errors come from a proxy and concern all messages.
fn is_about_message(code: &str) -> bool {
    !code.starts_with("http_") || matches!(code, "http_413" | "http_414" | "http_431")
}

fn is_optional(body: &Outbound) -> bool {
    matches!(body, Outbound::Status { .. } | Outbound::Remove)
}

/// Returns the time of the next attempt. The wait is one second at first and doubles each time.
fn next_attempt(now: Timestamp, attempts: u32) -> Timestamp {
    now + Duration::from_secs(1).saturating_mul(1 << attempts.min(6)).min(MAX_WAIT)
}
