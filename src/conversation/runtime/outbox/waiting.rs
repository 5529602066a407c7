//! Messages that were tried often and are not there yet: those concerned are told in the thread, once.
//!
//! Such a message holds up nobody ([`TRIED_OFTEN`]), so what is said of it goes before it. It is taken back when the
//! message is there after all; if that is given up, what is said then takes its place. What is known here of a message is
//! kept in memory: after a restart it is told once more, which changes the words that stand there and nothing else.

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

/// How many messages are remembered. All are forgotten when there are more.
const REMEMBERED: usize = 10_000;

/// How much longer than Slack asked a message waits that nothing waits for, so that the others go first.
const AFTER_THE_OTHERS: Duration = Duration::from_secs(3);

/// What is said of each such message.
const STILL_TRYING: &str = "I'm still trying";

/// How the nonce ends of what is said of a message; the message's own stands before it.
const NOT_YET: &str = "-not-yet";

/// What is known of messages that were not taken.
#[derive(Debug, Default)]
pub(super) struct Troubles(Mutex<HashMap<Nonce, Trouble>>);

#[derive(Debug, Default)]
struct Trouble {
    /// How often Slack asked to wait with it.
    asked_to_wait: u32,
    /// Why it was not taken last, in a word.
    reason: Option<String>,
    /// Whether those concerned were told.
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
    /// Slack asks to wait, and nothing was done. After a long wait, or the last of many, it counts as tried often: nothing
    /// else waits for it.
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

    /// Remembers why a message was not taken. Of Slack's being out of reach nobody can be told there.
    pub(super) fn not_taken(&self, claimed: &Claimed, error: &Error) {
        if *error != Error::NotSent {
            self.0.troubles.of(&claimed.outgoing.nonce, |trouble| trouble.reason = Some(error.word()));
        }
    }

    /// Whether it says that another message is not there yet, and is certainly not there itself: that is said anew with
    /// the next try of the other, or not at all if the other is there by then.
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

    /// Tells those concerned that a message is not there yet, or takes that back.
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

/// What is said of a message that people have to see and that is not there yet.
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
