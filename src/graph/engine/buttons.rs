//! The buttons below a reply, which are taken away once nothing waits for them.
//!
//! The buttons of a question go when it is answered. A click takes them away at once; after an answer in words, the step
//! that ends the run edits the message. A question that is still open after a message keeps its buttons. The state says
//! what the buttons of a reply wait for ([`State::buttons_wait_for`]), so a graph may keep others as long as they apply.

use countersign_core::{
    clock::Timestamp,
    ids::{MessageTs, Slot},
    reply::Reply,
};

use super::session::{Session, outgoing};
use crate::{
    checkpoint::ReplyWithButtons,
    engine::Engine,
    node::State,
    store::{Changes, Error, Outbound, Outgoing},
};

/// The maximum number of replies with buttons that are remembered. The oldest loses its buttons.
const MAX_REPLIES: usize = 8;

impl ReplyWithButtons {
    /// Returns the edit that takes the buttons away.
    fn without_buttons(self, now: Timestamp) -> Outgoing {
        let reply = Reply { choices: Vec::new(), ..self.reply };
        outgoing(self.slot, now, Outbound::Reply { reply })
    }
}

impl<S: State> Session<S> {
    /// Remembers a reply if something waits for its buttons. An earlier reply whose buttons wait for the same loses
    /// them.
    pub(super) fn remember_buttons(&mut self, changes: &mut Changes, slot: &Slot, reply: &Reply, now: Timestamp) {
        if reply.choices.is_empty() {
            return;
        }
        let Some(wait_for) = self.checkpoint.state.buttons_wait_for(reply) else { return };
        let all = &mut self.checkpoint.with_buttons;
        let replaced = all.iter().position(|earlier| earlier.wait_for == wait_for);
        if let Some(at) = replaced.or((all.len() >= MAX_REPLIES).then_some(0)) {
            changes.outbox.push(all.remove(at).without_buttons(now));
        }
        all.push(ReplyWithButtons { wait_for, slot: slot.clone(), reply: reply.clone() });
    }

    /// Takes the buttons away for which nothing waits any more.
    pub(super) fn take_buttons_away(&mut self, changes: &mut Changes, now: Timestamp) {
        let state = &self.checkpoint.state;
        let is_over =
            |shown: &mut ReplyWithButtons| state.buttons_wait_for(&shown.reply).as_ref() != Some(&shown.wait_for);
        let over = self.checkpoint.with_buttons.extract_if(.., is_over);
        changes.outbox.extend(over.map(|shown| shown.without_buttons(now)));
    }
}

impl<S: State> Engine<S> {
    /// Forgets the question that is the message at `ts`: a person clicked one of its buttons, which took them away.
    pub(super) async fn note_click_on_question(&self, session: &mut Session<S>, ts: &MessageTs) -> Result<(), Error> {
        for (at, shown) in session.checkpoint.with_buttons.iter().enumerate() {
            let posted = match shown.reply.asks() {
                true => self.store.posted(&session.lease.thread, &shown.slot).await?,
                false => None,
            };
            if posted.is_some_and(|posted| posted.ts == *ts) {
                session.checkpoint.with_buttons.remove(at);
                break;
            }
        }
        Ok(())
    }
}
