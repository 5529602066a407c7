//! Saves a step that closes the open requests of its thread, because of something that happened elsewhere.
//!
//! As in [`super::ask`], a card may be decided between the read and the write. Then the whole write is refused and made
//! again without that card: a decision that came first counts.

use countersign_core::{clock::Timestamp, ids::CommitId, reply::Text};

use super::{
    checkpoint::Cursor,
    engine::{Engine, LeaseState},
    node::State,
    perform::illegal,
    session::{Session, StepInfo, outgoing},
    store::{Changes, Error, Outbound, Usage},
};

/// The maximum number of retries of a write that conflicts with decisions. Each conflict means that at least one decision
/// was stored.
const MAX_CONFLICTS: u32 = 16;

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
        let before = session.checkpoint.clone();
        let mut race = 0;
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
            match self.save_step(session, info, changes, None).await {
                Err(Error::ActionMoved { id, .. })
                    if open.iter().any(|record| record.id == id) && race < MAX_CONFLICTS =>
                {
                    race += 1;
                    tracing::info!(action.id = %id, race, "A card was decided in the meantime; retrying the write");
                    session.checkpoint = before.clone();
                }
                saved => return saved,
            }
        }
    }
}
