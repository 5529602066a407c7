//! Drives one leased thread through its graph until it waits or ends.
//!
//! Start reading at [`Engine::advance`], the main line. Each of its transitions is a file of the folder `engine`: it takes
//! messages from the mailbox, runs nodes (`step.rs`), asks people (`ask.rs`), carries out approved actions (`perform.rs`),
//! and saves after each. The work in progress is a `Session` (`session.rs`); work that is not saved in the store does not
//! count as done.
//!
//! Every output of a step goes through the store's outbox, in the same atomic write as the step
//! itself. A reply is therefore never lost, and never belongs to a step that was not saved.

mod ask;
mod batches;
pub mod buttons;
mod claim;
mod external;
mod follow_up;
mod looks;
mod paused;
mod perform;
mod session;
mod step;
pub mod stop;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use countersign_core::{
    clock::Clock,
    draft::Drafting,
    ids::{ActionId, CommitId, GraphName, Slot, UserId},
    reply::Reply,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, debug_span, field::Empty};

pub use self::perform::lapsed;
use self::{
    paused::Paused,
    session::{Session, StepInfo, outgoing},
};
use super::{
    action::{ActionKind, ActionRecord, Policy, Scope},
    admission::{Admission, Admits},
    checkpoint::{Checkpoint, Cursor, ReplySlots, Suspended},
    definition::Graph,
    keyring::Keyring,
    node::{Said, State},
    request::OutsideTimes,
    retry::RetryPolicy,
    standing::{Entitled, StandingApprovals},
    step_commit::{Outbox, StepCommit},
    store::{Acquired, AuditDraft, AuditKind, Changes, Error, Outbound, QueuedMessage, Store, Then, ThreadMessage},
};

/// A function that returns the policy of a change, as currently configured.
pub type PolicyFor = Arc<dyn Fn(&PolicyInput<'_>) -> Policy + Send + Sync>;

/// The properties of a change that decide its policy.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInput<'a> {
    /// The [`ActionInfo::name`](super::action::ActionInfo::name).
    pub action: &'a str,
    /// True if this particular change cannot be undone.
    pub irreversible: bool,
    /// The things that the change concerns.
    pub scope: &'a Scope,
    /// True if the assistant suggested the change, and no person asked for it.
    pub is_suggested: bool,
}

impl<'a> PolicyInput<'a> {
    /// Returns the properties of a record.
    pub fn of(record: &'a ActionRecord) -> Self {
        let (irreversible, is_suggested) = (record.card.irreversible, record.is_suggested());
        Self { action: &record.name, irreversible, scope: &record.scope, is_suggested }
    }
}

/// The settings of the engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The time for which a card is open.
    pub approval_ttl: Duration,
    /// The time before a card's end at which people are reminded of it; zero for no reminder.
    pub remind_before: Duration,
    /// The times of cards for what came from outside.
    pub outside: OutsideTimes,
    /// The time-out of a step, after which it counts as failed.
    pub step_timeout: Duration,
    /// The time after which a request without an answer, of which no effect was found, counts as
    /// not having arrived.
    pub settle_within: Duration,
    /// The time after which a status line appears if the bot has not answered.
    pub status_after: Duration,
    /// The minimum time between changes of a status line.
    pub status_every: Duration,
    /// The time after which the same status line is shown again.
    pub status_again: Duration,
    /// Whether the draft of an answer is shown.
    pub drafting: Drafting,
    /// The retry policy for a step that fails for a temporary reason.
    pub retry: RetryPolicy,
    /// Splits an answer that is too long for one message into several, in order.
    pub chunks: fn(Reply) -> Vec<Reply>,
}

/// The time for which a thread that this program cannot continue is left to other programs.
const OTHER_PROGRAM_DELAY: Duration = Duration::from_secs(60);

/// The wait before another attempt if the admission of a message could not be decided.
const ADMISSION_DELAY: Duration = Duration::from_secs(2);

/// The name of the step that carries out an action.
const EXECUTE: &str = "execute";

/// The name of the trace step for a message between people.
const OVERHEARD: &str = "overheard";

/// The name of the trace step for a request of a person who may not ask.
const TURNED_AWAY: &str = "turned_away";

impl Default for Settings {
    fn default() -> Self {
        Self {
            approval_ttl: Duration::from_secs(24 * 3600),
            remind_before: Duration::from_secs(3600),
            outside: OutsideTimes::default(),
            step_timeout: Duration::from_secs(120),
            settle_within: Duration::from_secs(60),
            status_after: Duration::from_millis(800),
            status_every: Duration::from_secs(3),
            status_again: Duration::from_secs(90),
            drafting: Drafting::default(),
            retry: RetryPolicy::default(),
            chunks: |reply| vec![reply],
        }
    }
}

/// Drives threads through one graph.
pub struct Engine<S: State> {
    graph: Graph<S>,
    actions: BTreeMap<&'static str, Arc<dyn ActionKind>>,
    store: Arc<dyn Store>,
    step_commit: Arc<dyn StepCommit>,
    clock: Arc<dyn Clock>,
    policy_for: PolicyFor,
    standing: Arc<dyn StandingApprovals>,
    entitled: Arc<dyn Entitled>,
    keys: Arc<Keyring>,
    admission: Arc<dyn Admission>,
    settings: Settings,
    stopping: CancellationToken,
    /// The threads that wait for a person.
    paused: Paused<S>,
}

impl<S: State> fmt::Debug for Engine<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("graph", &self.graph).field("actions", &self.actions.keys()).finish()
    }
}

/// The dependencies of an [`Engine`].
pub struct EngineDeps<S: State> {
    /// The graph.
    pub graph: Graph<S>,
    /// The kinds of action that the graph may propose.
    pub actions: BTreeMap<&'static str, Arc<dyn ActionKind>>,
    /// The store of threads.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The policy of each change.
    pub policy_for: PolicyFor,
    /// The standing approvals, which let changes run without waiting for a person.
    pub standing: Arc<dyn StandingApprovals>,
    /// Who may approve a change.
    pub entitled: Arc<dyn Entitled>,
    /// The keys for digests.
    pub keys: Arc<Keyring>,
    /// The admission of people.
    pub admission: Arc<dyn Admission>,
    /// The other settings.
    pub settings: Settings,
    /// The signal that the process is shutting down: long work is then handed over.
    pub stopping: CancellationToken,
}

impl<S: State> Engine<S> {
    /// Creates an engine from its dependencies.
    pub fn new(deps: EngineDeps<S>) -> Self {
        let EngineDeps {
            graph,
            actions,
            store,
            clock,
            policy_for,
            standing,
            entitled,
            keys,
            admission,
            settings,
            stopping,
        } = deps;
        let step_commit = Arc::new(Outbox(store.clone()));
        let paused = Paused::default();
        Self {
            graph,
            actions,
            store,
            step_commit,
            clock,
            policy_for,
            standing,
            entitled,
            keys,
            admission,
            settings,
            stopping,
            paused,
        }
    }

    /// Has the messages of steps sent by this. By default they are left in the outbox.
    #[must_use]
    pub fn with_outlet(self, step_commit: Arc<dyn StepCommit>) -> Self {
        Self { step_commit, ..self }
    }

    /// Returns the name of the graph.
    pub fn graph(&self) -> GraphName {
        GraphName::new(self.graph.name())
    }

    /// Continues a leased thread until nothing is left to do, and releases it. Returns the events that its actions wait
    /// for from then on.
    ///
    /// # Errors
    ///
    /// [`Error::Newer`] if a newer program saved the thread, [`Error::OtherGraph`] if it belongs to
    /// another graph: in both cases nothing was done, and the thread was released for another
    /// program. [`Error::Fenced`] if another worker has taken over. After any other error the lease
    /// expires, and another worker continues from the last saved step.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future is like a crash: the next worker continues from the last saved step.
    pub async fn advance(&self, acquired: Acquired) -> Result<Vec<AwaitedEvent>, Error> {
        let lease = &acquired.lease;
        if lease.graph.as_str() != self.graph.name() {
            let error = Error::OtherGraph { thread: lease.thread.clone(), graph: lease.graph.clone() };
            return Err(release_to_another(&*self.store, &*self.clock, &acquired, error).await);
        }
        if let Err(newer) = acquired.saved.check_format(&lease.thread) {
            return Err(release_to_another(&*self.store, &*self.clock, &acquired, newer).await);
        }
        let mut session = Session::open(acquired, &self.paused);
        if session.begins_anew() {
            self.report_lost_memory(&mut session).await?;
        }
        loop {
            let lease = match session.checkpoint.cursor.clone() {
                Cursor::Idle => match session.next_message() {
                    Some(message) => self.take_message(&mut session, message).await?,
                    None => {
                        self.release(&mut session).await?;
                        LeaseState::Released
                    }
                },
                Cursor::At { node, attempt, ended } => match self.stop_between(&mut session, ended.as_ref()).await? {
                    Some(by) => self.end_stopped(&mut session, &node, self.clock.now(), by).await?,
                    None => {
                        let span = step_span(&node);
                        Box::pin(self.run_node(&mut session, &node, attempt, ended).instrument(span)).await?
                    }
                },
                Cursor::Performing { action, node } => {
                    let span = step_span(EXECUTE);
                    Box::pin(self.carry_out(&mut session, &action, &node).instrument(span)).await?
                }
            };
            if lease == LeaseState::Released {
                let awaited = session.checkpoint.awaited_events();
                session.keep_if_paused(&self.paused);
                return Ok(awaited);
            }
        }
    }

    /// Sets the position at which the thread continues after a message. If a run begins or
    /// continues, nothing is saved yet: the message is acknowledged in the same write as the first
    /// step that it leads to.
    async fn take_message(&self, session: &mut Session<S>, message: QueuedMessage) -> Result<LeaseState, Error> {
        session.acks.push(message.seq);
        if let Some(ts) = message.message.said_at() {
            let newest = session.checkpoint.said_at.take().max(Some(ts.clone()));
            session.checkpoint.said_at = newest;
        }
        session.input = serde_json::to_value(&message.message).ok();
        if let (ThreadMessage::Stop { .. }, Some(waiting)) = (&message.message, session.checkpoint.waiting()) {
            return Box::pin(self.wake_to_stop(session, message, &waiting)).await;
        }
        let is_meant = match &message.message {
            ThreadMessage::Said { by, text, addressed: false, request: None, .. } => {
                self.is_meant(session, by, text).await?
            }
            _ => true,
        };
        match message.message {
            ThreadMessage::Said { by, .. } if !is_meant => self.note_overheard(session, by, false).await,
            ThreadMessage::Said { by, text, ts, addressed: _, request } => {
                match self.admission.admits(&session.lease.thread, &by, &ts).await {
                    Admits::Yes => {}
                    Admits::No(why) => return self.turn_away(session, by, why).await,
                    Admits::Later => return self.leave_for_later(session).await,
                }
                self.note_click_on_question(session, &ts).await?;
                session.checkpoint.state_mut().present(&by, false);
                let zone = self.admission.zone(&by).await;
                let said = Said { by, text, ts: Some(ts), at: self.clock.now(), zone, request };
                let mut detail = AuditDraft::text_detail(&said.text);
                detail["message"] = json!(said.ts);
                session.note(AuditDraft::new(AuditKind::Said, said.at, Some(said.by.clone()), detail));
                session.checkpoint.state_mut().begin_turn(&said);
                self.begin_run(session);
                Ok(LeaseState::Held)
            }
            ThreadMessage::Overheard { by, .. } => self.note_overheard(session, by, true).await,
            ThreadMessage::Decided { action, approval: _, decision: _ } => {
                self.resume(session, &action).await?;
                Ok(LeaseState::Held)
            }
            ThreadMessage::FollowUp { action, by, follow_up } => {
                Box::pin(self.take_follow_up(session, &action, &by, follow_up)).await?;
                Ok(LeaseState::Held)
            }
            ThreadMessage::External(arrived) => Box::pin(self.take_external(session, arrived)).await,
            ThreadMessage::Overdue { action, until } => Box::pin(self.take_overdue(session, &action, until)).await,
            ThreadMessage::Stop { by, asks } => self.nothing_to_stop(session, message.seq, &by, asks).await,
        }
    }

    /// Releases the thread and its messages for a short time, because the admission of the next
    /// message cannot be decided.
    async fn leave_for_later(&self, session: &mut Session<S>) -> Result<LeaseState, Error> {
        let again = self.clock.now() + ADMISSION_DELAY;
        let nothing = Changes::new(CommitId::fresh(), session.lease.thread.clone());
        self.store.commit(&session.lease, session.version(), &nothing, Then::ReleaseUntil(again), None).await?;
        Ok(LeaseState::Released)
    }

    /// Returns true if a text that does not mention the bot is meant for it nevertheless. No node
    /// runs for other texts.
    async fn is_meant(&self, session: &Session<S>, by: &UserId, text: &str) -> Result<bool, Error> {
        let open = self.open_in(session).await?;
        Ok(self.graph.listener().is_meant(&session.checkpoint.state, by, text, &open))
    }

    /// Records that a person who may not ask was turned away. The text is not recorded.
    async fn turn_away(&self, session: &mut Session<S>, by: UserId, why: &str) -> Result<LeaseState, Error> {
        let now = self.clock.now();
        session.note(AuditDraft::new(
            AuditKind::ClickRefused,
            now,
            Some(by.clone()),
            json!({ "why": why, "asked": true }),
        ));
        session.input = Some(json!({ "kind": TURNED_AWAY, "by": by }));
        self.save_empty_step(session, TURNED_AWAY).await
    }

    /// Records that people talked to each other, without an answer.
    async fn note_overheard(
        &self,
        session: &mut Session<S>,
        by: UserId,
        to_another: bool,
    ) -> Result<LeaseState, Error> {
        session.checkpoint.state_mut().present(&by, to_another);
        session.input = Some(json!({ "kind": OVERHEARD, "by": by }));
        self.save_empty_step(session, OVERHEARD).await
    }

    /// Saves a step in which no node ran.
    async fn save_empty_step(&self, session: &mut Session<S>, node: &'static str) -> Result<LeaseState, Error> {
        let began = self.clock.now();
        let (took, usage) = (Duration::ZERO, None);
        let info = StepInfo { node, next: "end", began, took, usage, error: None, pause: false };
        let extra = session.changes();
        self.save_step(session, info, extra, None).await
    }

    /// Restores the turn that asked, and continues it at the node that receives the answer.
    async fn resume(&self, session: &mut Session<S>, action: &ActionId) -> Result<(), Error> {
        let Some(record) = self.decided(session, action).await? else {
            return Err(Error::Corrupt { what: format!("action {action} was decided but is not stored") });
        };
        let asks = |suspended: &Suspended| suspended.waits_for.is_none();
        let Some(suspended) = session.checkpoint.suspended.get(record.question()).filter(|it| asks(it)).cloned() else {
            return self.save(session, session.changes(), Then::Keep).await; // the answer was already handled
        };
        let checkpoint = &mut session.checkpoint;
        checkpoint.suspended.remove(record.question());
        checkpoint.state_mut().resume(suspended.turn).map_err(|error| Error::Corrupt {
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

    /// Posts in the thread that its memory could not be read and that the bot starts over.
    async fn report_lost_memory(&self, session: &mut Session<S>) -> Result<(), Error> {
        let mut changes = session.changes();
        let reply = Reply::text("I can no longer read my notes about this thread, so I'm starting over here.").hint(
            "Buttons on older cards here no longer work. Changes that a card shows as done stay done; ask again for the rest.",
        );
        let slot = Slot::new(format!("anew:{}", session.lease.fence));
        changes.outbox.push(outgoing(slot, self.clock.now(), Outbound::Reply { reply }));
        self.save(session, changes, Then::Keep).await
    }

    /// Releases a thread that has no more work.
    async fn release(&self, session: &mut Session<S>) -> Result<(), Error> {
        if session.released {
            return Ok(());
        }
        self.save(session, session.changes(), Then::Release).await
    }
}

/// Creates the span of a step.
fn step_span(node: &str) -> Span {
    debug_span!("step", otel.name = format!("step {node}"), node.name = node, action.name = Empty)
}

/// Releases a thread that this program cannot continue, with its messages, for a program that can.
/// The thread was saved by a newer program, or this program does not have its graph.
///
/// # Errors
///
/// `why`, or the error that occurred while releasing the thread.
pub async fn release_to_another(store: &dyn Store, clock: &dyn Clock, acquired: &Acquired, why: Error) -> Error {
    let again = clock.now() + OTHER_PROGRAM_DELAY;
    let nothing = Changes::new(CommitId::fresh(), acquired.lease.thread.clone());
    let released =
        store.commit(&acquired.lease, acquired.saved.version, &nothing, Then::ReleaseUntil(again), None).await;
    released.err().unwrap_or(why)
}

/// An event that an action of a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AwaitedEvent {
    /// The action.
    pub action: ActionId,
    /// The name of the system that reports the event.
    pub source: String,
    /// The event's key there.
    pub key: String,
}

impl<S: State> Checkpoint<S> {
    /// Returns true if nothing is in progress.
    fn is_idle(&self) -> bool {
        self.cursor == Cursor::Idle
    }
}

/// The state of the lease after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeaseState {
    /// The worker still holds the lease.
    Held,
    /// The worker has released the thread.
    Released,
}
