//! Sends an undelivered message again, at a person's request.

use countersign_core::{ids::CommitId, reply::Reply};
use countersign_graph::store::{Changes, Error};

use super::Inbox;
use crate::{record::undelivered, runtime::interaction::SendAgain};

/// The maximum number of dead letters that are searched for the message.
const MAX_DEAD_LETTERS: usize = 1000;

impl Inbox {
    /// Sends an undelivered message again, and returns the reply to the person.
    pub(super) async fn send_again(&self, request: &SendAgain) -> Result<Reply, Error> {
        let deps = &self.0;
        let letters = deps.store.dead_letters(MAX_DEAD_LETTERS).await?;
        let Some((letter, thread, outgoing)) =
            undelivered::messages(&letters).find(|(_, _, outgoing)| outgoing.nonce.as_str() == request.key)
        else {
            return Ok(undelivered::nothing_to_send());
        };
        if !deps.store.send_again(&letter.id, deps.clock.now()).await? {
            return Ok(undelivered::nothing_to_send());
        }
        // The reports on the message are removed after it is sent. If it fails again, it is reported
        // again.
        let mut changes = Changes::new(CommitId::fresh(), thread.clone());
        changes.outbox.extend(undelivered::report_removals(outgoing, deps.clock.now()));
        deps.store.apply(&changes).await?;
        deps.sender.flush(thread.clone());
        Ok(undelivered::sending_again())
    }
}
