//! The first node of every run: it leads to the node that the cause of the run needs, and attaches a long mail.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    reply::{Attachment, Reply},
};
use countersign_graph::node::{Context, Node, NodeError, Step};
use countersign_mail::{Mail, MailId};

use super::{
    super::{
        card::shown_text,
        deps::Deps,
        heading::{self, HeadingOrder},
        register::MailStatus,
        replies,
        rules::needs_no_answer,
        send,
        state::{Cause, MailState},
    },
    answered::Answered,
    classify::Classify,
    close::Close,
    review::Review,
    talk::Talk,
    update_entry,
};

/// The first node.
pub(in super::super) struct Start(Arc<Deps>);

impl Start {
    /// The name of the node.
    pub(in super::super) const NAME: &'static str = "start";

    /// Creates the node.
    pub(in super::super) fn new(deps: Arc<Deps>) -> Self {
        Self(deps)
    }

    /// Returns the whole text of a mail as a file, if it is longer than a card shows.
    async fn long_text(&self, state: &MailState) -> Option<Reply> {
        let whole = self.whole(state).await?;
        if whole.text.trim().is_empty() || whole.text.trim() == shown_text(&whole) {
            return None;
        }
        let (name, title, bytes) = ("email.txt".to_owned(), "The whole email".to_owned(), whole.text.into_bytes());
        Some(replies::long_mail().file(Attachment { name, title, alt: String::new(), bytes }))
    }

    /// Returns true if the mail's run has ended after all.
    async fn has_ended(&self, mail: &Mail) -> bool {
        match self.0.book.entry(&mail.id).await {
            Ok(entry) => entry.is_some_and(|entry| entry.status != MailStatus::Processing),
            Err(error) => {
                tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot read the list of mails");
                false
            }
        }
    }

    /// Puts a mail away that needs no answer: it gets no class and no draft.
    async fn put_away(&self, state: MailState, mail: &Mail, what: &str, now: Timestamp) -> Step<MailState> {
        update_entry(&self.0, &state, |entry| {
            entry.quiet = Some(what.to_owned());
            entry.move_to(MailStatus::Rejected, now)
        })
        .await;
        let can_be_answered = mail.sender().is_some_and(|sender| !self.0.account.is_us(&sender.address));
        let step = Step::end(state).say(replies::needs_no_answer(what, mail, can_be_answered));
        step.post(heading::CHANNEL, HeadingOrder::body(&mail.id))
    }

    /// Tells the thread about a newer mail in the conversation. If a draft waits for a decision, its card is shown again,
    /// and says so.
    async fn newer(&self, state: MailState, newer: &MailId, context: &Context) -> Step<MailState> {
        let entry = self.0.book.entry(newer).await.unwrap_or_else(|error| {
            tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot read the list of mails");
            None
        });
        let (Some(mail), false) = (&state.email, state.is_answered) else { return Step::end(state) };
        let order = HeadingOrder::body(&mail.id);
        let is_on_card = send::on_card(&context.open).is_some();
        let said = entry.map(|entry| replies::newer(&entry, is_on_card));
        let mut step = if is_on_card { Step::go(state, Review::NAME) } else { Step::end(state) };
        step.says.extend(said);
        step.post(heading::CHANNEL, order)
    }

    /// Reads the whole mail from the store.
    async fn whole(&self, state: &MailState) -> Option<Mail> {
        let hash = state.stored.as_ref()?;
        match self.0.book.store().get_blob(hash).await {
            Ok(bytes) => serde_json::from_slice(&bytes?).ok(),
            Err(error) => {
                tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot read a stored mail");
                None
            }
        }
    }
}

#[async_trait]
impl Node<MailState> for Start {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn targets(&self) -> &'static [&'static str] {
        &[Answered::NAME, Classify::NAME, Review::NAME, Talk::NAME, Close::NAME]
    }

    async fn run(&self, mut state: MailState, context: &Context) -> Result<Step<MailState>, NodeError> {
        let now = context.now;
        state.adopt_draft(&context.open);
        match &state.turn.cause {
            Cause::Said(_) => return Ok(Step::go(state, Talk::NAME)),
            Cause::Settled { .. } => return Ok(Step::go(state, Close::NAME)),
            Cause::Answered(_) => return Ok(Step::go(state, Answered::NAME)),
            Cause::Newer(newer) => {
                let newer = newer.clone();
                return Ok(self.newer(state, &newer, context).await);
            }
            Cause::Copied(copy) => {
                let reply = replies::copied(copy);
                return Ok(Step::end(state).say(reply));
            }
            Cause::Nothing => return Ok(Step::end(state)),
            Cause::Request { .. } if state.asks_for_spam() => return Ok(Step::go(state, Review::NAME)),
            Cause::Request { .. } => {
                update_entry(&self.0, &state, |entry| entry.move_to(MailStatus::Processing, now)).await;
                return Ok(Step::go(state, Review::NAME));
            }
            Cause::Mail | Cause::Unreadable | Cause::Stuck => {}
        }
        let Some(mail) = state.email.clone() else {
            return Ok(Step::end(state).say(replies::unreadable()));
        };
        let is_stuck = state.turn.cause == Cause::Stuck;
        if is_stuck && self.has_ended(&mail).await {
            return Ok(Step::end(state));
        }
        update_entry(&self.0, &state, |entry| entry.move_to(MailStatus::Processing, now)).await;
        if is_stuck {
            state.note_failure("run", "an earlier run ended without a result");
        }
        let mut says = Vec::new();
        if !std::mem::replace(&mut state.is_shown, true) {
            says.extend(self.long_text(&state).await);
            says.extend(is_stuck.then(|| replies::not_classified(self.0.writer.is_some())));
        }
        if let Some(what) = needs_no_answer(&mail, |address| self.0.account.is_us(address)) {
            let mut step = self.put_away(state, &mail, &what, now).await;
            step.says.extend(says);
            return Ok(step);
        }
        let mut step = Step::go(state, if is_stuck { Review::NAME } else { Classify::NAME });
        step.says.extend(says);
        Ok(step)
    }
}
