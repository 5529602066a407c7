//! Drives one leased thread through its graph until it waits or ends.
//!
//! Start reading at [`Engine::advance`]. It takes letters from the mailbox, runs nodes (`step.rs`), carries out approved
//! actions (`perform.rs`), and saves after each. What is being worked on lives in a `Session` (`session.rs`); what is
//! not in the store yet is not done.
//!
//! Everything a step says goes out through the store's outbox, in the same atomic write as the step itself: a reply
//! is never lost and never belongs to a step that was not saved.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use countersign_core::{
    clock::Clock,
    ids::{ActionId, CommitId, GraphName, Slot, UserId},
    reply::Reply,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    action::{ActionKind, ActionRecord, Policy, Scope},
    admission::{Admission, Admits},
    checkpoint::{Checkpoint, Cursor, ReplySlots, Suspended},
    definition::Graph,
    keyring::Keyring,
    node::{Said, State},
    session::{Session, StepInfo, outgoing},
    standing::StandingApprovals,
    store::{Acquired, AuditDraft, AuditKind, Changes, Error, Outbound, QueuedMessage, Store, Then, ThreadMessage},
};

/// Who may decide about a change, as configured now.
pub type PolicyFor = Arc<dyn Fn(&Matter<'_>) -> Policy + Send + Sync>;

/// What a policy goes by.
#[derive(Clone, Copy, Debug)]
pub struct Matter<'a> {
    /// The [`ActionKind::name`].
    pub action: &'a str,
    /// Whether this very change cannot be undone.
    pub irreversible: bool,
    /// What it is about.
    pub scope: &'a Scope,
}

impl<'a> Matter<'a> {
    /// What the policy of a record goes by.
    pub fn of(record: &'a ActionRecord) -> Self {
        Self { action: &record.name, irreversible: record.card.irreversible, scope: &record.scope }
    }
}

/// What can be set about the engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a card is open.
    pub approval_ttl: Duration,
    /// How long before its end somebody is reminded of it; zero: never.
    pub remind_before: Duration,
    /// How long a step may take before it counts as failed.
    pub step_timeout: Duration,
    /// How long after it left a request without an answer is looked for, before it counts as not having arrived.
    pub settle_within: Duration,
    /// How long the bot may be silent before a status line appears.
    pub status_after: Duration,
    /// How often a status line changes at most.
    pub status_every: Duration,
    /// After how long the same status line is shown again.
    pub status_again: Duration,
    /// How often a step that fails for a passing reason is tried in all.
    pub attempts: u32,
    /// The wait before the first repetition; half as long again before each further one.
    pub retry_delay: Duration,
    /// Divides an answer that is too long for one message into several, in order.
    pub chunks: fn(Reply) -> Vec<Reply>,
}

/// How long a thread that this program cannot go on with is left to others before it is looked at again.
const ANOTHER_AGAIN: Duration = Duration::from_secs(60);

/// When words are looked at again of which nobody could say whether they count.
const LATER: Duration = Duration::from_secs(2);

/// The trace's name for what people say among themselves.
const OVERHEARD: &str = "overheard";

/// The trace's name for the words of somebody who may not ask.
const TURNED_AWAY: &str = "turned_away";

impl Default for Settings {
    fn default() -> Self {
        Self {
            approval_ttl: Duration::from_secs(24 * 3600),
            remind_before: Duration::from_secs(3600),
            step_timeout: Duration::from_secs(120),
            settle_within: Duration::from_secs(60),
            status_after: Duration::from_millis(800),
            status_every: Duration::from_secs(3),
            status_again: Duration::from_secs(90),
            attempts: 3,
            retry_delay: Duration::from_millis(500),
            chunks: |reply| vec![reply],
        }
    }
}

/// Drives threads through one graph.
pub struct Engine<S: State> {
    pub(super) graph: Graph<S>,
    pub(super) actions: BTreeMap<&'static str, Arc<dyn ActionKind>>,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) policy_for: PolicyFor,
    pub(super) standing: Arc<dyn StandingApprovals>,
    pub(super) keys: Arc<Keyring>,
    pub(super) admission: Arc<dyn Admission>,
    pub(super) settings: Settings,
    pub(super) stopping: CancellationToken,
}

impl<S: State> fmt::Debug for Engine<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("graph", &self.graph).field("actions", &self.actions.keys()).finish()
    }
}

/// What an [`Engine`] is made of.
pub struct EngineDeps<S: State> {
    /// The graph.
    pub graph: Graph<S>,
    /// What it may propose.
    pub actions: BTreeMap<&'static str, Arc<dyn ActionKind>>,
    /// Where it remembers.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Who may decide.
    pub policy_for: PolicyFor,
    /// What need not wait for a person.
    pub standing: Arc<dyn StandingApprovals>,
    /// The keys that digests are made with.
    pub keys: Arc<Keyring>,
    /// Who may ask.
    pub admission: Arc<dyn Admission>,
    /// The rest.
    pub settings: Settings,
    /// Cancelled when the process is to end: what takes long is handed over.
    pub stopping: CancellationToken,
}

impl<S: State> Engine<S> {
    /// Joins its dependencies.
    pub fn new(deps: EngineDeps<S>) -> Self {
        let EngineDeps { graph, actions, store, clock, policy_for, standing, keys, admission, settings, stopping } =
            deps;
        Self { graph, actions, store, clock, policy_for, standing, keys, admission, settings, stopping }
    }

    /// The name of the graph.
    pub fn graph(&self) -> GraphName {
        GraphName::new(self.graph.name())
    }

    /// Goes on with a leased thread until nothing is left to do, and lets go of it.
    ///
    /// # Errors
    ///
    /// [`Error::Newer`] if a newer program saved the thread, [`Error::OtherGraph`] if it belongs to another graph: nothing
    /// was done, and it waits. [`Error::Fenced`] if somebody else took over; any other error leaves the lease to run out, after which another
    /// worker goes on from the last saved step.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future is like a crash: the next worker goes on from the last saved step.
    pub async fn advance(&self, acquired: Acquired) -> Result<(), Error> {
        let lease = &acquired.lease;
        if lease.graph.as_str() != self.graph.name() {
            let error = Error::OtherGraph { thread: lease.thread.clone(), graph: lease.graph.clone() };
            return leave_to_another(&*self.store, &*self.clock, &acquired, error).await;
        }
        if let Err(newer) = acquired.saved.check_format(&lease.thread) {
            return leave_to_another(&*self.store, &*self.clock, &acquired, newer).await;
        }
        let mut session = Session::open(acquired);
        if session.begins_anew() {
            self.tell_of_a_new_beginning(&mut session).await?;
        }
        loop {
            let held = match session.checkpoint.cursor.clone() {
                Cursor::Idle => match session.next_message() {
                    Some(letter) => self.take_up(&mut session, letter).await?,
                    None => return self.let_go(&mut session).await,
                },
                Cursor::At { node, attempt, ended } => match self.stop_between(&mut session, ended.as_ref()).await? {
                    Some(by) => self.end_stopped(&mut session, &node, self.clock.now(), by).await?,
                    None => self.run_node(&mut session, &node, attempt, ended).await?,
                },
                Cursor::Performing { action, node } => Box::pin(self.carry_out(&mut session, &action, &node)).await?,
            };
            if held == Held::No {
                return Ok(());
            }
        }
    }

    /// Turns a letter into the place where the thread goes on. Nothing is saved yet: the letter is acknowledged in the
    /// same write as the first step that it leads to.
    async fn take_up(&self, session: &mut Session<S>, letter: QueuedMessage) -> Result<Held, Error> {
        session.acks.push(letter.seq);
        if let Some(ts) = letter.mail.said_at() {
            let newest = session.checkpoint.said_at.take().max(Some(ts.clone()));
            session.checkpoint.said_at = newest;
        }
        session.input = serde_json::to_value(&letter.mail).ok();
        if let (ThreadMessage::Stop { .. }, Some(waiting)) = (&letter.mail, session.checkpoint.waiting()) {
            return self.wake_to_stop(session, letter, &waiting).await;
        }
        let is_meant = match &letter.mail {
            ThreadMessage::Said { by, text, addressed: false, request: None, .. } => {
                self.is_meant(session, by, text).await?
            }
            _ => true,
        };
        match letter.mail {
            ThreadMessage::Said { by, .. } if !is_meant => self.note_overheard(session, by, false).await,
            ThreadMessage::Said { by, text, ts, addressed: _, request } => {
                match self.admission.admits(&session.lease.thread, &by, &ts).await {
                    Admits::Yes => {}
                    Admits::No(why) => return self.turn_away(session, by, why).await,
                    Admits::Later => return self.leave_for_later(session).await,
                }
                session.checkpoint.state.present(&by, false);
                let said = Said { by, text, at: self.clock.now(), request };
                session.note(AuditDraft::new(
                    AuditKind::Said,
                    said.at,
                    Some(said.by.clone()),
                    AuditDraft::words(&said.text),
                ));
                session.checkpoint.state.begin_turn(&said);
                self.begin_run(session);
                Ok(Held::Yes)
            }
            ThreadMessage::Overheard { by, .. } => self.note_overheard(session, by, true).await,
            ThreadMessage::Decided { action, approval: _, decision: _ } => {
                self.resume(session, &action).await?;
                Ok(Held::Yes)
            }
            ThreadMessage::FollowUp { action, by, follow_up } => {
                Box::pin(self.take_follow_up(session, &action, &by, follow_up)).await?;
                Ok(Held::Yes)
            }
            ThreadMessage::External(arrived) => self.take_external(session, arrived).await,
            ThreadMessage::Overdue { action, until } => self.take_overdue(session, &action, until).await,
            ThreadMessage::Stop { by, asks } => self.nothing_to_stop(session, letter.seq, &by, asks).await,
        }
    }

    /// Lets go of the thread with its letters for a moment: nobody can say whether the words of the next one count.
    async fn leave_for_later(&self, session: &mut Session<S>) -> Result<Held, Error> {
        let again = self.clock.now() + LATER;
        let nothing = Changes::new(CommitId::fresh(), session.lease.thread.clone());
        self.store.commit(&session.lease, session.version(), &nothing, Then::ReleaseUntil(again)).await?;
        Ok(Held::No)
    }

    /// Whether words that nobody said to us by name are meant for us all the same. No node runs for those that are not.
    async fn is_meant(&self, session: &Session<S>, by: &UserId, text: &str) -> Result<bool, Error> {
        let open = self.open_in(session).await?;
        Ok(self.graph.listener().is_meant(&session.checkpoint.state, by, text, &open))
    }

    /// Keeps that somebody was turned away who may not ask. What they said is not kept.
    async fn turn_away(&self, session: &mut Session<S>, by: UserId, why: &str) -> Result<Held, Error> {
        let now = self.clock.now();
        session.note(AuditDraft::new(
            AuditKind::ClickRefused,
            now,
            Some(by.clone()),
            json!({ "why": why, "asked": true }),
        ));
        session.input = Some(json!({ "kind": TURNED_AWAY, "by": by }));
        self.save_nothing(session, TURNED_AWAY).await
    }

    /// Remembers that people talked among themselves, and says nothing.
    async fn note_overheard(&self, session: &mut Session<S>, by: UserId, to_another: bool) -> Result<Held, Error> {
        session.checkpoint.state.present(&by, to_another);
        session.input = Some(json!({ "kind": OVERHEARD, "by": by }));
        self.save_nothing(session, OVERHEARD).await
    }

    /// Saves a step in which no node ran.
    pub(super) async fn save_nothing(&self, session: &mut Session<S>, node: &'static str) -> Result<Held, Error> {
        let began = self.clock.now();
        let (took, usage) = (Duration::ZERO, None);
        let info = StepInfo { node, next: "end", began, took, usage, error: None, pause: false };
        let extra = session.changes();
        self.save_step(session, info, extra, None).await
    }

    /// Puts the turn that asked back as it was, and goes on where its answer belongs.
    async fn resume(&self, session: &mut Session<S>, action: &ActionId) -> Result<(), Error> {
        let Some(record) = self.decided(session, action).await? else {
            return Err(Error::Corrupt { what: format!("action {action} was decided but is not stored") });
        };
        let asks = |suspended: &Suspended| suspended.waits_for.is_none();
        let Some(suspended) = session.checkpoint.suspended.get(record.question()).filter(|it| asks(it)).cloned() else {
            return self.save(session, session.changes(), Then::Keep).await; // its answer was dealt with before
        };
        let checkpoint = &mut session.checkpoint;
        checkpoint.suspended.remove(record.question());
        checkpoint.state.resume(suspended.turn).map_err(|error| Error::Corrupt {
            what: format!("the turn that asked for action {action} cannot be read: {error}"),
        })?;
        checkpoint.run = Some(suspended.run);
        checkpoint.reply_slots = ReplySlots::of(format!("after:{action}"));
        session.status_due = None;
        checkpoint.cursor = if record.status == super::action::Status::Approved {
            Cursor::Performing { action: action.clone(), node: suspended.node }
        } else {
            Cursor::At { node: suspended.node, attempt: 0, ended: Some(action.clone()) }
        };
        Ok(())
    }

    /// Says that nothing of this thread is remembered.
    async fn tell_of_a_new_beginning(&self, session: &mut Session<S>) -> Result<(), Error> {
        let mut changes = session.changes();
        let reply = Reply::text("I can't read my notes of this thread anymore, so I'm starting over here.").hint(
            "Buttons on older cards here do nothing. What a card says was done, was done; ask again for the rest.",
        );
        let slot = Slot::new(format!("anew:{}", session.lease.fence));
        changes.outbox.push(outgoing(slot, self.clock.now(), Outbound::Reply { reply }));
        self.save(session, changes, Then::Keep).await
    }

    /// Lets go of a thread that has nothing to do.
    async fn let_go(&self, session: &mut Session<S>) -> Result<(), Error> {
        if session.released {
            return Ok(());
        }
        self.save(session, session.changes(), Then::Release).await
    }
}

/// Lets go of a thread that this program cannot go on with, with its letters, so that one that can takes it: it was saved by
/// a newer program, or its graph is not one of ours.
///
/// # Errors
///
/// `why`, or why the thread could not be let go.
pub async fn leave_to_another(
    store: &dyn Store,
    clock: &dyn Clock,
    acquired: &Acquired,
    why: Error,
) -> Result<(), Error> {
    let again = clock.now() + ANOTHER_AGAIN;
    let nothing = Changes::new(CommitId::fresh(), acquired.lease.thread.clone());
    store.commit(&acquired.lease, acquired.saved.version, &nothing, Then::ReleaseUntil(again)).await?;
    Err(why)
}

impl<S: State> Checkpoint<S> {
    /// Whether nothing is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.cursor == Cursor::Idle
    }
}

/// Whether the worker still has the thread after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// It goes on.
    Yes,
    /// It let go.
    No,
}
