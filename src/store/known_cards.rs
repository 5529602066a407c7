//! The open cards that this process has written lately, so that a press on one of them can be decided without asking for
//! it. They may be outdated: whoever decides on one notices that when the decision is written.

use std::{collections::HashMap, pin::pin, sync::Mutex, time::Duration};

use countersign_core::ids::ApprovalId;
use countersign_graph::{
    action::{ActionRecord, Status},
    store::{KnownCard, Posted, Sent},
};
use tokio::{sync::Notify, time::timeout};

/// The maximum number of cards.
const MAX_CARDS: usize = 256;

/// The maximum time to wait for the place of a card that is being posted. A press may arrive before Slack's answer to the
/// post does, which then takes moments.
const BEING_POSTED: Duration = Duration::from_millis(50);

/// The cards that this process knows.
#[derive(Debug, Default)]
pub(crate) struct KnownCards {
    /// Each card, with the place of its message once it is posted.
    cards: Mutex<HashMap<ApprovalId, (ActionRecord, Option<Posted>)>>,
    /// Notified when a place becomes known.
    placed: Notify,
}

impl KnownCards {
    /// Returns a card that is posted. Waits a moment if it is known, and its place is not.
    pub(crate) async fn get(&self, approval: &ApprovalId) -> Option<KnownCard> {
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
        timeout(BEING_POSTED, placed).await.ok().flatten()
    }

    /// Returns a card, or `Some(None)` if its place is not known.
    fn find(&self, approval: &ApprovalId) -> Option<Option<KnownCard>> {
        let known = self.cards.lock().ok()?;
        let (record, posted) = known.get(approval)?;
        Some(posted.clone().map(|posted| KnownCard { record: record.clone(), posted }))
    }

    /// Notes a record as it was written.
    pub(crate) fn on_written(&self, record: &ActionRecord) {
        let Ok(mut known) = self.cards.lock() else { return };
        if record.status != Status::Pending {
            known.remove(&record.approval);
        } else if let Some((known, _)) = known.get_mut(&record.approval) {
            known.clone_from(record);
        } else {
            if known.len() >= MAX_CARDS {
                known.clear();
            }
            known.insert(record.approval.clone(), (record.clone(), None));
        }
    }

    /// Notes the place of a message that was sent under a claim, before that is stored: the first press may arrive in the
    /// meantime.
    pub(crate) fn on_sent(&self, sent: &Sent) {
        self.set_place(sent, Option::Some);
        self.placed.notify_waiters();
    }

    /// Forgets the place of a message that was sent, since it is not known that the claim held until that was stored:
    /// another sender may have posted the card elsewhere.
    pub(crate) fn on_claim_lost(&self, sent: &Sent) {
        self.set_place(sent, |_| None);
    }

    fn set_place(&self, sent: &Sent, place: impl FnOnce(Posted) -> Option<Posted>) {
        if let Sent::Delivered(Some(posted)) = sent
            && let (Some(shown), Ok(mut known)) = (&posted.card, self.cards.lock())
            && let Some((_, known_place)) = known.get_mut(&shown.approval)
        {
            *known_place = place(posted.clone());
        }
    }
}
