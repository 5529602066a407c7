//! The node that closes a mail which a person answered with a mail program: its card can send nothing any more.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    reply::{Reply, Text},
};
use countersign_graph::node::{Context, Node, NodeError, Step};
use countersign_mail::Handled;
use serde_json::json;

use super::{
    super::{
        deps::Deps,
        heading::{self, HeadingOrder},
        labels::{self, LabelOrder},
        register::{Entry, MailStatus},
        replies,
        state::{Cause, MailState},
    },
    note_step,
    review::needs_review,
    update_entry,
};

/// The node that notes an answer of a person.
pub(in super::super) struct Answered(Arc<Deps>);

impl Answered {
    /// The name of the node.
    pub(in super::super) const NAME: &'static str = "answered";

    /// Creates the node.
    pub(in super::super) fn new(deps: Arc<Deps>) -> Self {
        Self(deps)
    }
}

#[async_trait]
impl Node<MailState> for Answered {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn targets(&self) -> &'static [&'static str] {
        &[]
    }

    async fn run(&self, mut state: MailState, context: &Context) -> Result<Step<MailState>, NodeError> {
        let (Cause::Answered(answer), Some(mail)) = (state.turn.cause.clone(), state.email.clone()) else {
            return Ok(Step::end(state));
        };
        note_step(&mut state, &self.0, context, Self::NAME, json!({ "action": "answered_by_hand" }));
        state.asked_for_changes = None;
        state.is_answered = true;
        let (now, steps) = (context.now, state.steps.clone());
        update_entry(&self.0, &state, |entry| {
            entry.steps.clone_from(&steps);
            settle(entry, now);
            true
        })
        .await;
        let label = LabelOrder { mail: mail.id, handled: Handled::Answered };
        let why: Text = replies::answered_by_hand(&answer);
        let said = Reply::text(why.clone().plain(".")).hint("I won't send a reply to this email.");
        let heading = HeadingOrder::body(&label.mail);
        let step = Step::close(state, why).say(said).post(labels::CHANNEL, label.into_body());
        Ok(step.post(heading::CHANNEL, heading))
    }
}

/// Makes an entry answered, from any status.
fn settle(entry: &mut Entry, now: Timestamp) {
    needs_review(entry, now);
    entry.move_to(MailStatus::Sent, now);
}
