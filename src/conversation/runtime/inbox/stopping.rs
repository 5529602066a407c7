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

use countersign_assistant::{StopRequest, stop_request};
use countersign_core::{
    ids::ThreadId,
    reply::{Part, Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Status},
    checkpoint::Cursor,
    conversing::Memory,
    engine::stop::nothing_to_stop,
    store::{ActionFilter, Error, Seq, ThreadMessage},
};

use super::Inbox;
use crate::{
    approvals::{
        clicks::TypedAnswer,
        completing, consent,
        inbox::InboxAnswer,
        policy,
        withdraw::{leave_to_buttons, open_cards, pass_on, withdraw},
    },
    runtime::interaction::{Interaction, Stop, StopWords},
};

/// The maximum number of actions in progress that are read.
const MAX_ACTIONS: usize = 50;

/// Returns the work that these words ask to end.
fn request_of(text: &str) -> StopRequest {
    stop_request(text).unwrap_or(StopRequest::Everything)
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

impl Inbox {
    /// Returns the interaction that words such as “wait, cancel it” are where there is no work to stop: an answer to a
    /// card. `None` if the interaction is what it seems.
    pub(super) async fn meaning_here(&self, interaction: &Interaction) -> Result<Option<Interaction>, Error> {
        let Interaction::Stop(Stop { thread, by, addressed, said: Some(StopWords { text, ts }) }) = interaction else {
            return Ok(None);
        };
        let Some(meaning) = consent::parse(text) else { return Ok(None) };
        if let Some(work) = self.work_in(thread).await?
            && self.ends(&work, request_of(text))
        {
            return Ok(None);
        }
        let (thread, by, text, ts) = (thread.clone(), by.clone(), text.clone(), ts.clone());
        let typed = TypedAnswer { thread, by, text, ts, meaning: Some(meaning), addressed: *addressed };
        Ok(Some(Interaction::TypedAnswer(typed)))
    }

    /// Ends the run of the thread, and closes the open cards that the person may close; or passes the words on to the
    /// assistant.
    pub(super) async fn stop(&self, stop: &Stop, seq: Seq) -> Result<InboxAnswer, Error> {
        let Stop { thread, by, addressed, said } = stop;
        let (store, groups, now) = (&*self.0.store, &self.0.approvals.groups, self.0.clock.now());
        let Some(work) = self.work_in(thread).await? else {
            return match said {
                Some(said) if *addressed && request_of(&said.text) != StopRequest::Everything => {
                    self.pass_words_on(stop, said, seq).await
                }
                _ => {
                    if *addressed {
                        self.post_privately(by, &thread.channel, Some(&thread.root), &nothing_to_stop()).await;
                    }
                    Ok(InboxAnswer::NoAnswer)
                }
            };
        };
        if let Some(said) = said
            && !self.ends(&work, request_of(&said.text))
        {
            return self.pass_words_on(stop, said, seq).await;
        }
        let (mut closed, mut kept, mut apart) = (0, Vec::new(), Vec::new());
        for record in &work.open {
            // A “stop” of a job once withdrew every card in the thread, although they had nothing to do with it.
            if work.is_apart(record) {
                apart.push(record);
                continue;
            }
            let person = groups.person(record, by, true).await;
            let may = |record: &ActionRecord| policy::may_reject(record, by, &person).is_ok();
            if !may(record) {
                kept.push(record);
                continue;
            }
            if withdraw(store, record, by, now, may).await? {
                closed += 1;
            }
        }
        leave_to_buttons(store, thread).await?;
        let mut changes = completing(thread, seq);
        // A closed card is a sufficient answer, and so is the reply about cards that stay open.
        let asks = *addressed && closed == 0 && kept.is_empty() && apart.is_empty();
        changes.messages.push(ThreadMessage::Stop { by: by.clone(), asks });
        store.apply(&changes).await?;
        let reply = match (kept.as_slice(), apart.as_slice()) {
            ([], []) => None,
            ([], apart) => Some(other_cards_stay_open(work.stopped(), apart)),
            (kept, _) => Some(cards_stay_open(kept)),
        };
        if let Some(reply) = &reply {
            self.post_privately(by, &thread.channel, Some(&thread.root), reply).await;
        }
        Ok(InboxAnswer::Counted(thread.clone()))
    }

    /// Returns the work of a thread; `None` if it is not one of the bot's threads.
    async fn work_in(&self, thread: &ThreadId) -> Result<Option<Work>, Error> {
        let Some(saved) = self.0.store.load(thread).await? else { return Ok(None) };
        let memory = self.0.approvals.memories.read(Some(saved)).unwrap_or_default();
        let open = open_cards(&*self.0.store, thread).await?;
        let filter = ActionFilter::of(thread, &[Status::Intent], MAX_ACTIONS);
        let begun = self.0.store.actions(&filter).await?;
        let has_job = begun.iter().any(|record| record.progress.is_some() || record.waits.is_some());
        let unread = self.0.store.messages(thread, 0, None).await?;
        // A message that no worker has read yet is work as well.
        let is_idle = memory.cursor == Cursor::Idle && unread.is_empty();
        let is_stopping = unread.iter().any(|unread| matches!(unread.message, ThreadMessage::Stop { .. }));
        Ok(Some(Work { memory, open, has_job, is_idle, is_stopping }))
    }

    /// Returns true if the words ask to end this work. If there is only a question that waits for
    /// an answer, they are the answer to it.
    fn ends(&self, work: &Work, request: StopRequest) -> bool {
        let is_asking = work.memory.is_drafting;
        match request {
            StopRequest::Everything => {
                let only_asks = is_asking && work.is_idle && work.open.is_empty() && !work.is_in_progress();
                !only_asks
            }
            StopRequest::Pointed => {
                let is_plan = |record: &ActionRecord| self.0.plan_action == Some(record.name.as_str());
                work.is_in_progress() || work.open.iter().any(is_plan)
            }
            StopRequest::Cancel => work.is_in_progress() && work.open.is_empty() && !is_asking,
        }
    }

    /// Passes a message that does not ask to stop to the assistant.
    async fn pass_words_on(&self, stop: &Stop, said: &StopWords, seq: Seq) -> Result<InboxAnswer, Error> {
        let Stop { thread, by, addressed, .. } = stop;
        leave_to_buttons(&*self.0.store, thread).await?;
        pass_on(&*self.0.store, thread, (by, &said.text, &said.ts), *addressed, seq).await
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
