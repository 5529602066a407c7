//! Saves a step that asks a person to decide: its card, and the older cards that the new one supersedes, in one atomic
//! write. Also saves a step that closes the open cards of its thread, because of something that happened elsewhere.
//!
//! Cards are decided without the thread's lease. If one of them is decided between the read and the write, the store
//! refuses the whole write, and the step builds it again from the new state ([`Retried`]). Neither the step nor the
//! decision is lost, and no card ever names a replacement that was never stored.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, CommitId},
    reply::Text,
};

use super::{
    perform::illegal,
    session::{Session, StepInfo, outgoing},
};
use crate::{
    action::{ActionRecord, Label, Replacement, Status},
    checkpoint::{Checkpoint, Cursor, Suspended},
    engine::{Engine, LeaseState, PolicyInput, Settings},
    node::{Ask, State},
    request::{Request, Times},
    standing::Spent,
    store::{ActionFilter, Changes, Error, Outbound, Register, Usage},
};

/// The maximum number of other open requests about the same target that a card mentions.
const MAX_OTHER_REQUESTS: usize = 3;

impl<S: State> Engine<S> {
    /// Saves a step that ends the run and closes the open requests. `extra` holds the step's other changes.
    pub(super) async fn save_closing(
        &self,
        session: &mut Session<S>,
        (node, began): (&str, Timestamp),
        extra: Changes,
        why: Text,
        usage: Option<Usage>,
    ) -> Result<LeaseState, Error> {
        session.checkpoint.cursor = Cursor::Idle;
        let mut retried = Retried::begin(session);
        loop {
            let now = self.clock.now();
            let mut changes = Changes { commit: CommitId::fresh(), ..extra.clone() };
            let open = self.open_in(session).await?;
            for record in &open {
                let closed = record.close_as_obsolete(&mut changes, why.clone(), now).map_err(illegal)?;
                session.checkpoint.suspended.remove(closed.question());
            }
            if session.checkpoint.reply_slots.said == 0 {
                changes.outbox.push(outgoing(session.checkpoint.reply_slots.slot(), now, Outbound::Remove));
            }
            let took = now.since(began);
            let info = StepInfo { node, next: "end", began, took, usage: usage.clone(), error: None, pause: false };
            let saved = self.save_step(session, info, changes, None).await;
            let open: Vec<_> = open.into_iter().map(|record| record.id).collect();
            if let Some(saved) = retried.settle(session, saved, &open) {
                return saved;
            }
        }
    }

    /// Saves a step that asks a person to decide. `extra` holds the step's other changes.
    pub(super) async fn save_question(
        &self,
        session: &mut Session<S>,
        (node, began): (&str, Timestamp),
        extra: Changes,
        ask: Ask,
        usage: Option<Usage>,
    ) -> Result<LeaseState, Error> {
        let Ask { replaces, then, .. } = &ask;
        let (replaces, then) = (replaces.clone(), *then);
        let record = self.question_record(session, ask);
        let mut retried = Retried::begin(session);
        loop {
            let mut changes = Changes { commit: CommitId::fresh(), ..extra.clone() };
            let older = self.ask(session, &mut changes, record.clone(), replaces.as_ref(), then).await?;
            let pause = session.checkpoint.is_idle();
            let next = if pause { "await" } else { "execute" };
            let took = self.clock.now().since(began);
            let info = StepInfo { node, next, began, took, usage: usage.clone(), error: None, pause };
            let saved = self.save_step(session, info, changes, None).await;
            if let Some(saved) = retried.settle(session, saved, &older) {
                return saved;
            }
        }
    }

    /// Creates the action record for a question. Superseded cards and other open requests are not considered yet.
    fn question_record(&self, session: &Session<S>, ask: Ask) -> ActionRecord {
        let Ask { action, mut proposal, requested_by, evidence, replaces: _, then: _ } = ask;
        let kind = self.actions.get(action.as_str()).expect("a node asks only for actions that are registered");
        proposal.card.irreversible |= kind.irreversible();
        let policy = (self.policy_for)(&PolicyInput {
            action: kind.name(),
            irreversible: proposal.card.irreversible,
            scope: &proposal.scope,
            is_suggested: evidence.suggested.is_some(),
        });
        let request = Request {
            thread: &session.lease.thread,
            run: session.checkpoint.run.clone().unwrap_or_else(|| "none".into()),
            kind: kind.as_ref(),
            proposal,
            requested_by,
            evidence,
            at: self.clock.now(),
            policy,
            slot: session.checkpoint.reply_slots.slot(),
            times: self.times(),
            keys: &self.keys,
        };
        request.into_record()
    }

    fn times(&self) -> Times {
        let Settings { approval_ttl, remind_before, outside, .. } = self.settings;
        Times { open_for: approval_ttl, remind_before, outside }
    }

    /// Adds the question and its card to `changes`; the outbox posts the card after the write. A
    /// change covered by a standing approval is approved without a question. `then` is the node at
    /// which the run continues. Returns the older cards that the same write supersedes.
    async fn ask(
        &self,
        session: &mut Session<S>,
        changes: &mut Changes,
        mut record: ActionRecord,
        replaces: Option<&ActionId>,
        then: &'static str,
    ) -> Result<Vec<ActionId>, Error> {
        session.checkpoint.reply_slots.said += 1;
        let older = self.supersede(session, changes, &mut record, replaces).await?;
        let spent = match self.note_open_requests(&mut record).await? {
            // What no person asked for, nobody has allowed in advance.
            _ if record.is_suggested() => Spent::Nothing { why: None },
            Some(register) => self.standing.spend_from(register, &record).await,
            None => self.standing.spend(&record).await,
        };
        match spent {
            Spent::Under(under) => {
                let record = record.publish_approved(under, changes, &self.times(), self.clock.now());
                session.checkpoint.cursor = Cursor::Performing { action: record.id, node: then.to_owned() };
                return Ok(older);
            }
            Spent::Nothing { why } => record.card.notes.extend(why),
        }
        let turn = session.checkpoint.state.suspend();
        let (action, run) = (record.id.clone(), record.run.clone());
        let suspended = Suspended { action, run, node: then.to_owned(), turn, waits_for: None };
        session.checkpoint.suspended.insert(record.approval.clone(), suspended);
        record.publish(changes, &self.times());
        session.checkpoint.cursor = Cursor::Idle;
        Ok(older)
    }

    /// Supersedes the open cards of this thread that share a target with `newer`, and the card `replaces` if it is
    /// still open. Returns the superseded cards.
    async fn supersede(
        &self,
        session: &mut Session<S>,
        changes: &mut Changes,
        newer: &mut ActionRecord,
        replaces: Option<&ActionId>,
    ) -> Result<Vec<ActionId>, Error> {
        let mut superseded = Vec::new();
        if session.checkpoint.suspended.is_empty() || newer.scope.targets.is_empty() && replaces.is_none() {
            return Ok(superseded);
        }
        let filter = ActionFilter::of(&newer.thread, &[Status::Pending], 20);
        for open in self.store.actions(&filter).await? {
            // A suggestion takes the place of no request of a person.
            let is_kept = newer.is_suggested() && !open.is_suggested();
            if is_kept || !open.scope.shares_target_with(&newer.scope) && replaces != Some(&open.id) {
                continue;
            }
            let at = newer.requested_at;
            let to = Replacement { action: newer.id.clone(), slot: newer.slot.clone(), edited: false };
            let older = open.supersede_with(changes, to, Some(newer.requested_by.clone()), at).map_err(illegal)?;
            session.checkpoint.suspended.remove(older.question());
            session.checkpoint.state_mut().superseded(&older, at);
            let note = Text::from("Replaces the open card: ").plain(older.act()).plain(".");
            newer.card.notes.push(note);
            superseded.push(older.id);
        }
        Ok(superseded)
    }

    /// Adds a note to the card about open requests in other threads for the same target, since their outcome may
    /// invalidate this request. The register of standing approvals is needed next, and is read in the same request.
    async fn note_open_requests(&self, newer: &mut ActionRecord) -> Result<Option<Register>, Error> {
        let labels: Vec<_> = newer.scope.targets.iter().cloned().map(Label::About).collect();
        if labels.is_empty() {
            return Ok(None);
        }
        let filter = ActionFilter::under(&labels, &[Status::Pending], MAX_OTHER_REQUESTS);
        let (open, register) = self.store.actions_and_register(&filter, self.standing.register()).await?;
        let others = open.iter().filter(|other| other.thread != newer.thread);
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            others.partition(|other| other.thread.channel == newer.thread.channel);
        let named = here.into_iter().map(|other| {
            let who = match other.is_suggested() {
                true => Text::from("suggested while answering ").person(other.requested_by.clone()),
                false => Text::new().person(other.requested_by.clone()),
            };
            Text::from(other.act()).plain(" (").join(who).plain(", in this channel)")
        });
        // Another channel may be private.
        let unnamed = (!elsewhere.is_empty()).then(|| Text::from("at least one in another conversation"));
        let all: Vec<Text> = named.chain(unnamed).collect();
        if !all.is_empty() {
            let note = Text::from("Other open requests about this: ").join(Text::listed(all, "and")).plain(".");
            newer.card.notes.push(note);
        }
        Ok(register)
    }
}

/// The maximum number of retries. Each conflict means that at least one decision was stored, so conflicts cannot
/// continue forever.
const MAX_CONFLICTS: u32 = 16;

/// A write that is retried after a conflict.
pub(super) struct Retried<S: State> {
    /// The checkpoint before the step, from which the write is built again.
    before: Checkpoint<S>,
    conflicts: u32,
}

impl<S: State> Retried<S> {
    /// Begins with the session as it is before the step.
    pub(super) fn begin(session: &Session<S>) -> Self {
        Self { before: session.checkpoint.clone(), conflicts: 0 }
    }

    /// Returns the result of the write. If it conflicts with a decision on one of these cards, which it would have
    /// changed, returns `None`: the session is as it was before the step, and the write has to be built again.
    pub(super) fn settle(
        &mut self,
        session: &mut Session<S>,
        saved: Result<LeaseState, Error>,
        cards: &[ActionId],
    ) -> Option<Result<LeaseState, Error>> {
        match saved {
            Err(Error::ActionMoved { id, .. }) if cards.contains(&id) && self.conflicts < MAX_CONFLICTS => {
                self.conflicts += 1;
                let conflicts = self.conflicts;
                tracing::info!(action.id = %id, conflicts, "A card was decided in the meantime; retrying the write");
                session.checkpoint = self.before.clone();
                None
            }
            saved => Some(saved),
        }
    }
}
