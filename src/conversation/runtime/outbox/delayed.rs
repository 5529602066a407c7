//! Messages that were tried often and are not there yet: they are reported in the thread, once.
//!
//! Such a message holds up no other ([`TRIED_OFTEN`]), so the report goes before it. The report is removed when the
//! message arrives after all; if it is given up, the final report takes its place. The state here is kept in memory:
//! after a restart the report is made once more, which changes its words and nothing else.

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

/// The number of messages that are remembered. All are forgotten when there are more.
const MAX_REMEMBERED: usize = 10_000;

/// The time added to the wait that Slack asked for, for a message that holds up no other, so that the others go first.
const POSTPONED_BY: Duration = Duration::from_secs(3);

/// The beginning of each report.
const STILL_TRYING: &str = "I'm still trying";

/// The suffix of a report's nonce, after the message's own.
const REPORT_SUFFIX: &str = "-not-yet";

/// The state of messages that were not taken.
#[derive(Debug, Default)]
pub(super) struct DelayedMessages(Mutex<HashMap<Nonce, DelayedMessage>>);

#[derive(Debug, Default)]
struct DelayedMessage {
    /// The number of times that Slack asked to wait with it.
    asked_to_wait: u32,
    /// The reason why it was not taken last, in a word.
    reason: Option<String>,
    /// True if it was reported.
    is_reported: bool,
}

impl DelayedMessages {
    fn of<T>(&self, nonce: &Nonce, change: impl FnOnce(&mut DelayedMessage) -> T) -> T {
        let mut delayed = self.all();
        if delayed.len() >= MAX_REMEMBERED && !delayed.contains_key(nonce) {
            delayed.clear();
        }
        change(delayed.entry(nonce.clone()).or_default())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Nonce, DelayedMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sender {
    /// Handles Slack's request to wait; nothing was done. After a long wait, or the last of many, the message counts as
    /// tried often: nothing else waits for it.
    pub(super) fn on_rate_limit(&self, claimed: &Claimed, wait: Duration) -> Sent {
        let (outgoing, now) = (&claimed.outgoing, self.0.clock.now());
        let times = self.0.delayed.of(&outgoing.nonce, |message| {
            message.asked_to_wait += 1;
            message.asked_to_wait
        });
        metrics::counter!("countersign_asked_to_wait_total").increment(1);
        if times == 1 {
            tracing::warn!(thread.id = %claimed.thread, wait_s = wait.as_secs(), "Slack asks to wait with a message; it is told once for each message");
        }
        if outgoing.progress || (wait <= MAX_WAIT && times < TRIED_OFTEN) {
            return Sent::Deferred(now + wait);
        }
        Sent::Postponed(now + wait + POSTPONED_BY)
    }

    /// Records the reason why a message was not taken. That Slack cannot be reached could not be reported there.
    pub(super) fn note_refusal(&self, claimed: &Claimed, error: &Error) {
        if *error != Error::NotSent {
            self.0.delayed.of(&claimed.outgoing.nonce, |message| message.reason = Some(error.word()));
        }
    }

    /// Returns true for a report on another message that certainly did not arrive: it is made anew with the next try of
    /// the other, or not at all if the other is there by then.
    pub(super) fn is_repeatable_report(&self, claimed: &Claimed, error: &Error) -> bool {
        let is_that =
            matches!(&claimed.outgoing.body, Outbound::Reply { reply } if reply.words().contains(STILL_TRYING));
        let is_untried = is_that
            && claimed.attempts == 0
            && matches!(error, Error::NotSent | Error::Gone { .. } | Error::Refused { .. } | Error::Auth { .. });
        let of = claimed.outgoing.nonce.as_str().strip_suffix(REPORT_SUFFIX).filter(|_| is_untried);
        if let Some(of) = of {
            self.0.delayed.of(&Nonce::new(of), |message| message.is_reported = false);
        }
        of.is_some()
    }

    /// Reports that a message is not there yet, or removes that report.
    pub(super) async fn report_delay(&self, claimed: &Claimed, sent: &Sent) {
        let (outgoing, now) = (&claimed.outgoing, self.0.clock.now());
        let nonce = &outgoing.nonce;
        let messages = match sent {
            Sent::Retry(_) if claimed.attempts + 1 < TRIED_OFTEN => return,
            Sent::Retry(_) | Sent::Postponed(_) => {
                let reason = self.0.delayed.of(nonce, |message| match message.is_reported {
                    true => None,
                    false => message.reason.clone(),
                });
                let Some(reply) = reason.and_then(|reason| delay_report(claimed, &reason)) else { return };
                let notice = reply_in_thread(slot_of_notice(outgoing).as_str(), now, reply);
                vec![Outgoing { nonce: Nonce::new(format!("{nonce}{REPORT_SUFFIX}")), ..notice }]
            }
            Sent::Delivered(_) | Sent::Dropped => {
                self.0.delayed.all().remove(nonce);
                if claimed.attempts < TRIED_OFTEN || is_report(outgoing) {
                    return;
                }
                undelivered::report_removals(outgoing, now).to_vec()
            }
            Sent::Failed { .. } => {
                self.0.delayed.all().remove(nonce);
                return;
            }
            Sent::Deferred(_) => return,
        };
        let mut changes = Changes::new(CommitId::fresh(), claimed.thread.clone());
        changes.outbox.extend(messages);
        match self.0.store.apply(&changes).await {
            Ok(()) if matches!(sent, Sent::Retry(_) | Sent::Postponed(_)) => {
                self.0.delayed.of(nonce, |message| message.is_reported = true);
            }
            Ok(()) => {}
            Err(error) => {
                tracing::warn!(
                    error = countersign_core::cause::chain(&error),
                    "Cannot say of a message whether it is there"
                );
            }
        }
    }
}

/// Returns the report on a message that people have to see and that is not there yet.
fn delay_report(claimed: &Claimed, reason: &str) -> Option<Reply> {
    let (text, then) = match &claimed.outgoing.body {
        _ if is_report(&claimed.outgoing) => return None,
        Outbound::Card { card, state: CardState::Open { asked_by, .. } } => {
            if claimed.posted.as_ref().is_some_and(|posted| posted.card.is_some()) {
                return None; // it is there, and only looks out of date
            }
            let text = Text::new().person(asked_by.clone()).plain(", I couldn't show the card ");
            (text.bold(card.title.clone()), "; nobody can approve it until it appears.")
        }
        Outbound::Reply { .. } => (Text::from("I couldn't show an answer"), "."),
        _ => return None,
    };
    Some(Reply::text(
        text.plain(" yet: Slack doesn't take it (").code(reason).plain(format!("). {STILL_TRYING}{then}")),
    ))
}
