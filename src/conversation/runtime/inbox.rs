//! Handles the interactions in the inbox, each claimed by a process first, and retried if it fails.
//!
//! If an interaction has an effect in the store, it is removed in the same write; otherwise it is
//! removed after its answer was sent. A crash in between can therefore repeat an answer to one
//! person, but never a decision.
//!
//! The number of interactions that are handled at the same time is limited by permits, and a permit is
//! taken before a claim. A failed interaction is handled again after increasing waits. If it fails
//! each time, it is kept as a dead letter.

mod admission;
mod at_once;
mod attached;
mod files;
mod handlers;
mod replies;
mod stopping;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use countersign_core::{cause, clock::Clock, ids::UserId, spans};
use countersign_graph::store::{ClaimedInteraction, Error, Settlement, Store, why_unreadable};
use countersign_slack::{client::SlackClient, interaction as slack, interaction::View};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, Span, debug_span, field::Empty};

use super::{interaction::Interaction, outbox::Sender, workers::Workers};
use crate::{
    approvals::{
        forms::FormOutcome,
        inbox::{Approvals, InboxAnswer},
    },
    commands::Commands,
    presentation::modals,
    record::{notebook::Notebook, rating::Ratings, undelivered},
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
pub struct Permit(OwnedSemaphorePermit);

/// The permits of an inbox.
struct Seats {
    free: Arc<Semaphore>,
    /// True if a caller found no permit, so that interactions wait to be claimed.
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
    /// The action that shows a plan on a card.
    pub plan_action: Option<&'static str>,
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
    /// The clock.
    pub clock: Arc<dyn Clock>,
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
        let permits = Seats { free: Arc::new(Semaphore::new(MAX_CONCURRENT)), behind: AtomicBool::new(false) };
        Self(Arc::new(deps), Arc::new(permits))
    }

    /// Returns the time for which an interaction is claimed. Afterwards any process may handle it.
    pub fn claim(&self) -> Duration {
        self.0.slack.timeout() * CLAIM_IN_TIMEOUTS
    }

    /// Returns a permit, if one is free. A caller without a permit leaves the interaction unclaimed; it
    /// is handled once a permit is free.
    pub fn permit(&self) -> Option<Permit> {
        let permit = self.1.free.clone().try_acquire_owned().ok().map(Permit);
        if permit.is_none() {
            self.1.behind.store(true, Ordering::SeqCst);
        }
        permit
    }

    /// Starts a task that handles a claimed interaction, and then those that waited for a permit.
    pub fn spawn(&self, claimed: ClaimedInteraction, permit: Permit) {
        let inbox = self.clone();
        let origin = Span::current();
        // On the heap, since the future is large, and Tokio moves it several times.
        self.0.tasks.spawn(Box::pin(async move {
            let Permit(_permit) = permit;
            inbox.process(&claimed).instrument(origin).await;
            // What found no permit was stored unclaimed. The next sweep would find it too, but people wait for an answer.
            while inbox.1.behind.load(Ordering::SeqCst) {
                let next = inbox.0.store.claim_interaction(inbox.claim(), 1).await;
                match next.unwrap_or_default().pop() {
                    Some(next) => inbox.process(&next).await,
                    None => inbox.1.behind.store(false, Ordering::SeqCst),
                }
            }
        }));
    }

    /// Handles interactions that no process has claimed, as long as there are permits.
    pub async fn sweep(&self) -> Result<(), Error> {
        let mut permits: Vec<Permit> = std::iter::from_fn(|| self.permit()).take(MAX_CLAIMED).collect();
        if permits.is_empty() {
            return Ok(());
        }
        for claimed in self.0.store.claim_interaction(self.claim(), permits.len()).await? {
            let Some(permit) = permits.pop() else { break }; // a store never returns more than requested
            self.spawn(claimed, permit);
        }
        Ok(())
    }

    /// Handles an interaction. If that fails, it is handled again later or given up.
    async fn process(&self, claimed: &ClaimedInteraction) {
        if claimed.attempts >= MAX_ATTEMPTS {
            return self.give_up(claimed, "its handling never ended").await; // no attempt ended, even with an error
        }
        let decide = spans::begun(debug_span!("decide", attempts = claimed.attempts, trace.id = Empty));
        let Err(error) = self.handle(claimed).instrument(decide).await else { return };
        if claimed.attempts + 1 >= MAX_ATTEMPTS {
            return self.give_up(claimed, &error.to_string()).await;
        }
        tracing::warn!(
            attempts = claimed.attempts,
            error = cause::chain(&error),
            "An interaction will be handled again"
        );
        // Soon at first, since most faults are short, and never more than a minute, since a person waits.
        let wait = Duration::from_secs(1).saturating_mul(1 << claimed.attempts.min(6)).min(MAX_WAIT);
        if let Err(error) = self.0.store.settle_interaction(claimed, Settlement::Retry(wait)).await {
            tracing::warn!(error = cause::chain(&error), "An interaction waits until its claim expires");
        }
    }

    /// Keeps an interaction as a dead letter, and notifies the person who waits for an answer.
    async fn give_up(&self, claimed: &ClaimedInteraction, why: &str) {
        tracing::error!(why, "An interaction is given up and kept as unhandled");
        if let Err(error) =
            self.0.store.settle_interaction(claimed, Settlement::Fail { reason: why, at: self.0.clock.now() }).await
        {
            tracing::warn!(error = cause::chain(&error), "Cannot keep an interaction that was given up");
            return;
        }
        metrics::counter!("countersign_unhandled_total").increment(1);
        // All others are handled without anybody waiting, or show themselves what became of them.
        if let Ok(
            interaction @ (Interaction::Click(_)
            | Interaction::TypedAnswer(_)
            | Interaction::ThreadCommand(_)
            | Interaction::Command(_)),
        ) = serde_json::from_value(claimed.entry.clone())
        {
            self.reply_to(&interaction, &undelivered::not_handled()).await;
        }
    }

    async fn handle(&self, claimed: &ClaimedInteraction) -> Result<(), Error> {
        let deps = &self.0;
        let interaction: Interaction = match serde_json::from_value(claimed.entry.clone()) {
            Ok(interaction) => interaction,
            // Another version may be able to read it, so it is kept apart instead of tried again.
            Err(error) => {
                return deps.store.settle_interaction(claimed, Settlement::SetAside(&why_unreadable(&error))).await;
            }
        };
        let interaction = self.meaning_here(&interaction).await?.unwrap_or(interaction);
        if self.refuse_unauthorized(claimed, &interaction).await? {
            return Ok(());
        }
        let answer = match self.answer(&interaction, claimed).await? {
            InboxAnswer::Unanswered { .. } if claimed.attempts < IDENTIFICATION_ATTEMPTS => {
                return Err(retry_later("Slack didn't identify the user"));
            }
            InboxAnswer::Unanswered { record, reply } => {
                if let Some(by) = interaction.by() {
                    deps.approvals.record_unidentified(&record, by).await?;
                }
                InboxAnswer::Refused(reply)
            }
            answer => answer,
        };
        let at_home = match &interaction {
            Interaction::Click(click) if click.is_in_home() => Some(click),
            _ => None,
        };
        // The tab shows the state right after the press. The thread does not wait for a private reply. Without an answer, a
        // window answers.
        if let Some(click) = at_home.filter(|_| answer != InboxAnswer::NoAnswer) {
            self.reply_at_home(click, answer.reply()).await;
        }
        self.continue_thread(&answer);
        if let (None, Some(reply)) = (at_home, answer.reply()) {
            self.reply_to(&interaction, reply).await.or_retry(claimed)?;
        }
        match &answer {
            // The write with the effect removed the interaction from the inbox.
            InboxAnswer::Counted(_) | InboxAnswer::PassedOn(_) | InboxAnswer::Removed => Ok(()),
            InboxAnswer::Refused(_)
            | InboxAnswer::Redrawn { .. }
            | InboxAnswer::Unanswered { .. }
            | InboxAnswer::NoAnswer => deps.store.settle_interaction(claimed, Settlement::Done).await,
        }
    }

    /// Handles an interaction. This is the table of what handles which.
    async fn answer(&self, interaction: &Interaction, claimed: &ClaimedInteraction) -> Result<InboxAnswer, Error> {
        let (approvals, seq) = (&self.0.approvals, claimed.seq);
        match interaction {
            Interaction::Click(click) => approvals.on_click(click, seq).await,
            Interaction::TypedAnswer(typed) => approvals.on_typed(typed, seq).await,
            Interaction::PageTurn(turned) => approvals.turn_page(turned).await,
            Interaction::ChangedMessage(changed) => approvals.on_changed_message(changed, seq).await,
            Interaction::NotifyApprovers { approval } => approvals.notify(approval, seq).await,
            Interaction::Expire { approval } => approvals.on_expiry(approval, seq).await,
            Interaction::Remind { approval } => approvals.on_reminder(approval, seq).await,
            Interaction::Escalate { approval } => approvals.on_escalation(approval, seq).await,
            Interaction::Overdue { thread, action, until } => self.end_wait(thread, action, *until, seq).await,
            Interaction::PossibleDuplicate(duplicate) => self.remove_duplicates(duplicate, seq).await,
            Interaction::ThreadCommand(request) => self.execute(request, seq).await,
            Interaction::Choice(choice) => self.choose(choice, seq).await,
            Interaction::Stop(stop) => self.stop(stop, seq).await,
            Interaction::MessageWithFiles(message) => self.read_files(message, claimed).await,
            Interaction::Ask(shortcut) => Ok(self.open_window(shortcut).await),
            Interaction::Question(question) => self.ask_assistant(question, seq).await,
            Interaction::Export(shortcut) => self.export(shortcut).await,
            Interaction::New { by, trigger_id, shortcut, draft_in } => {
                self.open_form(by, trigger_id.as_deref(), shortcut, draft_in.as_ref()).await
            }
            Interaction::Creation(request) => self.create(request).await,
            Interaction::Command(command) => self.command(command, claimed).await,
            Interaction::Notebook { thread, by, addressed } => self.notebook(thread, by, *addressed).await,
            Interaction::Rating(rating) => self.rate(interaction, rating, seq).await,
            Interaction::SendAgain(request) => self.send_again(interaction, request).await,
            Interaction::Prompts { channel, thread } => Ok(self.suggest_prompts(channel, thread.as_ref()).await),
            Interaction::Home { user, pages } => self.0.home.open(user, *pages).await.map(|()| InboxAnswer::NoAnswer),
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
    pub async fn read_creation(&self, view: &View, interaction: &slack::Interaction) -> Result<CreationRequest, Value> {
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
            InboxAnswer::Refused(_) | InboxAnswer::Unanswered { .. } | InboxAnswer::Removed | InboxAnswer::NoAnswer => {
            }
        }
    }
}

/// Returns the error that makes an interaction be handled again.
fn retry_later(why: &'static str) -> Error {
    Error::Unavailable(why.into())
}
