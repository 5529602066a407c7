//! The open cards that this process has written lately, so that a press on one of them can be decided without asking for
//! it. They may be outdated: whoever decides on one notices that when the decision is written.

use std::{collections::HashMap, sync::Mutex};

use countersign_core::ids::ApprovalId;
use countersign_graph::{
    action::{ActionRecord, Status},
    store::{KnownCard, Posted, Sent},
};

/// The maximum number of cards.
const MAX_CARDS: usize = 256;

/// The cards, each with the place of its message once it is posted.
#[derive(Debug, Default)]
pub(crate) struct KnownCards(Mutex<HashMap<ApprovalId, (ActionRecord, Option<Posted>)>>);

impl KnownCards {
    /// Returns a card that is posted.
    pub(crate) fn get(&self, approval: &ApprovalId) -> Option<KnownCard> {
        let known = self.0.lock().ok()?;
        let (record, posted) = known.get(approval)?;
        Some(KnownCard { record: record.clone(), posted: posted.clone()? })
    }

    /// Notes a record as it was written.
    pub(crate) fn on_written(&self, record: &ActionRecord) {
        let Ok(mut known) = self.0.lock() else { return };
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
    }

    /// Forgets the place of a message that was sent, since it is not known that the claim held until that was stored:
    /// another sender may have posted the card elsewhere.
    pub(crate) fn on_claim_lost(&self, sent: &Sent) {
        self.set_place(sent, |_| None);
    }

    fn set_place(&self, sent: &Sent, place: impl FnOnce(Posted) -> Option<Posted>) {
        if let Sent::Delivered(Some(posted)) = sent
            && let (Some(shown), Ok(mut known)) = (&posted.card, self.0.lock())
            && let Some((_, known_place)) = known.get_mut(&shown.approval)
        {
            *known_place = place(posted.clone());
        }
    }
}
