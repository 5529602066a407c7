//! Buttons that should be gone: on a second copy of a card, and on a card that was decided but not redrawn.

use std::time::Duration;

use countersign_core::{ids::CommitId, reply::Reply};
use countersign_graph::{
    action::ActionRecord,
    store::{Changes, Error},
};

use super::{
    clicks::Click,
    inbox::{Approvals, InboxAnswer},
};

/// The time after a decision in which its card is assumed to be redrawn without further action.
const REDRAW_GRACE: Duration = Duration::from_secs(10);

impl Approvals {
    /// Returns true if the button is on a message other than the card's own.
    pub(super) async fn is_copy(&self, record: &ActionRecord, click: &Click) -> Result<bool, Error> {
        let posted = self.store.posted(&record.thread, &record.slot).await?;
        Ok(match (posted, &click.message) {
            (Some(posted), Some(message)) => posted.ts != *message || Some(&posted.channel) != click.channel.as_ref(),
            _ => false,
        })
    }

    /// Deletes a copy of a card in its own thread, which Slack posted twice. Returns true if it was
    /// deleted.
    pub(super) async fn delete_copy(&self, record: &ActionRecord, click: &Click) -> bool {
        let thread = &record.thread;
        let is_here = click.channel.as_ref() == Some(&thread.channel) && click.thread.as_ref() == Some(&thread.root);
        match click.message.as_ref().filter(|_| is_here) {
            Some(message) => self.slack.delete_message(&thread.channel, message).await.is_ok(),
            None => false,
        }
    }

    /// Redraws a card that still has buttons some time after it was decided, since Slack may have
    /// refused the edit.
    pub(super) async fn redraw(&self, record: &ActionRecord, reply: Reply) -> Result<InboxAnswer, Error> {
        let now = self.clock.now();
        let decided = record.decisions.last().map_or(record.requested_at, |decision| decision.at);
        if now.since(decided) < REDRAW_GRACE {
            return Ok(InboxAnswer::Refused(reply)); // the edit may still arrive
        }
        let mut changes = Changes::new(CommitId::fresh(), record.thread.clone());
        changes.outbox.push(record.redraw_order(now));
        self.store.apply(&changes).await?;
        Ok(InboxAnswer::Redrawn { thread: record.thread.clone(), reply })
    }
}
