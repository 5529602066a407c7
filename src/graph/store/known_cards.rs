//! The open cards that this process has written lately, so that a press on one of them can be decided without asking for
//! it. They may be outdated: whoever decides on one notices that when the decision is written.

use std::{collections::HashMap, pin::pin, sync::Mutex, time::Duration};

use countersign_core::ids::ApprovalId;
use tokio::{sync::Notify, time::timeout};

use super::{ActionChange, Posted, Sent};
use crate::action::{ActionRecord, Status};

/// The maximum number of cards.
const MAX_CARDS: usize = 256;

/// The maximum time to wait for the place of a card. A press may arrive before Slack's answer to the post, which then follows
/// within moments.
const BEING_POSTED: Duration = Duration::from_millis(50);

/// An open card, and the place of its message.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownCard {
    /// The record.
    pub record: ActionRecord,
    /// The place.
    pub posted: Posted,
}

/// The cards that this process knows.
#[derive(Debug, Default)]
pub struct KnownCards {
    /// Each card, with the place of its message once it is posted.
    cards: Mutex<HashMap<ApprovalId, (ActionRecord, Option<Posted>)>>,
    /// Notified when a place becomes known.
    placed: Notify,
}

impl KnownCards {
    /// Returns a card that is posted, as this process has written it. If the place of a known card is not known, this waits a
    /// moment for it, and forgets the card if that is in vain: another process has posted it, or nobody.
    pub async fn get(&self, approval: &ApprovalId) -> Option<KnownCard> {
        if let Some(card) = self.find(approval)? {
            return Some(card);
        }
        let placed = async {
            loop {
                let mut placed = pin!(self.placed.notified());
                placed.as_mut().enable(); // before looking, so that no place is missed
                if let Some(card) = self.find(approval)? {
                    return Some(card);
                }
                placed.await;
            }
        };
        let Ok(card) = timeout(BEING_POSTED, placed).await else {
            self.cards.lock().ok()?.remove(approval);
            return None;
        };
        card
    }

    /// Returns a card, or `Some(None)` if its place is not known.
    fn find(&self, approval: &ApprovalId) -> Option<Option<KnownCard>> {
        let known = self.cards.lock().ok()?;
        let (record, posted) = known.get(approval)?;
        Some(posted.clone().map(|posted| KnownCard { record: record.clone(), posted }))
    }

    /// Notes a record as it was written: a new card, or a change of a known one.
    pub fn on_written(&self, ActionChange { expected, record }: &ActionChange) {
        let Ok(mut known) = self.cards.lock() else { return };
        if record.status != Status::Pending || !record.proof.holds() {
            known.remove(&record.approval);
        } else if let Some((known, _)) = known.get_mut(&record.approval) {
            known.clone_from(record);
        } else if expected.is_none() {
            if known.len() >= MAX_CARDS {
                known.clear();
            }
            known.insert(record.approval.clone(), (record.clone(), None));
        }
    }

    /// Notes where a message was posted, also under a claim that holds before that is stored: the first press on a card may
    /// arrive in the meantime.
    pub fn on_posted(&self, posted: &Posted) {
        if let (Some(shown), Ok(mut known)) = (&posted.card, self.cards.lock())
            && let Some((_, place)) = known.get_mut(&shown.approval)
        {
            *place = Some(posted.clone());
            self.placed.notify_waiters();
        }
    }

    /// Notes the result of sending a message. If it was not stored under the claim of its sender, another one may have
    /// posted the card elsewhere, and the card is forgotten.
    pub fn on_finished(&self, sent: &Sent, is_ours: bool) {
        let Sent::Delivered(Some(posted)) = sent else { return };
        if is_ours {
            self.on_posted(posted);
        } else if let (Some(shown), Ok(mut known)) = (&posted.card, self.cards.lock()) {
            known.remove(&shown.approval);
        }
    }
}
