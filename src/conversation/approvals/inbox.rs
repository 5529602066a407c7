//! Handles clicks, and writes decisions.
//!
//! An approval is decided in the write that would store its click, if all that it depends on is known; otherwise the click
//! is stored first.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use countersign_core::{
    cause,
    clock::Clock,
    ids::{ApprovalId, CommitId, ThreadId, UserId},
    reply::Reply,
    spans,
};
use countersign_graph::{
    action::{ActionKind, ActionRecord, Decision, Lapse, Status, Verdict},
    conversing::Memories,
    engine::PolicyFor,
    keyring::{Keyring, Proof},
    request::Times,
    standing::Entitled as _,
    store::{ActionChange, ActionKey, AuditKind, Changes, Error, KnownCard, KnownCards, Seq, Store, ThreadMessage},
};
use countersign_slack::client::SlackClient;
use serde_json::json;

use super::{
    MAX_WRITE_ATTEMPTS,
    clicks::{CardButton, Click},
    completing,
    decide::{DecisionMethod, decide},
    groups::Groups,
    people::{AccountDenial, People},
    policy::{self, Denial, Person},
    replies,
};
use crate::presentation::{links::Links, modals, names::Names};

/// The outcomes of a click.
#[derive(Debug, PartialEq)]
pub enum InboxAnswer {
    /// The click counted, and this thread continues.
    Counted(ThreadId),
    /// The click did not count, and the person gets this reply.
    Refused(Reply),
    /// The click did not count, but the card has changed: it has expired, or other people may
    /// decide now. The person gets the reply, and the thread continues.
    Redrawn {
        /// The thread of the card.
        thread: ThreadId,
        /// The reply to the person.
        reply: Reply,
    },
    /// Slack did not identify the person, so the click is handled again. If that fails for the last
    /// time, the person gets the reply.
    Unanswered {
        /// The action of the card.
        record: Box<ActionRecord>,
        /// The reply to the person.
        reply: Reply,
    },
    /// The click is not a decision, but a message to the assistant in this thread.
    PassedOn(ThreadId),
    /// It needs no answer.
    NoAnswer,
    /// It needs no answer, and is no longer in the inbox.
    Removed,
}

impl InboxAnswer {
    /// Returns the private reply to the person, if there is one.
    pub fn reply(&self) -> Option<&Reply> {
        match self {
            Self::Refused(reply) | Self::Redrawn { reply, .. } => Some(reply),
            Self::Counted(_) | Self::PassedOn(_) | Self::Unanswered { .. } | Self::NoAnswer | Self::Removed => None,
        }
    }
}

/// The result of checking a decision before it is written.
pub(super) enum Checked {
    /// The person may make this decision about the action, as it is now.
    Allowed(Box<ActionRecord>, Verdict),
    /// The person may not, and gets this answer.
    Answered(InboxAnswer),
}

/// The service that handles and records decisions.
#[derive(Clone)]
pub struct Approvals(Arc<ApprovalsDeps>);

/// The dependencies of [`Approvals`].
pub struct ApprovalsDeps {
    /// The store of the actions.
    pub store: Arc<dyn Store>,
    /// The cards that this process knows.
    pub cards: Arc<KnownCards>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The reader of the threads' memories.
    pub memories: Memories,
    /// The client that opens forms.
    pub slack: SlackClient,
    /// The members of the user groups.
    pub groups: Groups,
    /// The rights of people.
    pub people: People,
    /// The names of the people on cards.
    pub names: Names,
    /// The links to cards.
    pub links: Links,
    /// The kinds of action, by name.
    pub actions: BTreeMap<&'static str, Arc<dyn ActionKind>>,
    /// The current policy for an action.
    pub policy_for: PolicyFor,
    /// The keys of the digests.
    pub keys: Arc<Keyring>,
    /// The durations for which a card is open.
    pub times: Times,
}

impl Deref for Approvals {
    type Target = ApprovalsDeps;

    fn deref(&self) -> &ApprovalsDeps {
        &self.0
    }
}

impl Approvals {
    /// Creates the service from its dependencies.
    pub fn new(deps: ApprovalsDeps) -> Self {
        Self(Arc::new(deps))
    }

    /// Handles a press on a button of a card.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn on_click(&self, click: &Click, seq: Seq) -> Result<InboxAnswer, Error> {
        let Ok(approval) = ApprovalId::try_from(click.key.clone()) else {
            return Ok(InboxAnswer::Refused(replies::not_known()));
        };
        let record = match self.store.action(ActionKey::ByApproval(&approval)).await {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(InboxAnswer::Refused(replies::not_known())),
            Err(error @ (Error::Corrupt { .. } | Error::Newer { .. })) => {
                tracing::error!(
                    error = cause::chain(&error),
                    "The record of a card cannot be read, so its buttons do nothing"
                );
                return Ok(InboxAnswer::Refused(replies::not_readable()));
            }
            Err(error) => return Err(error),
        };
        // Slack shows a shared channel in both workspaces, and only members of ours may decide.
        if click.elsewhere {
            self.record_refusal(&record, &click.by, AccountDenial::External.word()).await?;
            return Ok(InboxAnswer::Refused(AccountDenial::External.may_not_decide()));
        }
        if let Some(right) = click.button.required_right()
            && let Err(denial) = self.people.may(&click.by, right).await
        {
            let reply = denial.refusal(right);
            if denial == AccountDenial::Unanswered {
                return Ok(InboxAnswer::Unanswered { record: Box::new(record), reply });
            }
            self.record_refusal(&record, &click.by, denial.word()).await?;
            return Ok(InboxAnswer::Refused(reply));
        }
        // Slack may post a card twice. A copy keeps its buttons after the card was redrawn, so it may show what is no
        // longer so.
        if self.is_copy(&record, click).await? {
            self.record_refusal(&record, &click.by, "copied").await?;
            return Ok(InboxAnswer::Refused(replies::copied(self.delete_copy(&record, click).await)));
        }
        match click.button {
            CardButton::Approve | CardButton::Reject | CardButton::Withdraw => {
                self.on_decision(record, click, seq).await
            }
            CardButton::Stop => self.stop(&record, &click.by, seq).await,
            CardButton::ShowAll => self.show_all(&record, click).await,
            CardButton::Edit => self.open_form(record, click, modals::EDIT).await,
            CardButton::Change => self.open_form(record, click, modals::CHANGE).await,
            CardButton::Undo | CardButton::Again => self.request_follow_up(&record, click, seq).await,
            CardButton::Check => self.check_again(&record, &click.by, seq).await,
            CardButton::MarkDone => self.mark_done(&record, click, seq).await,
            CardButton::Abandon => self.abandon(&record, click, seq).await,
            CardButton::Answer => self.open_answer(&record, click).await,
            CardButton::Decline => self.answer(&record, click, "decline").await,
            CardButton::CancelCall => self.answer(&record, click, "cancel").await,
        }
    }

    /// Returns the approval that a press makes, as the record after it and the changes that store it; `None` if the press
    /// has to be handled like every other. The record may be outdated: the changes are refused then.
    ///
    /// Everything that the decision depends on has to be known in this process: the card, its message, and the rights of
    /// the person.
    pub async fn approval_at_once(&self, click: &Click) -> Option<(ActionRecord, Changes)> {
        let approval = ApprovalId::try_from(click.key.clone()).ok()?;
        if click.button != CardButton::Approve || click.elsewhere {
            return None;
        }
        let KnownCard { record, posted } = self.cards.get(&approval).await?;
        let now = self.clock.now();
        let is_on_its_card = click.message.as_ref() == Some(&posted.ts)
            && click.channel.as_ref() == Some(&posted.channel)
            && posted.channel == record.thread.channel;
        let is_open = record.status.is_open() && now < record.expires_at;
        if !is_on_its_card || !is_open || !record.proof.holds() {
            return None;
        }
        if self.with_current_policy(record.clone()).digest != record.digest {
            return None; // the card has to be redrawn
        }
        let person = self.groups.known_person(&record, &click.by, true)?;
        policy::may_approve(&record, &click.by, &person).ok()?;
        let decision = Decision { by: Some(click.by.clone()), at: now, verdict: Verdict::Approved };
        decide(&record, decision, Some(DecisionMethod::Button), None).ok()
    }

    /// Returns true if a button was pressed in the channel of the record, or in the Home tab by a
    /// member of that channel.
    pub(super) async fn is_in_channel(&self, record: &ActionRecord, click: &Click) -> bool {
        let channel = &record.thread.channel;
        click.channel.as_ref() == Some(channel)
            || (click.is_in_home() && self.groups.is_in_channel(channel, &click.by).await)
    }

    /// Handles a press that is a decision.
    async fn on_decision(&self, mut record: ActionRecord, click: &Click, seq: Seq) -> Result<InboxAnswer, Error> {
        let in_channel = self.is_in_channel(&record, click).await;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            // One press once rejected the request of another person at once. Now it only opens the window for the
            // reason.
            let asks = click.button == CardButton::Reject && record.card.asks_for_reason();
            let answer = match asks && record.is_judged_by(&click.by) {
                true => match self.check_decision(&record, &click.by, click.button, in_channel).await? {
                    Ok(Checked::Allowed(record, _)) => return Ok(self.ask_for_reason(&record, click).await),
                    Ok(Checked::Answered(answer)) => Ok(answer),
                    Err(current) => Err(current),
                },
                false => {
                    let how = (click.button, DecisionMethod::Button);
                    self.try_decide(&record, &click.by, how, in_channel, seq).await?
                }
            };
            match answer {
                Ok(answer) => return Ok(answer),
                Err(current) => record = current,
            }
        }
        Err(lost_race(record))
    }

    /// Returns the reply to a person who decides after the decision was made.
    pub(super) async fn too_late_reply(&self, record: &ActionRecord) -> Reply {
        let newer = match &record.replaced_by {
            Some(newer) => self.links.slot(&record.thread, &newer.slot).await.unwrap_or_default(),
            None => None,
        };
        replies::already_decided(record, self.clock.now(), newer)
    }

    /// Returns the record with the current policy. A record that does not match its digest is
    /// returned unchanged, since it will be refused.
    pub(super) fn with_current_policy(&self, record: ActionRecord) -> ActionRecord {
        let shown = record.policy.clone();
        let mut known = policy::with_current_policy(&self.policy_for, record);
        if known.policy != shown {
            self.keys.sign(&mut known);
        }
        known
    }

    /// Returns an open record with the current policy, and true if the policy has changed since the
    /// card was shown. In that case the record is saved, with an audit event, and the card is
    /// redrawn. If another writer has changed the record, `Err` contains its current version.
    pub(super) async fn update_policy(
        &self,
        record: &ActionRecord,
    ) -> Result<Result<(ActionRecord, bool), ActionRecord>, Error> {
        let known = self.with_current_policy(record.clone());
        if known.digest == record.digest {
            return Ok(Ok((known, false)));
        }
        let now = self.clock.now();
        let known = known.moved(record.status).map_err(|error| Error::Corrupt { what: error.to_string() })?;
        let mut changes = Changes::new(CommitId::fresh(), record.thread.clone());
        changes.audit.push(policy::change_event(record, &known, now));
        changes.outbox.push(known.card_message(now));
        changes.actions.push(ActionChange { expected: Some(record.revision), record: known.clone() });
        match self.store.apply(&changes).await {
            Ok(()) => Ok(Ok((known, true))),
            Err(Error::ActionMoved { current: Some(current), .. }) => Ok(Err(*current)),
            Err(error) => Err(error),
        }
    }

    /// Returns the facts about a person who decides.
    pub(super) async fn person(&self, record: &ActionRecord, by: &UserId, in_channel: bool) -> Person {
        self.groups.person(record, by, in_channel).await
    }

    /// Makes a decision, or returns the refusal. If another writer has changed the record, `Err`
    /// contains its current version.
    pub(super) async fn try_decide(
        &self,
        record: &ActionRecord,
        by: &UserId,
        (button, how): (CardButton, DecisionMethod<'_>),
        in_channel: bool,
        seq: impl Into<Option<Seq>> + Send,
    ) -> Result<Result<InboxAnswer, ActionRecord>, Error> {
        let (record, verdict) = match self.check_decision(record, by, button, in_channel).await? {
            Ok(Checked::Allowed(record, verdict)) => (record, verdict),
            Ok(Checked::Answered(answer)) => return Ok(Ok(answer)),
            Err(current) => return Ok(Err(current)),
        };
        let decision = Decision { by: Some(by.clone()), at: self.clock.now(), verdict };
        Ok(match self.write(&record, decision, Some(how), seq.into()).await? {
            Ok(_) => Ok(InboxAnswer::Counted(record.thread)),
            Err(current) => Err(current),
        })
    }

    /// Checks whether a person may make a decision now, and answers them if not. If another writer has changed the record,
    /// `Err` contains its current version.
    pub(super) async fn check_decision(
        &self,
        record: &ActionRecord,
        by: &UserId,
        button: CardButton,
        in_channel: bool,
    ) -> Result<Result<Checked, ActionRecord>, Error> {
        let now = self.clock.now();
        let answered = |answer| Ok(Ok(Checked::Answered(answer)));
        if !record.status.is_open() {
            self.record_refusal(record, by, "late").await?;
            return answered(self.redraw(record, self.too_late_reply(record).await).await?);
        }
        // The timer may come late, for example after a restart, and a late press must not count in the meantime.
        if now >= record.expires_at {
            return Ok(self.close_late(record, by).await?.map(Checked::Answered));
        }
        // The settings may have changed since the card was posted: those of today decide, and the card has to show
        // them.
        let (mut record, is_redrawn) = match self.update_policy(record).await? {
            Ok(known) => known,
            Err(current) => return Ok(Err(current)),
        };
        let thread = record.thread.clone();
        let refused = |reply: Reply| match is_redrawn {
            true => InboxAnswer::Redrawn { thread: thread.clone(), reply },
            false => InboxAnswer::Refused(reply),
        };
        // A rejection changes nothing outside, so only an approval needs to be of exactly what was shown.
        if button == CardButton::Approve && !record.proof.holds() {
            match &record.proof {
                Proof::KeyMissing(key) => {
                    tracing::error!(action.id = %record.id, %key, "The digest key of a card is missing, so it cannot be approved");
                }
                proof => {
                    tracing::error!(action.id = %record.id, ?proof, "The stored action is not the one that was shown")
                }
            }
            self.record_refusal(&record, by, "not what was shown").await?;
            return answered(refused(replies::not_what_was_shown(&record.proof)));
        }
        let person = self.person(&record, by, in_channel).await;
        if button == CardButton::Approve && !record.decisions.is_empty() {
            // Earlier approvals may be hours old. They are looked at again with each further one.
            let lapses = self.groups.lapses(&record).await;
            record.lapse(lapses.into_iter().map(|lapse| Lapse { at: now, ..lapse }).collect());
        }
        let (allowed, verdict) = match button {
            CardButton::Approve => (policy::may_approve(&record, by, &person), Verdict::Approved),
            // If the requester says no, this withdraws the request instead of rejecting it, unless only the
            // requester decides.
            CardButton::Reject if !record.is_judged_by(by) => {
                (policy::may_withdraw(&record, by, &person), Verdict::Cancelled)
            }
            CardButton::Reject | CardButton::Stop => {
                (policy::may_reject(&record, by, &person), Verdict::Rejected { reason: None })
            }
            _ => (policy::may_withdraw(&record, by, &person), Verdict::Cancelled),
        };
        if let Err(why) = allowed {
            // Slack may identify the person in a moment. A redrawn card is saved already, so that the press cannot be
            // repeated.
            if why == Denial::Account(AccountDenial::Unanswered) && !is_redrawn {
                let reply = replies::denied(&record, by, in_channel, why);
                return answered(InboxAnswer::Unanswered { record: Box::new(record), reply });
            }
            self.record_refusal(&record, by, why.word()).await?;
            let reply = match (button, why) {
                (CardButton::Withdraw, Denial::NotAnApprover) => replies::may_not_withdraw(&record),
                _ => replies::denied(&record, by, in_channel, why),
            };
            return answered(refused(reply));
        }
        Ok(Ok(Checked::Allowed(Box::new(record), verdict)))
    }

    /// Closes a card that has expired before its timer does, and returns the reply to the person
    /// who was too late. If another writer has changed the record, `Err` contains its current
    /// version.
    pub(super) async fn close_late(
        &self,
        record: &ActionRecord,
        by: &UserId,
    ) -> Result<Result<InboxAnswer, ActionRecord>, Error> {
        let decision = Decision { by: None, at: self.clock.now(), verdict: Verdict::Expired };
        // The interaction stays in the inbox until the person gets the reply.
        match self.write(record, decision, None, None).await? {
            Ok(expired) => {
                self.record_refusal(&expired, by, "late").await?;
                Ok(Ok(InboxAnswer::Redrawn { thread: expired.thread, reply: replies::out_of_time() }))
            }
            Err(current) => Ok(Err(current)),
        }
    }

    /// Stops the action in progress. Everyone who sees the button may do so, since it can only make
    /// the change smaller. The stop is recorded when the action ends, as it may have ended before
    /// the stop arrives.
    async fn stop(&self, record: &ActionRecord, by: &UserId, seq: Seq) -> Result<InboxAnswer, Error> {
        if !matches!(record.status, Status::Approved | Status::Intent) {
            return Ok(InboxAnswer::Refused(self.too_late_reply(record).await));
        }
        let mut changes = completing(&record.thread, seq);
        changes.messages.push(ThreadMessage::Stop { by: by.clone(), asks: false });
        self.store.apply(&changes).await?;
        Ok(InboxAnswer::Counted(record.thread.clone()))
    }

    /// Writes a decision. If another writer has changed the record, `Err` contains its current
    /// version. `seq` is the interaction that this completes.
    pub(super) async fn write(
        &self,
        record: &ActionRecord,
        decision: Decision,
        how: Option<DecisionMethod<'_>>,
        seq: Option<Seq>,
    ) -> Result<Result<ActionRecord, ActionRecord>, Error> {
        spans::link(record.span.as_deref());
        let (decided, changes) = decide(record, decision, how, seq)
            .map_err(|error| Error::Corrupt { what: format!("action {}: {error}", record.id) })?;
        match self.store.apply(&changes).await {
            Ok(()) => Ok(Ok(decided)),
            Err(Error::ActionMoved { current: Some(current), .. }) => Ok(Err(*current)),
            Err(error) => Err(error),
        }
    }

    /// Records a click that did not count.
    pub(super) async fn record_refusal(&self, record: &ActionRecord, by: &UserId, why: &str) -> Result<(), Error> {
        let mut changes = Changes::new(CommitId::fresh(), record.thread.clone());
        let event = record.event(AuditKind::ClickRefused, self.clock.now(), Some(by.clone()), json!({ "why": why }));
        changes.audit.push(event);
        self.store.apply(&changes).await
    }

    /// Records a decision that does not count because Slack repeatedly failed to identify the
    /// person.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn record_unidentified(&self, record: &ActionRecord, by: &UserId) -> Result<(), Error> {
        self.record_refusal(record, by, AccountDenial::Unanswered.word()).await
    }
}

/// Returns the error after too many concurrent writes, which makes the interaction be handled
/// again.
pub(super) fn lost_race(record: ActionRecord) -> Error {
    Error::ActionMoved { id: record.id.clone(), current: Some(Box::new(record)) }
}
