//! Handles messages that could not be sent: they are tried again, or kept as undelivered and
//! reported.
//!
//! Only an unambiguous refusal by Slack is final immediately. A proxy's error page, a redirect or
//! an unknown code may be gone at the next attempt. A message that is given up is kept as a dead
//! letter, and can be sent again by a button. The people concerned are notified in the thread, or
//! by a direct message if the thread cannot be written to.
//!
//! A message that Slack has not accepted after many attempts is reported once, in its thread. It no longer delays others
//! ([`TRIED_OFTEN`]), so the report is sent before it. The report is removed if the message is delivered after all; if the
//! message is given up, the final report replaces this one.

use std::time::Duration;

use countersign_core::{
    cause,
    clock::Timestamp,
    ids::{CommitId, Nonce, Slot, UserId},
    reply::{Card, CardState, Part, Reply, Text},
};
use countersign_graph::{
    action::ActionRecord,
    request::reply_in_thread,
    store::{self, ActionFilter, Changes, Claimed, Outbound, Outgoing, Sent, TRIED_OFTEN},
};
use countersign_slack::client_error::Error;

use super::{Sender, delayed::MAX_WAIT};
use crate::record::undelivered::{self, is_report, kind, slot_of_direct_notice, slot_of_notice};

/// The maximum number of attempts while Slack cannot be reached. With the waits below, these last
/// more than a day.
const MAX_ATTEMPTS: u32 = 1500;

/// The maximum number of attempts for a message that Slack answers with an unknown code. These last
/// about five minutes.
const MAX_UNCLEAR_ATTEMPTS: u32 = 10;

/// The time added to the wait that Slack asks for. It applies to a message that does not delay
/// others, so that the others are sent first.
const POSTPONED_BY: Duration = Duration::from_secs(3);

/// The words by which a report is recognised.
const STILL_TRYING: &str = "I'm still trying";

/// The suffix of a report's nonce, which follows the nonce of the message.
const REPORT_SUFFIX: &str = "-not-yet";

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
                tracing::warn!(thread.id = %claimed.thread, attempts = claimed.attempts, error = cause::chain(&error), "A message was not sent; it is tried again");
                wait()
            }
        }
    }

    /// Returns the next attempt after the store did not return the card to be sent.
    pub(super) fn retry_after_store_error(&self, claimed: &Claimed, error: &store::Error) -> Sent {
        tracing::warn!(thread.id = %claimed.thread, error = cause::chain(&error), "A card cannot be redrawn yet");
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
        let filter = ActionFilter::of(thread, &[], MAX_ACTIONS);
        let actions = self.0.store.actions(&filter).await.unwrap_or_default();
        let of_card = |record: &&ActionRecord| Some(&record.slot) == claimed.outgoing.slot.as_ref();
        if let Some(record) = actions.iter().find(of_card) {
            let mut people = vec![record.requested_by.clone()];
            people.extend(record.approved_by().into_iter().filter(|person| *person != record.requested_by));
            people.retain(|person| person.key().is_none()); // a program reads no messages
            return (people, record.slot.clone());
        }
        let saved = self.0.store.load(thread).await.unwrap_or_default();
        let last = self.0.memories.read(saved).and_then(|before| before.works_for);
        let by = last.or_else(|| actions.first().map(|record| record.requested_by.clone()));
        (by.into_iter().filter(|person| person.key().is_none()).collect(), slot_of_notice(&claimed.outgoing))
    }

    /// Reports that a message could not be shown: in its thread, or directly to the people who
    /// requested and approved the change if the thread cannot be written to. The report is written before the
    /// message is given up, in a slot of its own, so that a repeated report updates the same
    /// message.
    pub(super) async fn report_failure(&self, claimed: &Claimed, reason: &str) {
        let (thread, now) = (&claimed.thread, self.0.clock.now());
        let mut changes = Changes::new(CommitId::fresh(), thread.clone());
        let reply = failure_report(&claimed.outgoing, reason);
        // Where the bot was removed, a report in the thread would be refused as well.
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
        if !changes.outbox.is_empty() {
            self.apply_or_warn(&changes, "Cannot report that a message could not be shown").await;
        }
    }
}

impl Sender {
    /// Handles Slack's request to wait with a message, which was not sent. If the wait is long, or
    /// Slack has asked often, the message counts as tried often and no longer delays others.
    pub(super) fn on_rate_limit(&self, claimed: &Claimed, wait: Duration) -> Sent {
        let (outgoing, now) = (&claimed.outgoing, self.0.clock.now());
        let times = self.0.delayed.update(&outgoing.nonce, |message| {
            message.asked_to_wait += 1;
            message.asked_to_wait
        });
        metrics::counter!("countersign_asked_to_wait_total").increment(1);
        if times == 1 {
            tracing::warn!(thread.id = %claimed.thread, wait_s = wait.as_secs(), "Slack asks to wait with a message; logged once for each message");
        }
        if outgoing.progress || (wait <= MAX_WAIT && times < TRIED_OFTEN) {
            return Sent::Deferred(now + wait);
        }
        // It comes after what can be sent, so one channel at its limit does not hold up a thread.
        Sent::Postponed(now + wait + POSTPONED_BY)
    }

    /// Records the reason why Slack did not accept a message. If Slack cannot be reached, a report
    /// could not be sent either, so nothing is recorded.
    pub(super) fn note_refusal(&self, claimed: &Claimed, error: &Error) {
        if *error != Error::NotSent {
            self.0.delayed.update(&claimed.outgoing.nonce, |message| message.reason = Some(error.word()));
        }
    }

    /// Returns true for a report that was certainly not delivered. The message that it is about
    /// then counts as not reported: a new report follows its next attempt, or none if that one
    /// succeeds.
    pub(super) fn is_repeatable_report(&self, claimed: &Claimed, error: &Error) -> bool {
        let has_report_text =
            matches!(&claimed.outgoing.body, Outbound::Reply { reply } if reply.words().contains(STILL_TRYING));
        let is_undelivered = has_report_text
            && claimed.attempts == 0
            && matches!(error, Error::NotSent | Error::Gone { .. } | Error::Refused { .. } | Error::Auth { .. });
        let about = claimed.outgoing.nonce.as_str().strip_suffix(REPORT_SUFFIX).filter(|_| is_undelivered);
        if let Some(about) = about {
            self.0.delayed.update(&Nonce::new(about), |message| message.is_reported = false);
        }
        about.is_some()
    }

    /// Reports that a message is not delivered yet, or removes that report.
    pub(super) async fn report_delay(&self, claimed: &Claimed, sent: &Sent) {
        let (outgoing, now) = (&claimed.outgoing, self.0.clock.now());
        let nonce = &outgoing.nonce;
        let messages = match sent {
            Sent::Retry(_) if claimed.attempts + 1 < TRIED_OFTEN => return,
            Sent::Retry(_) | Sent::Postponed(_) => {
                let reason = self.0.delayed.update(nonce, |message| match message.is_reported {
                    true => None,
                    false => message.reason.clone(),
                });
                let Some(reply) = reason.and_then(|reason| delay_report(claimed, &reason)) else { return };
                let notice = reply_in_thread(slot_of_notice(outgoing).as_str(), now, reply);
                vec![Outgoing { nonce: Nonce::new(format!("{nonce}{REPORT_SUFFIX}")), ..notice }]
            }
            Sent::Delivered(_) | Sent::Dropped => {
                self.0.delayed.lock().remove(nonce);
                if claimed.attempts < TRIED_OFTEN || is_report(outgoing) {
                    return;
                }
                undelivered::report_removals(outgoing, now).to_vec()
            }
            Sent::Failed { .. } => {
                self.0.delayed.lock().remove(nonce);
                return;
            }
            Sent::Deferred(_) => return,
        };
        let mut changes = Changes::new(CommitId::fresh(), claimed.thread.clone());
        changes.outbox.extend(messages);
        let applied = self.apply_or_warn(&changes, "Cannot update the report on a delayed message").await;
        if applied && matches!(sent, Sent::Retry(_) | Sent::Postponed(_)) {
            self.0.delayed.update(nonce, |message| message.is_reported = true);
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
        Outbound::Elsewhere { .. } => {
            (None, Text::from("I couldn't tell a program of this change"), "It can still look.")
        }
        _ => (None, Text::from("I couldn't show an answer"), "Nothing is lost."),
    };
    let refused = match &outgoing.body {
        Outbound::Elsewhere { .. } => " (",
        _ => ": Slack refused it (",
    };
    let report = what.plain(refused).code(reason).plain(format!("). {then}"));
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

/// Returns the report on a message that is not delivered yet, if people have to see that message.
fn delay_report(claimed: &Claimed, reason: &str) -> Option<Reply> {
    let (text, then) = match &claimed.outgoing.body {
        _ if is_report(&claimed.outgoing) => return None,
        Outbound::Card { card, state: CardState::Open { asked_by, .. } } => {
            if claimed.posted.as_ref().is_some_and(|posted| posted.card.is_some()) {
                return None; // the card is shown, and merely out of date
            }
            let text = Text::new().person(asked_by.clone()).plain(", I couldn't show the card ");
            (text.bold(card.title.clone()), "; no one can approve it until it appears.")
        }
        Outbound::Reply { .. } => (Text::from("I couldn't show an answer"), "."),
        _ => return None,
    };
    Some(Reply::text(
        text.plain(" yet: Slack doesn't accept it (").code(reason).plain(format!("). {STILL_TRYING}{then}")),
    ))
}
