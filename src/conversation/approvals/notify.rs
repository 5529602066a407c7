//! Notifies the approvers named by a card's policy with direct messages.
//!
//! The write that posts the card also sets a timer that is due immediately. It puts
//! [`Interaction::NotifyApprovers`] into the inbox. When this is handled, one write adds a message
//! for each person to the thread's outbox, after the card and in a slot of its own, and records the
//! people who were notified. A crash therefore neither loses nor repeats a message. When the card
//! is decided, new messages in the same slots edit the old ones.
//!
//! [`Interaction::NotifyApprovers`]: crate::runtime::interaction::Interaction::NotifyApprovers

use std::sync::Arc;

use countersign_core::{
    clock::{Clock, Timestamp},
    ids::{ApprovalId, CommitId, UserId},
};
use countersign_graph::{
    action::{ActionRecord, Approver, Status},
    store::{ActionChange, Changes, Error, Seq, Store},
};
use countersign_slack::client_error;

use super::{MAX_WRITE_ATTEMPTS, groups::Groups, inbox::InboxAnswer};

/// The maximum number of people who get a message. Approvers named as users come before members of
/// groups.
pub const MAX_NOTIFIED: usize = 10;

/// The service that sends these messages.
#[derive(Clone)]
pub struct ApproverNotices {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    groups: Groups,
}

impl ApproverNotices {
    /// Creates a service for the cards in this store, with the members of `groups`.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, groups: Groups) -> Self {
        Self { store, clock, groups }
    }

    /// Notifies everyone named by a card's policy who was not notified before, if the card is still
    /// open.
    ///
    /// # Errors
    ///
    /// If the store or Slack isn't answering, or other writers keep changing the action. The call
    /// can be repeated.
    pub async fn notify(&self, approval: &ApprovalId, seq: Seq) -> Result<InboxAnswer, Error> {
        let mut moved = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let Some(record) = self.store.action_by_approval(approval).await? else { return Ok(InboxAnswer::NoAnswer) };
            if record.status != Status::Pending || record.expires_at <= self.clock.now() {
                return Ok(InboxAnswer::NoAnswer);
            }
            let people = self.people(&record).await?;
            if people.is_empty() {
                return Ok(InboxAnswer::NoAnswer);
            }
            let changes = notification_changes(&record, people, self.clock.now(), seq)?;
            match self.store.apply(&changes).await {
                Ok(()) => return Ok(InboxAnswer::Counted(record.thread)),
                Err(error @ Error::ActionMoved { .. }) => moved = Some(error),
                Err(error) => return Err(error),
            }
        }
        moved.map_or(Ok(InboxAnswer::NoAnswer), Err)
    }

    /// Returns the people who are named and were not notified yet, except the requester and
    /// editors.
    async fn people(&self, record: &ActionRecord) -> Result<Vec<UserId>, Error> {
        let (mut people, mut members) = (Vec::new(), Vec::new());
        for approver in record.approvers() {
            match approver {
                Approver::User(user) => people.push(user.clone()),
                Approver::Group(group) => members.extend(self.members(group).await?),
                Approver::Channel | Approver::Requester => {}
            }
        }
        people.append(&mut members);
        // People who are not in one of the additional required lists cannot decide.
        let cannot_decide = |person: &UserId| {
            let own = Approver::User(person.clone());
            let by_name = |approver: &Approver| matches!(approver, Approver::User(_) | Approver::Requester);
            let excludes = |list: &Vec<Approver>| !list.contains(&own) && list.iter().all(by_name);
            record.policy.also.iter().any(excludes) && !record.brought_in().contains(&own)
        };
        let mut new = Vec::new();
        for person in people {
            let is_skipped = cannot_decide(&person)
                || record.is_request_of(&person)
                || record.notified.contains(&person)
                || new.contains(&person);
            if !is_skipped && record.notified.len() + new.len() < MAX_NOTIFIED {
                new.push(person);
            }
        }
        Ok(new)
    }

    async fn members(&self, group: &str) -> Result<Vec<UserId>, Error> {
        use client_error::Error::{NoAnswer, NotSent, RateLimited};
        match self.groups.members_now(group).await {
            Ok(members) => Ok(members),
            Err(error @ (NoAnswer(_) | NotSent | RateLimited { .. })) => Err(Error::Unavailable(Box::new(error))),
            Err(error) => {
                tracing::error!(
                    error = countersign_core::cause::chain(&error),
                    group,
                    "Cannot look up a user group, so its members are not notified"
                );
                Ok(Vec::new())
            }
        }
    }
}

/// Returns the write that also notifies these people.
fn notification_changes(
    record: &ActionRecord,
    people: Vec<UserId>,
    now: Timestamp,
    seq: Seq,
) -> Result<Changes, Error> {
    let moved = record.moved(Status::Pending);
    let mut notified = moved.map_err(|error| Error::Corrupt { what: format!("action {}: {error}", record.id) })?;
    let mut changes = Changes::new(CommitId::fresh(), record.thread.clone());
    changes.inbox_acks.push(seq);
    notified.notified = people;
    changes.outbox = notified.notices(now);
    notified.notified.splice(0..0, record.notified.iter().cloned());
    changes.actions.push(ActionChange { expected: Some(record.revision), record: notified });
    Ok(changes)
}
