//! Carries out an approved action, once.
//!
//! The order is essential: check that the action is the one that was shown and that its target is
//! unchanged; write `Intent`; send; write the outcome. After a crash between `Intent` and the
//! outcome, the next worker finds the record in `Intent` and settles it by the action's
//! [`Recovery`], never by sending blindly.
//!
//! The harder case is a process that was suspended and then resumes, since another worker may have
//! looked the change up and sent it in the meantime. Each request therefore carries a [`SendPermit`]
//! that begins before the intent is written and ends before any other worker may look
//! ([`send_window`]).

use std::{sync::Arc, time::Duration};

use countersign_core::{
    clock::Timestamp,
    http_log::HttpLog,
    ids::ActionId,
    reply::{Fact, Text},
    send_permit::SendPermit,
};
use futures_util::FutureExt as _;
use serde_json::{Value, json};

use super::session::{Session, StepInfo, outgoing};
use crate::{
    action::{ActionKind, ActionRecord, ErrorKind, Outcome, Performed, Policy, Probed, Recovery, Status},
    checkpoint::Cursor,
    engine::{Engine, LeaseState, PolicyInput},
    keyring::Proof,
    node::State,
    standing::Entitled,
    store::{ActionChange, AuditKind, Changes, Error, Outbound, TimerChange},
    unwind::{Panicked, caught},
};

/// The name of the trace step for carrying out an action.
const EXECUTE: &str = "execute";

/// The maximum number of times that a request is sent, each time with evidence that the previous
/// one had no effect.
const MAX_SENDS: u32 = 3;

/// The time after the intent in which requests may be sent, for an action that is never looked up.
const SEND_WINDOW: Duration = Duration::from_secs(30);

/// The time for which the approvals of an action count without another look at who gave them. An action runs within
/// moments of its last approval, unless the process was stopped in between.
const DECISION_IS_FRESH: Duration = Duration::from_secs(10);

/// The maximum number of differences that are listed when the target has changed.
const MAX_DIFFERENCES: usize = 6;

/// Returns the progress, for the audit trail.
pub(super) fn so_far(record: &ActionRecord) -> Value {
    record.progress.as_ref().map_or_else(|| json!({}), |at| json!({ "done": at.done, "total": at.total }))
}

impl<S: State> Engine<S> {
    /// Continues an action from the status of its record.
    pub(super) async fn carry_out(
        &self,
        session: &mut Session<S>,
        id: &ActionId,
        node: &str,
    ) -> Result<LeaseState, Error> {
        let Some(record) = self.decided(session, id).await? else {
            return Err(Error::Corrupt { what: format!("action {id} is to be carried out but is not stored") });
        };
        tracing::Span::current().record("action.name", record.name.as_str());
        let began = self.clock.now();
        let Some(kind) = self.actions.get(record.name.as_str()).cloned() else {
            let summary = Text::from("This kind of change is no longer offered, so nothing was done.");
            return self.close(session, &record, Attempt { node, began }, failed(ErrorKind::Execution, summary)).await;
        };
        // This also applies to an action in `Intent`: its record is no longer what a person approved, so it must not be
        // used to look the action up.
        if let (Some(objection), Status::Approved | Status::Intent) = (record.proof.objection(), record.status) {
            match &record.proof {
                Proof::KeyMissing(key) => {
                    tracing::error!(action.id = %record.id, %key, "The digest key of an approved action is missing, so it does not run");
                }
                proof => {
                    tracing::error!(action.id = %record.id, ?proof, "The stored action is not the one that was shown");
                }
            }
            let summary = Text::from(objection);
            let outcome = match record.status {
                Status::Intent => unknown(summary.plain(" It may have been sent before that.")),
                _ => failed(ErrorKind::Execution, summary),
            };
            return self.close(session, &record, Attempt { node, began }, outcome).await;
        }
        match record.status {
            Status::Approved => match self.refusal(&*kind, &record).await {
                Some(refused) => self.close(session, &record, Attempt { node, began }, refused).await,
                None => match kind.claimed_within(&record) {
                    Some(within) => self.await_claim(session, &record, within, Attempt { node, began }).await,
                    None => Box::pin(self.send(session, &*kind, record, Attempt { node, began })).await,
                },
            },
            Status::Intent => match kind.batches() {
                Some(batches) => {
                    Box::pin(self.take_over_batches(session, batches, record, Attempt { node, began })).await
                }
                None => Box::pin(self.settle(session, &*kind, record, Attempt { node, began })).await,
            },
            _ => {
                session.checkpoint.cursor = Cursor::At { node: node.to_owned(), attempt: 0, ended: Some(id.clone()) };
                Ok(LeaseState::Held)
            }
        }
    }

    /// Returns an outcome if an approved action must not be carried out.
    async fn refusal(&self, kind: &dyn ActionKind, record: &ActionRecord) -> Option<Outcome> {
        if record.action_version != kind.info().version {
            let summary = Text::from("I was updated after this card was posted, so nothing was done. Ask again.");
            return Some(failed(ErrorKind::Execution, summary));
        }
        let policy = (self.policy_for)(&PolicyInput::of(record));
        if let Some(refused) = lapsed(record, policy, &*self.entitled, self.clock.now()).await {
            return Some(refused);
        }
        let read = tokio::time::timeout(self.settings.step_timeout, caught(kind.preconditions(record))).await;
        match read.map(|read| read.unwrap_or_else(|Panicked| Err(panicked_before_sending()))) {
            Ok(Ok(found)) if found == *record.preconditions => None,
            Ok(Ok(found)) => Some(match kind.already(record, &found) {
                Some(summary) => failed(ErrorKind::Already, summary),
                None => failed(ErrorKind::Execution, describe_differences(&kind.differences(record, &found))),
            }),
            Ok(Err(outcome)) => Some(outcome),
            Err(_) => Some(failed(
                ErrorKind::Network,
                Text::from("The platform took too long to answer, so nothing was done. Ask again."),
            )),
        }
    }

    /// Writes the intent, sends the request, and records the answer.
    async fn send(
        &self,
        session: &mut Session<S>,
        kind: &dyn ActionKind,
        record: ActionRecord,
        attempt: Attempt<'_>,
    ) -> Result<LeaseState, Error> {
        // The permit begins before the intent is written, because other workers count from the time of the intent.
        let permit = SendPermit::new(self.clock.clone(), send_window(kind.recovery()));
        let now = self.clock.now();
        let mut intent = record.moved(Status::Intent).map_err(illegal)?;
        intent.intent_at = Some(now);
        intent.sends += 1;
        let mut changes = session.changes();
        changes.audit.push(intent.event(
            AuditKind::Executed,
            now,
            None,
            json!({ "digest": intent.digest, "keyed": intent.keyed }),
        ));
        changes.timers.push(TimerChange::Clear { key: intent.expiry_timer() });
        changes.actions.push(ActionChange { expected: Some(record.revision), record: intent.clone() });
        let info = info("intent", EXECUTE, attempt.began, now);
        self.save_step(session, info, changes, None).await?;

        if let Some(batches) = kind.batches() {
            return Box::pin(self.make_batches(session, batches, intent, attempt, false)).await;
        }
        let began = self.clock.now();
        if permit.check().is_err() && kind.recovery() != Recovery::Ask {
            // This process was suspended, and another worker may already have looked the change up and sent it again.
            return Box::pin(self.settle(session, kind, intent, Attempt { began, ..attempt })).await;
        }
        let http_log = HttpLog::default();
        let sent = caught(kind.perform(&intent))
            .map(|sent| sent.unwrap_or_else(|panicked| Performed::NoAnswer { detail: panicked.to_string() }));
        let perform = permit.during(tokio::time::timeout(self.settings.step_timeout, sent));
        let sent = http_log.during(perform).await;
        note_requests(session, &intent, &http_log, self.clock.now());
        let attempt = Attempt { began, ..attempt };
        match sent.unwrap_or(Performed::NoAnswer { detail: "no answer in time".to_owned() }) {
            Performed::Ended(outcome) => self.close(session, &intent, attempt, outcome).await,
            Performed::NoAnswer { detail } => {
                tracing::warn!(action.id = %intent.id, action.name = %intent.name, detail, "No answer to an action");
                let answers = [intent.answers.as_slice(), &[detail]].concat();
                Box::pin(self.settle(session, kind, ActionRecord { answers, ..intent }, attempt)).await
            }
        }
    }

    /// Settles an action that was sent, or was about to be sent, without a known answer. It never
    /// guesses.
    async fn settle(
        &self,
        session: &mut Session<S>,
        kind: &dyn ActionKind,
        record: ActionRecord,
        attempt: Attempt<'_>,
    ) -> Result<LeaseState, Error> {
        match kind.recovery() {
            Recovery::Idempotent => self.send_again(session, kind, record, attempt).await,
            Recovery::Ask => {
                let evidence = describe_sends(&record).plain(" I can't check whether it happened.");
                self.close(session, &record, attempt, unknown(evidence)).await
            }
            Recovery::Probe { in_flight, repeatable } => {
                let now = self.clock.now();
                let left = record.intent_at.unwrap_or(now);
                if now < left + in_flight {
                    return self.wait(session, &record, attempt, left + in_flight).await;
                }
                let http_log = HttpLog::default();
                let probe = caught(kind.probe(&record)).map(|probed| {
                    let evidence = || "Something went wrong on my side while I checked it.".into();
                    probed.unwrap_or_else(|Panicked| Probed::CannotTell { evidence: evidence() })
                });
                let probe = tokio::time::timeout(self.settings.step_timeout, probe);
                let probed = http_log.during(probe).await;
                note_requests(session, &record, &http_log, self.clock.now());
                let probed = probed.unwrap_or(Probed::CannotTell { evidence: "The platform isn't answering.".into() });
                // No effect so far is no evidence: a request can be delayed in transit for longer than its sender
                // waits.
                let inconclusive = !matches!(probed, Probed::Happened(_) | Probed::Otherwise { .. });
                let next = super::looks::next(left, now, in_flight, self.settings.settle_within);
                if let (true, Some(next)) = (inconclusive, next) {
                    return self.wait(session, &record, attempt, next).await;
                }
                let evidence = match probed {
                    Probed::Happened(outcome) => return self.close(session, &record, attempt, outcome).await,
                    Probed::DidNotHappen if repeatable && record.sends < MAX_SENDS => {
                        return self.send_again(session, kind, record, attempt).await;
                    }
                    // The part that happened is not sent again; the rest can be continued.
                    Probed::Unfinished { .. } if record.sends < MAX_SENDS => {
                        return self.send_again(session, kind, record, attempt).await;
                    }
                    Probed::DidNotHappen => describe_sends(&record).plain(" I checked: nothing had changed."),
                    Probed::Unfinished { evidence }
                    | Probed::Otherwise { evidence }
                    | Probed::CannotTell { evidence } => match record.answers.is_empty() {
                        true => evidence,
                        false => describe_sends(&record).plain(" ").join(evidence),
                    },
                };
                self.close(session, &record, attempt, unknown(evidence)).await
            }
        }
    }

    /// Sends the request again, because the change did not happen or a repeat has no effect.
    async fn send_again(
        &self,
        session: &mut Session<S>,
        kind: &dyn ActionKind,
        record: ActionRecord,
        attempt: Attempt<'_>,
    ) -> Result<LeaseState, Error> {
        if record.sends >= MAX_SENDS {
            return self.close(session, &record, attempt, unknown(describe_sends(&record))).await;
        }
        Box::pin(self.send(session, kind, record, attempt)).await
    }

    /// Releases the thread until the next look.
    async fn wait(
        &self,
        session: &mut Session<S>,
        record: &ActionRecord,
        attempt: Attempt<'_>,
        until: Timestamp,
    ) -> Result<LeaseState, Error> {
        let now = self.clock.now();
        let mut changes = session.changes();
        let text = "No answer yet. Checking whether it happened…".to_owned();
        let status = Outbound::Status { text, draft: None };
        changes.outbox.push(outgoing(session.checkpoint.reply_slots.slot(), now, status));
        session.status_due = Some(now + self.settings.status_every);
        tracing::info!(action.id = %record.id, "Waiting before checking whether an action happened");
        let info = info(EXECUTE, "probe", attempt.began, now);
        // The answers so far are saved, so that whichever process ends the action can report them.
        let waits = record.moved(Status::Intent).map_err(illegal)?;
        changes.actions.push(ActionChange { expected: Some(record.revision), record: waits });
        self.save_step(session, info, changes, Some(until)).await
    }

    /// Records the outcome and continues at the node that receives it.
    pub(super) async fn close(
        &self,
        session: &mut Session<S>,
        record: &ActionRecord,
        attempt: Attempt<'_>,
        outcome: Outcome,
    ) -> Result<LeaseState, Error> {
        let now = self.clock.now();
        let mut ended = record.moved(outcome.status()).map_err(illegal)?;
        let mut detail = json!({ "status": ended.status, "summary": outcome.summary().words() });
        if ended.stopped_after().is_some() {
            detail["stopped"] = so_far(&ended);
        }
        ended.outcome = Some(outcome);
        session.checkpoint.cursor =
            Cursor::At { node: attempt.node.to_owned(), attempt: 0, ended: Some(record.id.clone()) };
        let mut changes: Changes = session.changes();
        changes.audit.push(ended.event(AuditKind::Outcome, now, None, detail));
        changes.timers.push(TimerChange::Clear { key: ended.expiry_timer() });
        let card = Outbound::Card { card: ended.card.clone(), state: ended.card_state() };
        changes.outbox.push(outgoing(ended.slot.clone(), now, card));
        changes.actions.push(ActionChange { expected: Some(record.revision), record: ended });
        let info = info(EXECUTE, attempt.node, attempt.began, now);
        // After a crash, the outcome of such an action is read back.
        let is_found_again = |kind: &Arc<dyn ActionKind>| matches!(kind.recovery(), Recovery::Probe { .. });
        match self.actions.get(record.name.as_str()).is_some_and(is_found_again) {
            true => self.hold_step(session, info, changes).await,
            false => self.save_step(session, info, changes, None).await,
        }
    }
}

/// Returns an outcome if the approvals of an action were given some time ago and are no longer enough: a giver may not
/// approve it any more, or `policy`, the current one, needs more of them now.
pub async fn lapsed(record: &ActionRecord, policy: Policy, entitled: &dyn Entitled, now: Timestamp) -> Option<Outcome> {
    let decided = record.decisions.last()?.at;
    let approved = record.approved_by().len();
    if record.under.is_some() || approved == 0 || now.since(decided) < DECISION_IS_FRESH {
        return None;
    }
    let mut current = record.clone();
    current.policy = policy.into();
    let lapses = entitled.lapses(&current).await;
    let (left, needed) = (approved - lapses.len().min(approved), current.policy.needed);
    if left >= needed as usize {
        return None;
    }
    let text = lapses.into_iter().fold(Text::from("Nothing was done."), |text, lapse| {
        text.plain(" ").person(lapse.by).plain(format!("’s approval no longer counts: {}.", lapse.why))
    });
    let needed = if needed == 1 { "1 approval".to_owned() } else { format!("{needed} approvals") };
    Some(failed(ErrorKind::Execution, text.plain(format!(" This needs {needed} now. Ask again for a new card."))))
}

/// Returns the time after the intent in which requests of an action may be sent.
///
/// A process that finds the intent looks the change up after the time in flight. Half of that time
/// is for sending; a request sent at the last moment has the other half to arrive and to take
/// effect. For an action that is not looked up, requests may be sent for about the usual duration
/// of a lease.
fn send_window(recovery: Recovery) -> Duration {
    match recovery {
        Recovery::Probe { in_flight, .. } => in_flight / 2,
        Recovery::Idempotent | Recovery::Ask => SEND_WINDOW,
    }
}

/// One attempt at an action: the node that receives its end, and the time at which it began.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) node: &'a str,
    pub(super) began: Timestamp,
}

/// Adds the requests sent for an action, and their answers, to the audit trail.
pub(super) fn note_requests<S: State>(
    session: &mut Session<S>,
    record: &ActionRecord,
    http_log: &HttpLog,
    now: Timestamp,
) {
    let sent = http_log.take();
    if !sent.is_empty() {
        session.note(record.event(AuditKind::Sent, now, None, json!({ "exchanges": sent })));
    }
}

fn info<'a>(node: &'a str, next: &'a str, began: Timestamp, now: Timestamp) -> StepInfo<'a> {
    let took: Duration = now.since(began);
    StepInfo { node, next, began, took, usage: None, error: None, pause: false }
}

/// Describes how often the request was sent and with what result: no answer, or an answer that does
/// not show whether the change happened.
fn describe_sends(record: &ActionRecord) -> Text {
    let clause = |answer: &String| match answer.as_str() {
        "no answer in time" => "no answer came in time".to_owned(),
        answer => answer.to_owned(),
    };
    let mut answers: Vec<String> = record.answers.iter().map(clause).collect();
    let all_known = u32::try_from(answers.len()).is_ok_and(|known| known >= record.sends);
    answers.dedup();
    Text::from(match (record.sends, answers.as_slice()) {
        (0 | 1, [one]) => format!("It was sent, but {one}."),
        (0 | 1, _) => "There was no answer.".to_owned(),
        (times, [one]) if all_known => format!("It was sent {times} times; each time, {one}."),
        (times, []) => format!("It was sent {times} times, without an answer on record."),
        (times, several) => format!("It was sent {times} times: {}.", several.join("; then ")),
    })
}

/// Describes the differences between the state on the card and the current one.
fn describe_differences(differences: &[Fact]) -> Text {
    let text = Text::from("It changed after this card was posted, so nothing was done.");
    let shown = differences.iter().take(MAX_DIFFERENCES);
    let text = shown.enumerate().fold(text, |text, (n, fact)| {
        let text = text.plain(if n == 0 { " On the card → now: " } else { "; " }).bold(fact.label.as_str()).plain(" ");
        let before = fact.before.clone().unwrap_or_else(|| Text::from("nothing"));
        text.join(before).plain(" → ").join(fact.after.clone())
    });
    let text = match differences.len().saturating_sub(MAX_DIFFERENCES) {
        0 => text.plain(". "),
        more => text.plain(format!("; and {more} more. ")),
    };
    text.bold("Try again").plain(" posts a card that shows how it is now.")
}

pub(super) fn failed(error: ErrorKind, summary: Text) -> Outcome {
    Outcome::Failed { error, summary }
}

/// Returns the outcome of an action that panicked before anything was sent.
fn panicked_before_sending() -> Outcome {
    failed(ErrorKind::Execution, Text::from("Something went wrong on my side, so nothing was done. Ask again."))
}

pub(super) fn unknown(evidence: Text) -> Outcome {
    Outcome::Unknown {
        summary: Text(evidence.0.into_iter().collect())
            .plain(" It may or may not have happened. Check before asking again."),
    }
}

pub(super) fn illegal(error: crate::action::IllegalMove) -> Error {
    Error::Corrupt { what: error.to_string() }
}
