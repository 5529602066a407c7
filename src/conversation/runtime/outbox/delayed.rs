//! Reports messages that Slack has not accepted after many attempts, once each, in their thread.
//!
//! Such a message does not delay others ([`TRIED_OFTEN`]), so the report is sent before it. The
//! report is removed if the message is delivered after all; if the message is given up, the final
//! report replaces this one. The state is kept in memory: after a restart the report is made again,
//! which merely updates its text.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use countersign_core::{
    ids::{CommitId, Nonce},
    reply::{CardState, Reply, Text},
};
use countersign_graph::{
    request::reply_in_thread,
    store::{Changes, Claimed, Outbound, Outgoing, Sent, TRIED_OFTEN},
};
use countersign_slack::client_error::Error;

use super::{Sender, refused::MAX_WAIT};
use crate::record::undelivered::{self, is_report, slot_of_notice};

/// The maximum number of messages that are remembered. If there are more, all are forgotten.
const MAX_REMEMBERED: usize = 10_000;

/// The time added to the wait that Slack asks for. It applies to a message that does not delay
/// others, so that the others are sent first.
const POSTPONED_BY: Duration = Duration::from_secs(3);

/// The words by which a report is recognised.
const STILL_TRYING: &str = "I'm still trying";

/// The suffix of a report's nonce, which follows the nonce of the message.
const REPORT_SUFFIX: &str = "-not-yet";

/// The state of messages that Slack has not accepted.
#[derive(Debug, Default)]
pub(super) struct DelayedMessages(Mutex<HashMap<Nonce, DelayedMessage>>);

#[derive(Debug, Default)]
struct DelayedMessage {
    /// The number of times that Slack asked to wait with the message.
    asked_to_wait: u32,
    /// The reason for the last refusal, as a code.
    reason: Option<String>,
    /// True if the delay was reported.
    is_reported: bool,
}

impl DelayedMessages {
    /// Changes the state of one message.
    fn update<T>(&self, nonce: &Nonce, change: impl FnOnce(&mut DelayedMessage) -> T) -> T {
        let mut delayed = self.lock();
        if delayed.len() >= MAX_REMEMBERED && !delayed.contains_key(nonce) {
            delayed.clear();
        }
        change(delayed.entry(nonce.clone()).or_default())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Nonce, DelayedMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        match self.0.store.apply(&changes).await {
            Ok(()) if matches!(sent, Sent::Retry(_) | Sent::Postponed(_)) => {
                self.0.delayed.update(nonce, |message| message.is_reported = true);
            }
            Ok(()) => {}
            Err(error) => {
                tracing::warn!(
                    error = countersign_core::cause::chain(&error),
                    "Cannot update the report on a delayed message"
                );
            }
        }
    }
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
