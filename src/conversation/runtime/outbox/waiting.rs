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
    request::in_thread,
    store::{Changes, Claimed, Outbound, Outgoing, Sent, TRIED_OFTEN},
};
use countersign_slack::client_error::Error;

use super::{Sender, refused::LONGEST_WAIT};
use crate::record::undelivered::{self, slot_of_notice, tells_of_another};

/// The number of messages that are remembered. All are forgotten when there are more.
const REMEMBERED: usize = 10_000;

/// The time added to the wait that Slack asked for, for a message that holds up no other, so that the others go first.
const AFTER_THE_OTHERS: Duration = Duration::from_secs(3);

/// The beginning of each report.
const STILL_TRYING: &str = "I'm still trying";

/// The suffix of a report's nonce, after the message's own.
const NOT_YET: &str = "-not-yet";

/// The state of messages that were not taken.
#[derive(Debug, Default)]
pub(super) struct Troubles(Mutex<HashMap<Nonce, Trouble>>);

#[derive(Debug, Default)]
struct Trouble {
    /// The number of times that Slack asked to wait with it.
    asked_to_wait: u32,
    /// The reason why it was not taken last, in a word.
    reason: Option<String>,
    /// True if it was reported.
    told: bool,
}

impl Troubles {
    fn of<T>(&self, nonce: &Nonce, change: impl FnOnce(&mut Trouble) -> T) -> T {
        let mut troubles = self.all();
        if troubles.len() >= REMEMBERED && !troubles.contains_key(nonce) {
            troubles.clear();
        }
        change(troubles.entry(nonce.clone()).or_default())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Nonce, Trouble>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sender {
    /// Handles Slack's request to wait; nothing was done. After a long wait, or the last of many, the message counts as
    /// tried often: nothing else waits for it.
    pub(super) fn asked_to_wait(&self, claimed: &Claimed, wait: Duration) -> Sent {
        let (outgoing, now) = (&claimed.outgoing, self.0.clock.now());
        let times = self.0.troubles.of(&outgoing.nonce, |trouble| {
            trouble.asked_to_wait += 1;
            trouble.asked_to_wait
        });
        metrics::counter!("countersign_asked_to_wait_total").increment(1);
        if times == 1 {
            tracing::warn!(thread.id = %claimed.thread, wait_s = wait.as_secs(), "Slack asks to wait with a message; it is told once for each message");
        }
        if outgoing.progress || (wait <= LONGEST_WAIT && times < TRIED_OFTEN) {
            return Sent::Deferred(now + wait);
        }
        Sent::Postponed(now + wait + AFTER_THE_OTHERS)
    }

    /// Records the reason why a message was not taken. That Slack cannot be reached could not be reported there.
    pub(super) fn not_taken(&self, claimed: &Claimed, error: &Error) {
        if *error != Error::NotSent {
            self.0.troubles.of(&claimed.outgoing.nonce, |trouble| trouble.reason = Some(error.word()));
        }
    }

    /// Returns true for a report on another message that certainly did not arrive: it is made anew with the next try of
    /// the other, or not at all if the other is there by then.
    pub(super) fn is_said_anew(&self, claimed: &Claimed, error: &Error) -> bool {
        let is_that =
            matches!(&claimed.outgoing.body, Outbound::Reply { reply } if reply.words().contains(STILL_TRYING));
        let is_untried = is_that
            && claimed.attempts == 0
            && matches!(error, Error::NotSent | Error::Gone { .. } | Error::Refused { .. } | Error::Auth { .. });
        let of = claimed.outgoing.nonce.as_str().strip_suffix(NOT_YET).filter(|_| is_untried);
        if let Some(of) = of {
            self.0.troubles.of(&Nonce::new(of), |trouble| trouble.told = false);
        }
        of.is_some()
    }

    /// Reports that a message is not there yet, or removes that report.
    pub(super) async fn tell_of_waiting(&self, claimed: &Claimed, sent: &Sent) {
        let (outgoing, now) = (&claimed.outgoing, self.0.clock.now());
        let nonce = &outgoing.nonce;
        let said = match sent {
            Sent::Retry(_) if claimed.attempts + 1 < TRIED_OFTEN => return,
            Sent::Retry(_) | Sent::Postponed(_) => {
                let reason = self.0.troubles.of(nonce, |trouble| match trouble.told {
                    true => None,
                    false => trouble.reason.clone(),
                });
                let Some(reply) = reason.and_then(|reason| not_yet(claimed, &reason)) else { return };
                let notice = in_thread(slot_of_notice(outgoing).as_str(), now, reply);
                vec![Outgoing { nonce: Nonce::new(format!("{nonce}{NOT_YET}")), ..notice }]
            }
            Sent::Delivered(_) | Sent::Dropped => {
                self.0.troubles.all().remove(nonce);
                if claimed.attempts < TRIED_OFTEN || tells_of_another(outgoing) {
                    return;
                }
                undelivered::take_back(outgoing, now).to_vec()
            }
            Sent::Failed { .. } => {
                self.0.troubles.all().remove(nonce);
                return;
            }
            Sent::Deferred(_) => return,
        };
        let mut changes = Changes::new(CommitId::fresh(), claimed.thread.clone());
        changes.outbox.extend(said);
        match self.0.store.apply(&changes).await {
            Ok(()) if matches!(sent, Sent::Retry(_) | Sent::Postponed(_)) => {
                self.0.troubles.of(nonce, |trouble| trouble.told = true);
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
fn not_yet(claimed: &Claimed, reason: &str) -> Option<Reply> {
    let (text, then) = match &claimed.outgoing.body {
        _ if tells_of_another(&claimed.outgoing) => return None,
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
