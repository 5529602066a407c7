//! Handles “stop”, typed or pressed on Slack's own button: ends the run of a thread and closes its
//! open cards.
//!
//! If the thread works on a plan, only the plan ends: its own cards are closed, and other requests
//! stay open. Another “stop” then closes those as well.
//!
//! Everyone in the thread may end a run, since that can only reduce the changes made. Cards are
//! closed, as withdrawn, only for a person with the right to do so: the one who requested the
//! change, or one who may decide on it.

use std::sync::Arc;

use countersign_core::{
    clock::Clock,
    ids::{CommitId, ThreadId, UserId},
    reply::{Part, Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Status},
    conversing::Memories,
    store::{ActionFilter, Changes, Error, Seq, Store, ThreadMessage},
};
use serde::{Deserialize, Serialize};

use crate::approvals::{groups::Groups, policy, withdraw::withdraw};

/// The maximum number of open cards that are read.
const MAX_CARDS: usize = 50;

/// A request to end the work in a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// The thread.
    pub thread: ThreadId,
    /// The person who asked to stop.
    pub by: UserId,
    /// True if the request was addressed to the bot.
    pub addressed: bool,
}

/// The outcome of a “stop”.
#[derive(Debug, PartialEq)]
pub struct StopOutcome {
    /// The thread to wake, or `None` if it is not one of the bot's threads, so that there is
    /// nothing to stop.
    pub thread: Option<ThreadId>,
    /// The private reply to the person, if any.
    pub reply: Option<Reply>,
}

/// The service that stops threads.
#[derive(Clone)]
pub struct Stopping {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    groups: Groups,
    memories: Memories,
}

impl Stopping {
    /// Creates a service for the threads in this store; groups are looked up in `groups`, and the
    /// threads' plans in `memories`.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, groups: Groups, memories: Memories) -> Self {
        Self { store, clock, groups, memories }
    }

    /// Ends the run of the thread, and closes the open cards that the person may close.
    ///
    /// # Errors
    ///
    /// If the store does not answer. The call can safely be repeated.
    pub async fn on_stop(&self, stop: &Stop, seq: Seq) -> Result<StopOutcome, Error> {
        let Stop { thread, by, addressed } = stop;
        let Some(saved) = self.store.load(thread).await? else {
            let reply = addressed.then(|| Reply::text("Nothing is being done here, so there is nothing to stop."));
            return Ok(StopOutcome { thread: None, reply });
        };
        let memory = self.memories.read(Some(saved)).unwrap_or_default();
        let filter = ActionFilter { thread: Some(thread.clone()), statuses: vec![Status::Pending], limit: MAX_CARDS };
        let (mut closed, mut kept, mut apart) = (0, Vec::new(), Vec::new());
        for record in self.store.actions(&filter).await? {
            if memory.has_plan() && !memory.plan_questions.contains(record.question()) {
                apart.push(record);
                continue;
            }
            let person = self.groups.person(&record, by, true).await;
            if policy::may_reject(&record, by, &person).is_err() {
                kept.push(record);
                continue;
            }
            if withdraw(&*self.store, &record, by, self.clock.now()).await? {
                closed += 1;
            }
        }
        let mut changes = Changes::new(CommitId::fresh(), thread.clone());
        changes.inbox_acks.push(seq);
        // A closed card is a sufficient answer, and so is the reply about cards that stay open.
        let asks = *addressed && closed == 0 && kept.is_empty() && apart.is_empty();
        changes.messages.push(ThreadMessage::Stop { by: by.clone(), asks });
        self.store.apply(&changes).await?;
        let reply = match (kept.as_slice(), apart.as_slice()) {
            ([], []) => None,
            ([], apart) => Some(other_cards_stay_open(apart)),
            (kept, _) => Some(cards_stay_open(kept)),
        };
        Ok(StopOutcome { thread: Some(thread.clone()), reply })
    }
}

/// Describes an open card by its change and the person who asked.
fn line(record: &ActionRecord) -> Text {
    Text::new().bold(record.act()).plain(" · asked by ").person(record.requested_by.clone())
}

/// Returns the reply about the open cards that are not part of the stopped plan.
fn other_cards_stay_open(apart: &[ActionRecord]) -> Reply {
    Reply::text("Only the plan is stopped. These cards are not part of it, so they stay open:")
        .and(Part::List(apart.iter().map(line).collect()))
        .hint("To withdraw them as well, say “stop” again.")
}

/// Returns the reply about the cards that the person may not close.
fn cards_stay_open(kept: &[ActionRecord]) -> Reply {
    Reply::text("I work on nothing here any more. These cards stay open, since they are not yours to close:")
        .and(Part::List(kept.iter().map(line).collect()))
        .hint("Only the person who asked, or one who may decide, can close them.")
}
