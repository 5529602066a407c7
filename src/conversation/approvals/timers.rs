//! Handles the timers of an open card: reminder, escalation and expiry.

use countersign_core::ids::ApprovalId;
use countersign_graph::{
    action::{Decision, Status, Verdict},
    request::reply_in_thread,
    store::{ActionChange, ActionKey, AuditKind, Error, Seq, TimerChange},
};
use serde_json::json;

use super::{
    MAX_WRITE_ATTEMPTS, completing,
    inbox::{Approvals, InboxAnswer, lost_race},
    policy, replies,
};

impl Approvals {
    /// Closes a card that has expired.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn on_expiry(&self, approval: &ApprovalId, seq: Seq) -> Result<InboxAnswer, Error> {
        let Some(mut record) = self.store.action(ActionKey::ByApproval(approval)).await? else {
            return Ok(InboxAnswer::NoAnswer);
        };
        for _ in 0..MAX_WRITE_ATTEMPTS {
            if !record.status.is_open() {
                return Ok(InboxAnswer::NoAnswer); // decided
            }
            let decision = Decision { by: None, at: self.clock.now(), verdict: Verdict::Expired };
            match self.write(&record, decision, None, Some(seq)).await? {
                Ok(expired) => return Ok(InboxAnswer::Counted(expired.thread)),
                Err(current) => record = current, // such as one of several approvals
            }
        }
        Err(lost_race(record))
    }

    /// Reminds the thread that a card will expire soon, or, again and again, that one is still open.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn on_reminder(&self, approval: &ApprovalId, seq: Seq) -> Result<InboxAnswer, Error> {
        let Some(record) =
            self.store.action(ActionKey::ByApproval(approval)).await?.filter(|record| record.status.is_open())
        else {
            return Ok(InboxAnswer::NoAnswer);
        };
        let now = self.clock.now();
        if now >= record.expires_at {
            return Ok(InboxAnswer::NoAnswer); // too late, since the bot was not running
        }
        let mut changes = completing(&record.thread, seq);
        changes.audit.push(record.event(AuditKind::Reminded, now, None, json!({ "expires_at": record.expires_at })));
        let asked_by = Some(&record.requested_by).filter(|by| !self.people.is_us(by));
        let reminder = replies::reminder(&record, asked_by);
        // An email waits whether someone looks or not, so its card stays open, and one reminder is soon forgotten.
        let every = self.times.outside.remind_every;
        if record.expires_at.is_never() && !every.is_zero() {
            // With the time in its slot, each reminder is a message of its own, which notifies.
            changes.outbox.push(reply_in_thread(format!("remind:{}:{now}", record.id), now, reminder));
            changes.timers.push(TimerChange::Set {
                key: record.reminder_timer(),
                due: now + every,
                entry: json!({ "kind": "remind", "approval": record.approval }),
            });
        } else {
            changes.outbox.push(reply_in_thread(format!("remind:{}", record.id), now, reminder));
        }
        self.store.apply(&changes).await?;
        Ok(InboxAnswer::Counted(record.thread))
    }

    /// Lets more people decide after a long time without a decision.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn on_escalation(&self, approval: &ApprovalId, seq: Seq) -> Result<InboxAnswer, Error> {
        for _ in 0..MAX_WRITE_ATTEMPTS {
            match self.escalate(approval, seq).await {
                Err(Error::ActionMoved { .. }) => {} // another writer was faster: try again
                answer => return answer,
            }
        }
        self.escalate(approval, seq).await
    }

    async fn escalate(&self, approval: &ApprovalId, seq: Seq) -> Result<InboxAnswer, Error> {
        let Some(record) = self.store.action(ActionKey::ByApproval(approval)).await? else {
            return Ok(InboxAnswer::NoAnswer);
        };
        let shown = record;
        let mut record = self.with_current_policy(shown.clone());
        if !record.status.is_open() || record.escalated_at.is_some() || record.newcomers().is_empty() {
            return Ok(InboxAnswer::NoAnswer);
        }
        let now = self.clock.now();
        if now >= record.expires_at {
            return Ok(InboxAnswer::NoAnswer);
        }
        let expected = Some(record.revision);
        record = record.moved(Status::Pending).map_err(|error| Error::Corrupt { what: error.to_string() })?;
        record.escalated_at = Some(now);
        let mut changes = completing(&record.thread, seq);
        if record.digest != shown.digest {
            changes.audit.push(policy::change_event(&shown, &record, now));
        }
        let detail = json!({ "escalated_to": record.policy.escalation });
        changes.audit.push(record.event(AuditKind::Reminded, now, None, detail));
        changes.outbox.push(record.card_message(now));
        changes.outbox.push(reply_in_thread(format!("escalate:{}", record.id), now, replies::escalated(&record)));
        // The additional people are notified directly, as the original ones were.
        changes.timers.push(TimerChange::Set {
            key: record.notification_timer(),
            due: now,
            entry: json!({ "kind": "notify_approvers", "approval": record.approval }),
        });
        let thread = record.thread.clone();
        changes.actions.push(ActionChange { expected, record });
        self.store.apply(&changes).await?; // if another writer was faster, the caller tries again
        Ok(InboxAnswer::Counted(thread))
    }
}
