//! Removes messages that were posted twice. This happens if an attempt without an answer arrived
//! late, or if a process was suspended between its last check and its call until its claim had
//! expired.
//!
//! A process sets a timer when it posts a message that was tried before, or finds that its claim
//! has expired. When the timer is due, the thread is searched for messages with the same nonce, and
//! all but one are deleted. A second search some minutes later finds messages that arrived even
//! later. Usually none of this is necessary.

use std::time::Duration;

use countersign_core::{clock::Timestamp, ids::CommitId};
use countersign_graph::store::{ActionFilter, Changes, Claimed, Error, Outbound, Seq, TimerChange};
use countersign_slack::client_error;

use super::{Sender, attempt::earliest_attempt};
use crate::{
    approvals::completing,
    runtime::interaction::{Interaction, PossibleDuplicate},
};

/// The delay before each search for duplicates.
const SEARCH_DELAYS: [Duration; 2] = [Duration::from_secs(20), Duration::from_secs(300)];

/// The maximum number of a thread's actions that are searched for the one of a card.
const MAX_ACTIONS: usize = 50;

impl PossibleDuplicate {
    /// Returns the timer for the next search, relative to `now`; `None` after the last one.
    fn timer(&self, now: Timestamp) -> Option<TimerChange> {
        let due = now + *SEARCH_DELAYS.get(self.looks)?;
        Some(TimerChange::Set {
            key: format!("twins:{}", self.nonce),
            due,
            entry: Interaction::PossibleDuplicate(self.clone()).to_value(),
        })
    }
}

impl Sender {
    /// Sets a timer to search for duplicates of a message.
    pub(super) async fn schedule_duplicate_search(&self, claimed: &Claimed) {
        let Ok((channel, root)) = self.destination(claimed).await else { return };
        let duplicate = PossibleDuplicate {
            thread: claimed.thread.clone(),
            channel,
            root: root.cloned(),
            slot: claimed.outgoing.slot.clone(),
            nonce: claimed.outgoing.nonce.clone(),
            since: earliest_attempt(claimed.outgoing.not_before),
            looks: 0,
        };
        let mut changes = Changes::new(CommitId::fresh(), claimed.thread.clone());
        changes.timers.extend(duplicate.timer(self.0.clock.now()));
        self.apply_or_warn(&changes, "Cannot schedule the search for a duplicate message").await;
    }

    /// Repairs the effects of sending a message after its claim had expired: the message may be
    /// posted twice, or may have overwritten a newer one.
    pub(super) async fn repair_after_lost_claim(&self, claimed: &Claimed) {
        metrics::counter!("countersign_sent_after_claim_total").increment(1);
        tracing::warn!(thread.id = %claimed.thread, "A claim expired while its message was being sent");
        if claimed.posted.is_none() && !matches!(claimed.outgoing.body, Outbound::File { .. } | Outbound::Remove) {
            self.schedule_duplicate_search(claimed).await;
        }
        let Outbound::Card { .. } = &claimed.outgoing.body else { return };
        let filter = ActionFilter::of(&claimed.thread, &[], MAX_ACTIONS);
        let actions = self.0.store.actions(&filter).await.unwrap_or_default();
        let Some(record) = actions.iter().find(|record| Some(&record.slot) == claimed.outgoing.slot.as_ref()) else {
            return;
        };
        let mut changes = Changes::new(CommitId::fresh(), claimed.thread.clone());
        changes.outbox.push(record.redraw_order(self.0.clock.now())); // the action may change before this is stored
        self.apply_or_warn(&changes, "Cannot redraw a card that may be out of date").await;
    }

    /// Deletes all but one of the messages with a nonce. The one recorded for its slot is kept, or
    /// else the oldest. `seq` is the interaction that this completes.
    ///
    /// # Errors
    ///
    /// If the store or Slack isn't answering. The call can be repeated.
    pub async fn remove_duplicates(&self, duplicate: &PossibleDuplicate, seq: Seq) -> Result<(), Error> {
        let (slack, store) = (&self.0.slack, &self.0.store);
        let PossibleDuplicate { thread, channel, root, slot, nonce, since, looks } = duplicate;
        let unavailable = |error: client_error::Error| Error::Unavailable(Box::new(error));
        let found = match slack.find_all_by_nonce(channel, root.as_ref(), nonce, *since).await {
            Ok(found) => found,
            Err(error) if error.is_final() => Vec::new(),
            Err(error) => return Err(unavailable(error)),
        };
        let known = match slot {
            Some(slot) => store.posted(thread, slot).await?.map(|posted| posted.ts),
            None => None,
        };
        // The recorded message is the one that later edits reach.
        let kept = known.filter(|known| found.contains(known)).or_else(|| found.iter().min().cloned());
        for ts in found.iter().filter(|ts| Some(*ts) != kept.as_ref()) {
            match slack.delete_message(channel, ts).await {
                Ok(()) => {
                    metrics::counter!("countersign_twins_removed_total").increment(1);
                    tracing::warn!(thread.id = %thread, "Deleted the duplicate of a message");
                }
                Err(error) if error.is_final() => {}
                Err(error) => return Err(unavailable(error)),
            }
        }
        let next = PossibleDuplicate { looks: looks + 1, ..duplicate.clone() };
        let mut changes = completing(thread, seq);
        changes.timers.extend(next.timer(self.0.clock.now()));
        store.apply(&changes).await
    }
}
