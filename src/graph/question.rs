//! The buttons of a question, which are taken away when it is answered.
//!
//! A question is answered by a click, which takes its buttons away at once, or in words. In the second case the step
//! that ends the run edits the question. A question that is still open after a message keeps its buttons.

use countersign_core::{
    clock::Timestamp,
    ids::{MessageTs, Slot},
    reply::Reply,
};
use serde::{Deserialize, Serialize};

use super::{
    engine::Engine,
    node::State,
    session::{Session, outgoing},
    store::{Changes, Error, Outbound, Outgoing},
};

/// A question that was shown with buttons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShownQuestion {
    /// The question in the state ([`State::open_question`]).
    pub asks: String,
    /// The slot of its message.
    pub slot: Slot,
    /// The message without the buttons.
    pub answered: Reply,
}

impl<S: State> Session<S> {
    /// Remembers the question that a reply asks with buttons, if the state has it open. It replaces an earlier
    /// question, whose buttons are taken away.
    pub(super) fn show_question(&mut self, changes: &mut Changes, slot: &Slot, reply: &Reply, now: Timestamp) {
        if !reply.asks() {
            return;
        }
        let Some(asks) = self.checkpoint.state.open_question() else { return };
        let answered = Reply { choices: Vec::new(), ..reply.clone() };
        let shown = ShownQuestion { asks, slot: slot.clone(), answered };
        if let Some(earlier) = self.checkpoint.question.replace(Box::new(shown)) {
            changes.outbox.push(earlier.edit(now));
        }
    }

    /// Takes the buttons away from the question that was shown, if the state no longer has it open.
    pub(super) fn close_question(&mut self, changes: &mut Changes, now: Timestamp) {
        let open = self.checkpoint.state.open_question();
        if let Some(answered) = self.checkpoint.question.take_if(|shown| open.as_ref() != Some(&shown.asks)) {
            changes.outbox.push(answered.edit(now));
        }
    }
}

impl ShownQuestion {
    /// Returns the edit that takes the buttons away.
    fn edit(self, now: Timestamp) -> Outgoing {
        outgoing(self.slot, now, Outbound::Reply { reply: self.answered })
    }
}

impl<S: State> Engine<S> {
    /// Forgets the question that was shown if the message at `ts` is the question itself: a person clicked one of its
    /// buttons, which took them away.
    pub(super) async fn note_click_on_question(&self, session: &mut Session<S>, ts: &MessageTs) -> Result<(), Error> {
        let Some(shown) = &session.checkpoint.question else { return Ok(()) };
        let posted = self.store.posted(&session.lease.thread, &shown.slot).await?;
        if posted.is_some_and(|posted| posted.ts == *ts) {
            session.checkpoint.question = None;
        }
        Ok(())
    }
}
