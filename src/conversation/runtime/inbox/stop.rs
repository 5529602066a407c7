//! Handles “stop”, and the words that ask for that only while something is being done.

use countersign_graph::store::{Error, Seq};

use super::Inbox;
use crate::{
    approvals::inbox::InboxAnswer,
    runtime::{
        interaction::Interaction,
        stopping::{Stop, StopOutcome},
    },
};

impl Inbox {
    /// Returns the interaction that words such as “wait, cancel it” are where there is no work to
    /// stop; `None` if the interaction is what it seems.
    pub(super) async fn meaning_here(&self, interaction: &Interaction) -> Result<Option<Interaction>, Error> {
        let Interaction::Stop(stop) = interaction else { return Ok(None) };
        Ok(self.0.stopping.typed_answer(stop).await?.map(Interaction::TypedAnswer))
    }

    /// Ends the work in a thread, or passes the words on to the assistant.
    pub(super) async fn stop(&self, stop: &Stop, seq: Seq) -> Result<InboxAnswer, Error> {
        Ok(match self.0.stopping.on_stop(stop, seq).await? {
            StopOutcome::PassedOn(thread) => InboxAnswer::PassedOn(thread),
            StopOutcome::Stopped { thread, reply } => {
                if let Some(reply) = &reply {
                    self.post_privately(&stop.by, &stop.thread.channel, Some(&stop.thread.root), reply).await;
                }
                thread.map_or(InboxAnswer::NoAnswer, InboxAnswer::Counted)
            }
        })
    }
}
