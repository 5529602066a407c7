//! Handles the interactions in the inbox, each claimed by a process first, and retried if it fails.
//!
//! If an interaction has an effect in the store, it is removed in the same write; otherwise it is
//! removed after its answer was sent. A crash in between can therefore repeat an answer to one
//! person, but never a decision.
//!
//! The number of interactions that are handled at the same time is limited by seats, and a seat is
//! taken before a claim. A failed interaction is handled again after increasing waits. If it fails
//! each time, it is kept as a dead letter.

mod admission;
mod again;
mod at_once;
pub mod files;
mod replies;
mod shortcuts;
mod stop;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use countersign_assistant::declines;
use countersign_core::{
    clock::Clock,
    ids::{CommitId, UserId},
};
use countersign_graph::{
    conversing::Memories,
    store::{Changes, ClaimedInteraction, Error, Seq, Store, ThreadMessage, why_unreadable},
};
use countersign_slack::{client::SlackClient, interaction::View};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use self::replies::{ReplyDelivery, log_failure};
use super::{interaction::Interaction, outbox::Sender, stopping::Stopping, workers::Workers};
use crate::{
    approvals::{
        clicks::{Click, TypedAnswer},
        forms::FormOutcome,
        inbox::{Approvals, InboxAnswer},
        notify::ApproverNotices,
        people::People,
        withdraw::leave_to_buttons,
    },
    commands::{
        CommandAnswer, Commands,
        in_thread::{self, Outcome, ThreadCommandRequest},
    },
    presentation::{modals, names::Names},
    record::{
        notebook::{self, Notebook},
        rating::Ratings,
        undelivered,
    },
    surfaces::{
        creation::{Creation, CreationRequest},
        home::Home,
    },
};

/// The duration of a claim, as a multiple of the time-out of a Slack call.
const CLAIM_IN_TIMEOUTS: u32 = 3;

/// The maximum number of interactions that a sweep claims at once.
const MAX_CLAIMED: usize = 32;

/// The maximum number of interactions that are handled at the same time.
const MAX_CONCURRENT: usize = 64;

/// The maximum number of attempts to handle an interaction: about an hour with the waits below.
const MAX_ATTEMPTS: u32 = 60;

/// The number of attempts to identify a person, before the reply says that Slack isn't answering.
/// These last about half a minute.
const IDENTIFICATION_ATTEMPTS: u32 = 5;

/// The maximum number of attempts to deliver a private answer. These last about five minutes.
const REPLY_ATTEMPTS: u32 = 10;

/// The maximum wait between two attempts.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The inbox of one process.
#[derive(Clone)]
pub struct Inbox(Arc<InboxDeps>, Arc<Seats>);

/// The permission to handle one interaction at a time.
#[derive(Debug)]
pub struct Seat(OwnedSemaphorePermit);

/// The seats of an inbox.
struct Seats {
    free: Arc<Semaphore>,
    /// True if a caller found no seat, so that interactions wait to be claimed.
    behind: AtomicBool,
}

/// The dependencies of an [`Inbox`].
pub struct InboxDeps {
    /// The store of the interactions.
    pub store: Arc<dyn Store>,
    /// The service that decides on clicks.
    pub approvals: Approvals,
    /// The service that answers commands.
    pub commands: Commands,
    /// The service for requests to create something.
    pub creation: Creation,
    /// The service that ends runs.
    pub stopping: Stopping,
    /// The exporter of threads.
    pub notebook: Notebook,
    /// The service that stores ratings.
    pub ratings: Ratings,
    /// True if the app is declared as an agent, so that Slack shows suggested prompts.
    pub agent_view: bool,
    /// The suggested prompts, each with its label and its request.
    pub prompts: Vec<(&'static str, &'static str)>,
    /// The Home tab.
    pub home: Home,
    /// The rights of people.
    pub people: People,
    /// The service that notifies people of a waiting card.
    pub approver_notices: ApproverNotices,
    /// The names of user groups and people.
    pub names: Names,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The reader of the threads' memories.
    pub memories: Memories,
    /// The client for private answers.
    pub slack: SlackClient,
    /// The workers that advance threads.
    pub workers: Workers,
    /// The sender of outgoing messages.
    pub sender: Sender,
    /// The tasks in progress, for draining.
    pub tasks: TaskTracker,
}

impl Inbox {
    /// Creates an inbox from its dependencies.
    pub fn new(deps: InboxDeps) -> Self {
        let seats = Seats { free: Arc::new(Semaphore::new(MAX_CONCURRENT)), behind: AtomicBool::new(false) };
        Self(Arc::new(deps), Arc::new(seats))
    }

    /// Returns the time for which an interaction is claimed. Afterwards any process may handle it.
    pub fn claim(&self) -> Duration {
        self.0.slack.timeout() * CLAIM_IN_TIMEOUTS
    }

    /// Returns a seat, if one is free. A caller without a seat leaves the interaction unclaimed; it
    /// is handled once a seat is free.
    pub fn seat(&self) -> Option<Seat> {
        let seat = self.1.free.clone().try_acquire_owned().ok().map(Seat);
        if seat.is_none() {
            self.1.behind.store(true, Ordering::SeqCst);
        }
        seat
    }

    /// Starts a task that handles a claimed interaction, and then those that waited for a seat.
    pub fn spawn(&self, claimed: ClaimedInteraction, seat: Seat) {
        let inbox = self.clone();
        // On the heap, since the future is large, and Tokio moves it several times.
        self.0.tasks.spawn(Box::pin(async move {
            let Seat(_permit) = seat;
            inbox.process(&claimed).await;
            while inbox.1.behind.load(Ordering::SeqCst) {
                let next = inbox.0.store.claim_interaction(inbox.0.workers.name(), inbox.claim(), 1).await;
                match next.unwrap_or_default().pop() {
                    Some(next) => inbox.process(&next).await,
                    None => inbox.1.behind.store(false, Ordering::SeqCst),
                }
            }
        }));
    }

    /// Handles interactions that no process has claimed, as long as there are seats.
    pub async fn sweep(&self) -> Result<(), Error> {
        let mut seats: Vec<Seat> = std::iter::from_fn(|| self.seat()).take(MAX_CLAIMED).collect();
        if seats.is_empty() {
            return Ok(());
        }
        for claimed in self.0.store.claim_interaction(self.0.workers.name(), self.claim(), seats.len()).await? {
            let Some(seat) = seats.pop() else { break }; // a store never returns more than requested
            self.spawn(claimed, seat);
        }
        Ok(())
    }

    /// Handles an interaction. If that fails, it is handled again later or given up.
    async fn process(&self, claimed: &ClaimedInteraction) {
        if claimed.attempts >= MAX_ATTEMPTS {
            return self.give_up(claimed, "its handling never ended").await; // no attempt ended, even with an error
        }
        let Err(error) = self.handle(claimed).await else { return };
        if claimed.attempts + 1 >= MAX_ATTEMPTS {
            return self.give_up(claimed, &error.to_string()).await;
        }
        tracing::warn!(
            attempts = claimed.attempts,
            error = countersign_core::cause::chain(&error),
            "An interaction will be handled again"
        );
        let wait = Duration::from_secs(1).saturating_mul(1 << claimed.attempts.min(6)).min(MAX_WAIT);
        if let Err(error) = self.0.store.retry_interaction(claimed, wait).await {
            tracing::warn!(
                error = countersign_core::cause::chain(&error),
                "An interaction waits until its claim expires"
            );
        }
    }

    /// Keeps an interaction as a dead letter, and notifies the person who waits for an answer.
    async fn give_up(&self, claimed: &ClaimedInteraction, why: &str) {
        tracing::error!(why, "An interaction is given up and kept as unhandled");
        if let Err(error) = self.0.store.fail_interaction(claimed, why, self.0.clock.now()).await {
            tracing::warn!(
                error = countersign_core::cause::chain(&error),
                "Cannot keep an interaction that was given up"
            );
            return;
        }
        metrics::counter!("countersign_unhandled_total").increment(1);
        match serde_json::from_value(claimed.entry.clone()) {
            Ok(Interaction::Click(click)) => drop(self.reply_to_click(&click, &undelivered::not_handled()).await),
            Ok(
                Interaction::TypedAnswer(TypedAnswer { by, thread, .. })
                | Interaction::ThreadCommand(ThreadCommandRequest { by, thread, .. }),
            ) => {
                self.post_privately(&by, &thread.channel, Some(&thread.root), &undelivered::not_handled()).await;
            }
            Ok(Interaction::Command(command)) => {
                self.try_respond(&command.response_url, &undelivered::not_handled()).await;
            }
            _ => {}
        }
    }

    async fn handle(&self, claimed: &ClaimedInteraction) -> Result<(), Error> {
        let deps = &self.0;
        let interaction: Interaction = match serde_json::from_value(claimed.entry.clone()) {
            Ok(interaction) => interaction,
            Err(error) => {
                return deps.store.set_aside_interaction(claimed.partition, claimed.seq, &why_unreadable(&error)).await;
            }
        };
        let interaction = self.meaning_here(&interaction).await?.unwrap_or(interaction);
        if self.refuse_unauthorized(claimed, &interaction).await? {
            return Ok(());
        }
        let answer = match &interaction {
            Interaction::Click(click) => deps.approvals.on_click(click, claimed.seq).await?,
            Interaction::TypedAnswer(typed) => deps.approvals.on_typed(typed, claimed.seq).await?,
            Interaction::ThreadCommand(request) => self.execute(request, claimed.seq).await?,
            Interaction::Choice(choice) => {
                self.take_answers_away(choice).await;
                if declines(&choice.says) {
                    leave_to_buttons(&*deps.store, &choice.thread).await?;
                }
                deps.store.apply(&choice.changes(deps.clock.now(), claimed.seq)).await?;
                InboxAnswer::Counted(choice.thread.clone())
            }
            Interaction::Ask(shortcut) => self.open_window(shortcut).await,
            Interaction::Question(question) => self.ask_assistant(question, claimed.seq).await?,
            Interaction::New { by, trigger_id, draft_in: Some(thread), .. } => {
                let draft = deps.memories.read(deps.store.load(thread).await?).and_then(|memory| memory.draft);
                deps.creation.open_draft(trigger_id.as_deref(), by, thread, draft).await;
                InboxAnswer::NoAnswer
            }
            Interaction::New { by, trigger_id, shortcut, draft_in: None } => {
                deps.creation.open(trigger_id.as_deref(), by, shortcut).await;
                InboxAnswer::NoAnswer
            }
            Interaction::Creation(request) => {
                let thread = deps.creation.begin(request).await?;
                self.tell_where_it_is(request, thread.as_ref()).await;
                thread.into_iter().for_each(|thread| deps.workers.wake(thread));
                InboxAnswer::NoAnswer
            }
            Interaction::Export(shortcut) => self.export(shortcut).await?,
            Interaction::NotifyApprovers { approval } => deps.approver_notices.notify(approval, claimed.seq).await?,
            Interaction::Expire { approval } => deps.approvals.on_expiry(approval, claimed.seq).await?,
            Interaction::Remind { approval } => deps.approvals.on_reminder(approval, claimed.seq).await?,
            Interaction::Escalate { approval } => deps.approvals.on_escalation(approval, claimed.seq).await?,
            Interaction::Overdue { thread, action, until } => {
                let mut changes = Changes::new(CommitId::fresh(), thread.clone());
                changes.messages.push(ThreadMessage::Overdue { action: action.clone(), until: *until });
                changes.inbox_acks.push(claimed.seq);
                deps.store.apply(&changes).await?;
                InboxAnswer::PassedOn(thread.clone())
            }
            Interaction::Reason(reason) => deps.approvals.on_reason(reason, Some(claimed.seq)).await?,
            Interaction::PageTurn(turned) => deps.approvals.turn_page(turned).await?,
            Interaction::MessageWithFiles(message) => self.read_files(message, claimed).await?,
            Interaction::ChangedMessage(changed) => deps.approvals.on_changed_message(changed, claimed.seq).await?,
            Interaction::Command(command) => {
                let CommandAnswer { reply, posted_in } = deps.commands.answer(command).await;
                let delivery = self.respond(&command.response_url, &reply).await;
                if delivery == ReplyDelivery::Later && claimed.attempts < REPLY_ATTEMPTS {
                    return Err(retry_later("a private answer did not arrive"));
                }
                posted_in.into_iter().for_each(|thread| deps.sender.flush(thread));
                InboxAnswer::NoAnswer
            }
            Interaction::Stop(stop) => self.stop(stop, claimed.seq).await?,
            // Not a command: it was typed in a thread without the bot, and not addressed to it.
            Interaction::Notebook { thread, addressed: false, .. } if deps.store.load(thread).await?.is_none() => {
                InboxAnswer::NoAnswer
            }
            Interaction::Notebook { thread, by, .. } => {
                match deps.notebook.export_to_thread(thread, by).await {
                    Ok(_) => deps.sender.flush(thread.clone()),
                    Err(notebook::Error::Store(error)) => return Err(error),
                    Err(error) => {
                        tracing::warn!(thread.id = %thread, error = countersign_core::cause::chain(&error), "A thread was not exported");
                        let reply = notebook::refusal_reply(&error);
                        self.post_privately(by, &thread.channel, Some(&thread.root), &reply).await;
                    }
                }
                InboxAnswer::NoAnswer
            }
            Interaction::Rating(rating) => {
                let reply = deps.ratings.record_rating(rating, claimed.seq).await?;
                let place = (&rating.thread.channel, Some(&rating.thread.root));
                self.reply_privately(&rating.by, rating.response_url.as_deref(), Some(place), &reply).await;
                InboxAnswer::NoAnswer
            }
            Interaction::SendAgain(request) => {
                let reply = self.send_again(request).await?;
                self.reply_privately(&request.by, request.response_url.as_deref(), request.place(), &reply).await;
                InboxAnswer::NoAnswer
            }
            Interaction::PossibleDuplicate(duplicate) => {
                deps.sender.remove_duplicates(duplicate, claimed.seq).await?;
                return Ok(());
            }
            Interaction::Prompts { channel, thread } => {
                // Slack shows prompts for agent apps only. Otherwise the first answer shows them as buttons.
                if deps.agent_view || thread.is_some() {
                    let prompts = deps.slack.set_suggested_prompts(channel, thread.as_ref(), &deps.prompts);
                    log_failure(prompts.await);
                }
                InboxAnswer::NoAnswer
            }
            Interaction::Home { user, pages } => {
                deps.home.open(user, *pages).await?;
                InboxAnswer::NoAnswer
            }
        };
        let answer = match (answer, &interaction) {
            (InboxAnswer::Unanswered { .. }, _) if claimed.attempts < IDENTIFICATION_ATTEMPTS => {
                return Err(retry_later("Slack didn't identify the user"));
            }
            (
                InboxAnswer::Unanswered { record, reply },
                Interaction::Click(Click { by, .. }) | Interaction::TypedAnswer(TypedAnswer { by, .. }),
            ) => {
                deps.approvals.record_unidentified(&record, by).await?;
                InboxAnswer::Refused(reply)
            }
            (answer, _) => answer,
        };
        // The tab shows the state right after the press. The thread does not wait for a private reply.
        if let Interaction::Click(click) = &interaction
            && click.is_in_home()
            && answer != InboxAnswer::NoAnswer
        // a window answers
        {
            self.reply_at_home(click, answer.reply()).await;
        }
        self.continue_thread(&answer);
        let delivery = match (&interaction, answer.reply()) {
            (Interaction::Click(click), Some(reply)) if !click.is_in_home() => self.reply_to_click(click, reply).await,
            (Interaction::TypedAnswer(typed), Some(reply)) => {
                self.post_privately(&typed.by, &typed.thread.channel, Some(&typed.thread.root), reply).await
            }
            _ => ReplyDelivery::Delivered,
        };
        if delivery == ReplyDelivery::Later && claimed.attempts < REPLY_ATTEMPTS {
            return Err(retry_later("a private answer did not arrive"));
        }
        match &answer {
            InboxAnswer::Counted(_) | InboxAnswer::PassedOn(_) => Ok(()),
            InboxAnswer::Refused(_)
            | InboxAnswer::Redrawn { .. }
            | InboxAnswer::Unanswered { .. }
            | InboxAnswer::NoAnswer => deps.store.finish_interaction(claimed.partition, claimed.seq).await,
        }
    }

    /// Handles a submitted form of a card. Returns the window's next view, or `None` if it closes.
    ///
    /// # Errors
    ///
    /// If the store isn't answering. Slack delivers the submission again.
    pub async fn submit(&self, view: &View, by: &UserId) -> Result<Option<Value>, Error> {
        let approvals = &self.0.approvals;
        let outcome = match view.callback_id.as_str() {
            modals::ANSWER => approvals.on_answer(view, by).await?,
            modals::REJECT => approvals.on_rejection(view, by).await?,
            _ => approvals.on_form(view, by).await?,
        };
        match outcome {
            FormOutcome::Stays(payload) => Ok(Some(payload)),
            FormOutcome::Closed(answer) => {
                self.continue_thread(&answer);
                Ok(None)
            }
        }
    }

    /// Returns true for the callback id of a shortcut that creates something, or of its window.
    pub fn creates(&self, callback: &str) -> bool {
        self.0.creation.has_shortcut(callback)
    }

    /// Reads a submitted window that creates something.
    ///
    /// # Errors
    ///
    /// The view that the window shows if the input is not accepted.
    pub async fn read_creation(
        &self,
        view: &View,
        interaction: &countersign_slack::interaction::Interaction,
    ) -> Result<CreationRequest, Value> {
        self.0.creation.read(view, interaction).await
    }

    /// Records that Slack says, by an event of this name, that the bot token is no longer valid.
    pub fn token_revoked(&self, event: &str) {
        self.0.slack.token_health().refused(event, event, Instant::now());
    }

    /// Sends the thread's messages and wakes its worker.
    fn continue_thread(&self, answer: &InboxAnswer) {
        match answer {
            InboxAnswer::Counted(thread) | InboxAnswer::Redrawn { thread, .. } => {
                self.0.home.mark_changed();
                self.0.sender.flush(thread.clone());
                self.0.workers.wake(thread.clone());
            }
            InboxAnswer::PassedOn(thread) => self.0.workers.wake(thread.clone()),
            InboxAnswer::Refused(_) | InboxAnswer::Unanswered { .. } | InboxAnswer::NoAnswer => {}
        }
    }

    /// Executes a command typed in a thread, and replies privately.
    async fn execute(&self, request: &ThreadCommandRequest, seq: Seq) -> Result<InboxAnswer, Error> {
        let deps = &self.0;
        let thread = request.thread.clone();
        let (reply, changed) =
            match in_thread::execute(&*deps.store, &deps.memories, request, deps.clock.now(), seq).await? {
                Outcome::PassedOn => return Ok(InboxAnswer::PassedOn(thread)),
                Outcome::Ignored => return Ok(InboxAnswer::NoAnswer),
                Outcome::Answered(reply) => (reply, false),
                Outcome::Question => (deps.commands.answer_question(request).await, false),
                Outcome::Changed(reply) => (reply, true),
            };
        self.post_privately(&request.by, &thread.channel, request.root(), &reply).await;
        if changed {
            self.continue_thread(&InboxAnswer::Counted(thread));
        }
        Ok(InboxAnswer::NoAnswer)
    }
}

/// Returns the error that makes an interaction be handled again.
fn retry_later(why: &'static str) -> Error {
    Error::Unavailable(why.into())
}
