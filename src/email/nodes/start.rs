//! The first node of every run: it leads to the node that the cause of the run needs, and attaches a long mail.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_core::reply::{Attachment, Reply};
use countersign_graph::node::{Context, Node, NodeError, Step};
use countersign_mail::Mail;

use super::{
    super::{
        book::MailStatus,
        card::shown_text,
        deps::Deps,
        replies,
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
        if whole.text.trim() == shown_text(&whole) {
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
        let mut step = Step::go(state, if is_stuck { Review::NAME } else { Classify::NAME });
        step.says.extend(says);
        Ok(step)
    }
}
