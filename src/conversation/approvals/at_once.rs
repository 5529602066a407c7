//! Decides a press in the write that would store it.
//!
//! This needs everything that the decision depends on to be known in this process: the card, the place of its message,
//! and the rights of the person. If anything is missing, or a person would be refused, the press is stored first and
//! handled like every other.

use countersign_core::ids::ApprovalId;
use countersign_graph::{
    action::{ActionRecord, Decision, Verdict},
    store::{Changes, KnownCard},
};

use super::{
    clicks::{CardButton, Click},
    decide::{DecisionMethod, decide},
    inbox::Approvals,
    policy,
};

impl Approvals {
    /// Returns the approval that a press makes, as the record after it and the changes that store it; `None` if the press
    /// has to be handled like every other. The record may be outdated: the changes are refused then.
    pub async fn approval_at_once(&self, click: &Click) -> Option<(ActionRecord, Changes)> {
        let approval = ApprovalId::try_from(click.key.clone()).ok()?;
        if click.button != CardButton::Approve || click.elsewhere {
            return None;
        }
        let KnownCard { record, posted } = self.store.known_card(&approval).await?;
        let now = self.clock.now();
        let is_on_its_card = click.message.as_ref() == Some(&posted.ts)
            && click.channel.as_ref() == Some(&posted.channel)
            && posted.channel == record.thread.channel;
        let is_open = record.status.is_open() && now < record.expires_at;
        if !is_on_its_card || !is_open || !record.proof.holds() {
            return None;
        }
        if self.with_current_policy(record.clone()).digest != record.digest {
            return None; // the card has to be redrawn
        }
        let person = self.groups.known_person(&record, &click.by, true)?;
        policy::may_approve(&record, &click.by, &person).ok()?;
        let decision = Decision { by: Some(click.by.clone()), at: now, verdict: Verdict::Approved };
        decide(&record, decision, Some(DecisionMethod::Button), None).ok()
    }
}
