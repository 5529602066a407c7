//! Handles the interactions that are no decisions about cards: each method is a row of the table in [`Inbox::answer`].

use countersign_assistant::declines;
use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ChannelId, CommitId, MessageTs, ThreadId, UserId},
};
use countersign_graph::store::{Changes, ClaimedInteraction, Error, Seq, ThreadMessage};
use countersign_slack::client_error;

use super::{Inbox, replies::log_failure};
use crate::{
    approvals::{completing, inbox::InboxAnswer, withdraw::leave_to_buttons},
    commands::{
        Command, CommandAnswer,
        in_thread::{self, Outcome, ThreadCommandRequest},
    },
    presentation::render,
    record::{integrity, notebook, rating::Rating, undelivered},
    runtime::{
        choice::Choice,
        interaction::{Interaction, PossibleDuplicate, SendAgain},
    },
    surfaces::{
        creation::CreationRequest,
        shortcuts::{self, Question, Shortcut},
    },
};

/// The maximum number of dead letters that are searched for the message.
const MAX_DEAD_LETTERS: usize = 1000;

impl Inbox {
    /// Executes a command typed in a thread, and replies privately.
    pub(super) async fn execute(&self, request: &ThreadCommandRequest, seq: Seq) -> Result<InboxAnswer, Error> {
        let deps = &self.0;
        let thread = request.thread.clone();
        let (reply, changed) =
            match in_thread::execute(&*deps.store, &deps.approvals.memories, request, deps.clock.now(), seq).await? {
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

    /// Passes a choice on to its thread.
    pub(super) async fn choose(&self, choice: &Choice, seq: Seq) -> Result<InboxAnswer, Error> {
        let deps = &self.0;
        self.take_answers_away(choice).await;
        if declines(&choice.says) {
            // A pressed “no” leaves open cards to their buttons, as a typed one does.
            leave_to_buttons(&*deps.store, &choice.thread).await?;
        }
        deps.store.apply(&choice.changes(deps.clock.now(), seq)).await?;
        Ok(InboxAnswer::Counted(choice.thread.clone()))
    }

    /// Tells a thread that one of its actions has waited too long.
    pub(super) async fn end_wait(
        &self,
        thread: &ThreadId,
        action: &ActionId,
        until: Timestamp,
        seq: Seq,
    ) -> Result<InboxAnswer, Error> {
        let mut changes = completing(thread, seq);
        changes.messages.push(ThreadMessage::Overdue { action: action.clone(), until });
        self.0.store.apply(&changes).await?;
        Ok(InboxAnswer::PassedOn(thread.clone()))
    }

    /// Searches for duplicates of a message.
    pub(super) async fn remove_duplicates(
        &self,
        duplicate: &PossibleDuplicate,
        seq: Seq,
    ) -> Result<InboxAnswer, Error> {
        self.0.sender.remove_duplicates(duplicate, seq).await?;
        Ok(InboxAnswer::Removed)
    }

    /// Opens the form for something new, or for the draft in a thread.
    pub(super) async fn open_form(
        &self,
        by: &UserId,
        trigger: Option<&str>,
        shortcut: &str,
        draft_in: Option<&ThreadId>,
    ) -> Result<InboxAnswer, Error> {
        let deps = &self.0;
        match draft_in {
            Some(thread) => {
                let draft =
                    deps.approvals.memories.read(deps.store.load(thread).await?).and_then(|memory| memory.draft);
                deps.creation.open_draft(trigger, by, thread, draft).await;
            }
            None => deps.creation.open(trigger, by, shortcut).await,
        }
        Ok(InboxAnswer::NoAnswer)
    }

    /// Begins the thread of a request to create something.
    pub(super) async fn create(&self, request: &CreationRequest) -> Result<InboxAnswer, Error> {
        let thread = self.0.creation.begin(request).await?;
        self.tell_where_it_is(request, thread.as_ref()).await;
        thread.into_iter().for_each(|thread| self.0.workers.wake(thread));
        Ok(InboxAnswer::NoAnswer)
    }

    /// Answers a slash command.
    pub(super) async fn command(&self, command: &Command, claimed: &ClaimedInteraction) -> Result<InboxAnswer, Error> {
        let CommandAnswer { reply, posted_in } = self.0.commands.answer(command).await;
        self.respond(&command.response_url, &reply).await.or_retry(claimed)?;
        posted_in.into_iter().for_each(|thread| self.0.sender.flush(thread));
        Ok(InboxAnswer::NoAnswer)
    }

    /// Posts the notebook of a thread in it.
    pub(super) async fn notebook(&self, thread: &ThreadId, by: &UserId, addressed: bool) -> Result<InboxAnswer, Error> {
        let deps = &self.0;
        if !addressed && deps.store.load(thread).await?.is_none() {
            return Ok(InboxAnswer::NoAnswer); // people talk in a thread without the bot
        }
        match deps.notebook.export_to_thread(thread, by).await {
            Ok(_) => deps.sender.flush(thread.clone()),
            Err(integrity::Error::Store(error)) => return Err(error),
            Err(error) => {
                error.log(thread);
                let reply = notebook::refusal_reply(&error);
                self.post_privately(by, &thread.channel, Some(&thread.root), &reply).await;
            }
        }
        Ok(InboxAnswer::NoAnswer)
    }

    /// Records a rating of an answer.
    pub(super) async fn rate(
        &self,
        interaction: &Interaction,
        rating: &Rating,
        seq: Seq,
    ) -> Result<InboxAnswer, Error> {
        let reply = self.0.ratings.record_rating(rating, seq).await?;
        self.reply_to(interaction, &reply).await;
        Ok(InboxAnswer::NoAnswer)
    }

    /// Suggests prompts in a conversation that a person opened.
    pub(super) async fn suggest_prompts(&self, channel: &ChannelId, thread: Option<&MessageTs>) -> InboxAnswer {
        let deps = &self.0;
        // Slack shows prompts for agent apps only. Otherwise the first answer shows them as buttons.
        if deps.agent_view || thread.is_some() {
            log_failure(deps.slack.set_suggested_prompts(channel, thread, &deps.prompts).await);
        }
        InboxAnswer::NoAnswer
    }

    /// Sends an undelivered message again, at a person's request.
    pub(super) async fn send_again(
        &self,
        interaction: &Interaction,
        request: &SendAgain,
    ) -> Result<InboxAnswer, Error> {
        let is_sent = self.send_dead_letter(request).await?;
        let reply = if is_sent { undelivered::sending_again() } else { undelivered::nothing_to_send() };
        self.reply_to(interaction, &reply).await;
        Ok(InboxAnswer::NoAnswer)
    }

    /// Returns false if the message is not undelivered any more.
    async fn send_dead_letter(&self, request: &SendAgain) -> Result<bool, Error> {
        let deps = &self.0;
        let letters = deps.store.dead_letters(MAX_DEAD_LETTERS).await?;
        let Some((letter, thread, outgoing)) =
            undelivered::messages(&letters).find(|(_, _, outgoing)| outgoing.nonce.as_str() == request.key)
        else {
            return Ok(false);
        };
        if !deps.store.send_again(&letter.id, deps.clock.now()).await? {
            return Ok(false);
        }
        // The reports on the message are removed after it is sent. If it fails again, it is reported
        // again.
        let mut changes = Changes::new(CommitId::fresh(), thread.clone());
        changes.outbox.extend(undelivered::report_removals(outgoing, deps.clock.now()));
        deps.store.apply(&changes).await?;
        deps.sender.flush(thread.clone());
        Ok(true)
    }

    /// Opens the window for a question about a message.
    pub(super) async fn open_window(&self, shortcut: &Shortcut) -> InboxAnswer {
        let opened = match &shortcut.trigger_id {
            Some(trigger) => log_failure(self.0.slack.open_view(trigger, &shortcuts::window(shortcut)).await.map(drop)),
            None => false,
        };
        // The trigger ends after three seconds, and a retry cannot renew it.
        if !opened && let Some(url) = &shortcut.response_url {
            self.try_respond(url, &shortcuts::window_too_late()).await;
        }
        InboxAnswer::NoAnswer
    }

    /// Asks the assistant about a message, if the bot may write in that channel.
    pub(super) async fn ask_assistant(&self, question: &Question, seq: Seq) -> Result<InboxAnswer, Error> {
        use client_error::Error::{Gone, Refused};
        let deps = &self.0;
        let ThreadId { channel, root, .. } = &question.thread;
        let notified = deps
            .slack
            // This also tells whether the bot may write in the channel. If not, the question is not posted.
            .post_ephemeral(channel, Some(root), &question.by, &render::reply(&shortcuts::question_received()))
            .await;
        if let (Err(Gone { .. } | Refused { .. }), Some(url)) = (&notified, &question.response_url) {
            self.try_respond(url, &shortcuts::not_a_member()).await;
            return Ok(InboxAnswer::NoAnswer);
        }
        log_failure(notified);
        deps.store.apply(&shortcuts::question_changes(question, deps.clock.now(), seq)).await?;
        Ok(InboxAnswer::Counted(question.thread.clone()))
    }

    /// Exports the thread of a message.
    pub(super) async fn export(&self, shortcut: &Shortcut) -> Result<InboxAnswer, Error> {
        let reply = self.0.commands.notebook(&shortcut.by, &shortcut.thread).await?;
        match &shortcut.response_url {
            Some(url) => drop(self.try_respond(url, &reply).await),
            None => {
                self.post_privately(&shortcut.by, &shortcut.thread.channel, Some(&shortcut.thread.root), &reply).await;
            }
        }
        self.0.sender.flush(shortcut.thread.clone());
        Ok(InboxAnswer::NoAnswer)
    }
}
