//! Saves a step that closes the open requests of its thread, because of something that happened elsewhere.
//!
//! A card may be decided between the read and the write. The write is then made again without that card
//! ([`super::conflicts`]): a decision that came first counts.

use countersign_core::{clock::Timestamp, ids::CommitId, reply::Text};

use super::{
    conflicts::Retried,
    perform::illegal,
    session::{Session, StepInfo, outgoing},
};
use crate::{
    checkpoint::Cursor,
    engine::{Engine, LeaseState},
    node::State,
    store::{Changes, Error, Outbound, Usage},
};

impl<S: State> Engine<S> {
    /// Saves a step that ends the run and closes the open requests. `extra` holds the step's other changes.
    pub(super) async fn save_closing(
        &self,
        session: &mut Session<S>,
        (node, began): (&str, Timestamp),
        extra: Changes,
        why: Text,
        usage: Option<Usage>,
    ) -> Result<LeaseState, Error> {
        session.checkpoint.cursor = Cursor::Idle;
        let mut retried = Retried::begin(session);
        loop {
            let now = self.clock.now();
            let mut changes = Changes { commit: CommitId::fresh(), ..extra.clone() };
            let open = self.open_in(session).await?;
            for record in &open {
                let closed = record.close_as_obsolete(&mut changes, why.clone(), now).map_err(illegal)?;
                session.checkpoint.suspended.remove(closed.question());
            }
            if session.checkpoint.reply_slots.said == 0 {
                changes.outbox.push(outgoing(session.checkpoint.reply_slots.slot(), now, Outbound::Remove));
            }
            let took = now.since(began);
            let info = StepInfo { node, next: "end", began, took, usage: usage.clone(), error: None, pause: false };
            let saved = self.save_step(session, info, changes, None).await;
            let open: Vec<_> = open.into_iter().map(|record| record.id).collect();
            if let Some(saved) = retried.settle(session, saved, &open) {
                return saved;
            }
        }
    }
}
