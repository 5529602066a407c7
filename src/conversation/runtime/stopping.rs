//! Handles “stop”, typed or pressed on Slack's own button: ends the run of a thread and closes its
//! open cards.
//!
//! If the thread works on a plan, or a job runs, only that ends: a plan's own cards are closed, and
//! other requests stay open. Another “stop” then closes those as well.
//!
//! Words that point at something, such as “stop it”, mean the work in progress if there is any: a
//! plan, a job, or an answer that is being written. “Cancel it” means that only if no question and
//! no card is open. Elsewhere they are a message like any other.
//!
//! Everyone in the thread may end a run, since that can only reduce the changes made. Cards are
//! closed, as withdrawn, only for a person with the right to do so: the one who requested the
//! change, or one who may decide on it.

use std::sync::Arc;

use countersign_assistant::{StopRequest, stop_request};
use countersign_core::{
    clock::Clock,
    ids::{CommitId, MessageTs, ThreadId, UserId},
    reply::{Part, Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Status},
    checkpoint::Cursor,
    conversing::{Memories, Memory},
    engine::stop::nothing_to_stop,
    store::{ActionFilter, Changes, Error, Seq, Store, ThreadMessage},
};
use serde::{Deserialize, Serialize};

use crate::approvals::{
    clicks::TypedAnswer,
    consent,
    groups::Groups,
    policy,
    withdraw::{leave_to_buttons, open_cards, withdraw},
};

/// The maximum number of actions in progress that are read.
const MAX_ACTIONS: usize = 50;

/// A request to end the work in a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// The thread.
    pub thread: ThreadId,
    /// The person who asked to stop.
    pub by: UserId,
    /// True if the request was addressed to the bot.
    pub addressed: bool,
    /// The message; `None` for a button.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<StopWords>,
}

/// A message that asks to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopWords {
    /// The exact text.
    pub text: String,
    /// Slack's timestamp of the message.
    pub ts: MessageTs,
}

impl Stop {
    /// Returns the work that is to end.
    fn request(&self) -> StopRequest {
        self.said.as_ref().and_then(|said| stop_request(&said.text)).unwrap_or(StopRequest::Everything)
    }
}

/// The outcome of a “stop”.
#[derive(Debug, PartialEq)]
pub enum StopOutcome {
    /// The work is ended.
    Stopped {
        /// The thread to wake, or `None` if it is not one of the bot's threads, so that there is
        /// nothing to stop.
        thread: Option<ThreadId>,
        /// The private reply to the person, if any.
        reply: Option<Reply>,
    },
    /// The words are a message to the assistant in this thread.
    PassedOn(ThreadId),
}

/// The service that stops threads.
#[derive(Clone)]
pub struct Stopping {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    groups: Groups,
    memories: Memories,
    plan_action: Option<&'static str>,
}

/// The work of a thread.
struct Work {
    memory: Memory,
    /// The open cards.
    open: Vec<ActionRecord>,
    /// True if a change is being made in batches, or waits for the end of a job.
    has_job: bool,
    /// True if nothing is being answered, and no message waits to be.
    is_idle: bool,
    /// True if an earlier “stop” has not taken effect yet.
    is_stopping: bool,
}

impl Work {
    /// Returns true if there is work in progress, apart from open cards.
    fn is_in_progress(&self) -> bool {
        self.memory.has_plan() || self.has_job || self.memory.is_answering()
    }

    /// Describes the work that is stopped while other cards stay open.
    fn stopped(&self) -> &'static str {
        if self.memory.has_plan() { "the plan" } else { "what was running" }
    }

    /// Returns true if a card stays open because something else is stopped, which it is no part of.
    fn is_apart(&self, record: &ActionRecord) -> bool {
        let is_of_plan = self.memory.plan_questions.contains(record.question());
        (self.memory.has_plan() || self.has_job) && !self.is_stopping && !is_of_plan
    }
}

impl Stopping {
    /// Creates a service for the threads in this store; groups are looked up in `groups`, and the
    /// threads' plans in `memories`. `plan_action` is the action that shows a plan on a card.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        groups: Groups,
        memories: Memories,
        plan_action: Option<&'static str>,
    ) -> Self {
        Self { store, clock, groups, memories, plan_action }
    }

    /// Returns the words as an answer to a card, if they do not ask to stop here and can be one.
    ///
    /// # Errors
    ///
    /// If the store isn't answering. The call can safely be repeated.
    pub async fn typed_answer(&self, stop: &Stop) -> Result<Option<TypedAnswer>, Error> {
        let Some(StopWords { text, ts }) = stop.said.clone() else { return Ok(None) };
        let Some(meaning) = consent::parse(&text) else { return Ok(None) };
        let Stop { thread, by, addressed, said: _ } = stop.clone();
        if let Some(work) = self.work_in(&thread).await?
            && self.ends(&work, stop)
        {
            return Ok(None);
        }
        Ok(Some(TypedAnswer { thread, by, text, ts, meaning: Some(meaning), addressed }))
    }

    /// Ends the run of the thread, and closes the open cards that the person may close.
    ///
    /// # Errors
    ///
    /// If the store isn't answering. The call can safely be repeated.
    pub async fn on_stop(&self, stop: &Stop, seq: Seq) -> Result<StopOutcome, Error> {
        let Stop { thread, by, addressed, said } = stop;
        let Some(work) = self.work_in(thread).await? else {
            return match said {
                Some(said) if *addressed && stop.request() != StopRequest::Everything => {
                    self.pass_on(stop, said, seq).await
                }
                _ => Ok(StopOutcome::Stopped { thread: None, reply: addressed.then(nothing_to_stop) }),
            };
        };
        if let Some(said) = said
            && !self.ends(&work, stop)
        {
            return self.pass_on(stop, said, seq).await;
        }
        let (mut closed, mut kept, mut apart) = (0, Vec::new(), Vec::new());
        for record in &work.open {
            if work.is_apart(record) {
                apart.push(record);
                continue;
            }
            let person = self.groups.person(record, by, true).await;
            let may = |record: &ActionRecord| policy::may_reject(record, by, &person).is_ok();
            if !may(record) {
                kept.push(record);
                continue;
            }
            if withdraw(&*self.store, record, by, self.clock.now(), may).await? {
                closed += 1;
            }
        }
        leave_to_buttons(&*self.store, thread).await?;
        let mut changes = Changes::new(CommitId::fresh(), thread.clone());
        changes.inbox_acks.push(seq);
        // A closed card is a sufficient answer, and so is the reply about cards that stay open.
        let asks = *addressed && closed == 0 && kept.is_empty() && apart.is_empty();
        changes.messages.push(ThreadMessage::Stop { by: by.clone(), asks });
        self.store.apply(&changes).await?;
        let reply = match (kept.as_slice(), apart.as_slice()) {
            ([], []) => None,
            ([], apart) => Some(other_cards_stay_open(work.stopped(), apart)),
            (kept, _) => Some(cards_stay_open(kept)),
        };
        Ok(StopOutcome::Stopped { thread: Some(thread.clone()), reply })
    }

    /// Returns the work of a thread; `None` if it is not one of the bot's threads.
    async fn work_in(&self, thread: &ThreadId) -> Result<Option<Work>, Error> {
        let Some(saved) = self.store.load(thread).await? else { return Ok(None) };
        let memory = self.memories.read(Some(saved)).unwrap_or_default();
        let open = open_cards(&*self.store, thread).await?;
        let filter = ActionFilter { thread: Some(thread.clone()), statuses: vec![Status::Intent], limit: MAX_ACTIONS };
        let begun = self.store.actions(&filter).await?;
        let has_job = begun.iter().any(|record| record.progress.is_some() || record.waits.is_some());
        let unread = self.store.unread(thread).await?;
        let is_idle = memory.cursor == Cursor::Idle && unread.is_empty();
        let is_stopping = unread.iter().any(|unread| matches!(unread.message, ThreadMessage::Stop { .. }));
        Ok(Some(Work { memory, open, has_job, is_idle, is_stopping }))
    }

    /// Returns true if the words ask to end this work. If there is only a question that waits for
    /// an answer, they are the answer to it.
    fn ends(&self, work: &Work, stop: &Stop) -> bool {
        let is_asking = work.memory.is_drafting;
        match stop.request() {
            StopRequest::Everything => {
                let only_asks = is_asking && work.is_idle && work.open.is_empty() && !work.is_in_progress();
                !only_asks
            }
            StopRequest::Pointed => {
                let is_plan = |record: &ActionRecord| self.plan_action == Some(record.name.as_str());
                work.is_in_progress() || work.open.iter().any(is_plan)
            }
            StopRequest::Cancel => work.is_in_progress() && work.open.is_empty() && !is_asking,
        }
    }

    /// Passes a message that does not ask to stop to the assistant.
    async fn pass_on(&self, stop: &Stop, said: &StopWords, seq: Seq) -> Result<StopOutcome, Error> {
        leave_to_buttons(&*self.store, &stop.thread).await?;
        let mut changes = Changes::new(CommitId::fresh(), stop.thread.clone());
        changes.messages.push(ThreadMessage::Said {
            by: stop.by.clone(),
            text: said.text.clone(),
            ts: said.ts.clone(),
            addressed: stop.addressed,
            request: None,
        });
        changes.inbox_acks.push(seq);
        self.store.apply(&changes).await?;
        Ok(StopOutcome::PassedOn(stop.thread.clone()))
    }
}

/// Describes an open card by its change and the person who asked.
fn line(record: &ActionRecord) -> Text {
    Text::new().bold(record.act()).plain(" · ").join(record.asked_by())
}

/// Returns the reply about the open cards that are not part of the work that is `stopped`.
fn other_cards_stay_open(stopped: &str, apart: &[&ActionRecord]) -> Reply {
    Reply::text(format!("Stopped {stopped}. These other cards stay open:"))
        .and(Part::List(apart.iter().map(|record| line(record)).collect()))
        .hint("To withdraw them too, say “stop” again.")
}

/// Returns the reply about the cards that the person may not close.
fn cards_stay_open(kept: &[&ActionRecord]) -> Reply {
    Reply::text("I'm not working on anything else in this thread. These cards stay open, because you can't close them:")
        .and(Part::List(kept.iter().map(|record| line(record)).collect()))
        .hint("Only the requester or someone who can decide can close them.")
}
