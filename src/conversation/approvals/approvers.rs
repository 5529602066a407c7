//! Notifies the approvers named by a card's policy with direct messages, and finds the cards that they may approve.
//!
//! The write that posts the card also sets a timer that is due immediately. It puts
//! [`Interaction::NotifyApprovers`] into the inbox. When this is handled, one write adds a message
//! for each person to the thread's outbox, after the card and in a slot of its own, and records the
//! people who were notified. A crash therefore neither loses nor repeats a message. When the card
//! is decided, new messages in the same slots edit the old ones.
//!
//! Cards are indexed by the approvers that their policy named when they were shown. Since the current settings may name
//! others, the newest open cards are searched as well ([`NamedApprover::with_current_cards`]).
//!
//! [`Interaction::NotifyApprovers`]: crate::runtime::interaction::Interaction::NotifyApprovers

use std::{cmp::Reverse, collections::BTreeSet};

use countersign_core::{
    cause,
    clock::Timestamp,
    ids::{ApprovalId, ChannelId, UserId},
};
use countersign_graph::{
    action::{ActionRecord, Approver, Status},
    engine::PolicyFor,
    store::{ActionChange, ActionFilter, ActionKey, Changes, Error, Seq, Store},
};
use countersign_slack::client_error;

use super::{
    MAX_WRITE_ATTEMPTS, completing,
    inbox::{Approvals, InboxAnswer},
    policy::{self, Person},
};

/// The maximum number of people who get a message. Approvers named as users come before members of
/// groups.
const MAX_NOTIFIED: usize = 10;

impl Approvals {
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
            let Some(record) = self.store.action(ActionKey::ByApproval(approval)).await? else {
                return Ok(InboxAnswer::NoAnswer);
            };
            if record.status != Status::Pending || record.expires_at <= self.clock.now() {
                return Ok(InboxAnswer::NoAnswer);
            }
            let people = self.people_to_notify(&record).await?;
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
    async fn people_to_notify(&self, record: &ActionRecord) -> Result<Vec<UserId>, Error> {
        let (mut people, mut members) = (Vec::new(), Vec::new());
        for approver in record.approvers() {
            match approver {
                Approver::User(user) => people.push(user.clone()),
                Approver::Group(group) => members.extend(self.members_to_notify(group).await?),
                Approver::Channel | Approver::Requester => {}
            }
        }
        // Named users come first, since only the first few are notified.
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

    async fn members_to_notify(&self, group: &str) -> Result<Vec<UserId>, Error> {
        use client_error::Error::{NoAnswer, NotSent, RateLimited};
        match self.groups.members_now(group).await {
            Ok(members) => Ok(members),
            // A group that Slack refuses to show is refused each time; anything else may be over at the next attempt.
            Err(error @ (NoAnswer(_) | NotSent | RateLimited { .. })) => Err(Error::Unavailable(Box::new(error))),
            Err(error) => {
                tracing::error!(
                    error = cause::chain(&error),
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
    let mut changes = completing(&record.thread, seq);
    notified.notified = people;
    changes.outbox = notified.notices(now);
    notified.notified.splice(0..0, record.notified.iter().cloned());
    changes.actions.push(ActionChange { expected: Some(record.revision), record: notified });
    Ok(changes)
}

/// The maximum number of open cards that are searched.
const MAX_OPEN_CARDS: usize = 200;

/// A person who wants to see the cards that wait for them in any channel.
#[derive(Clone, Copy, Debug)]
pub struct NamedApprover<'a> {
    /// The person's user id.
    pub user: &'a UserId,
    /// The person's user groups, as far as policies name them.
    pub groups: &'a [String],
    /// True if the current settings name the person anywhere.
    pub is_named: bool,
    /// The channels with open cards of which the person is known to be a member.
    pub channels: &'a BTreeSet<ChannelId>,
}

impl NamedApprover<'_> {
    /// Returns true if the person may approve the action outside of its channel.
    pub fn may_approve(&self, record: &ActionRecord) -> bool {
        let in_channel = self.channels.contains(&record.thread.channel);
        let person = Person { groups: self.groups.to_vec(), in_channel, ..Person::default() };
        policy::may_approve(record, self.user, &person).is_ok()
    }

    /// Returns the cards in `found` and all others that the person may approve under the current
    /// policy, newest first.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn with_current_cards(
        &self,
        store: &dyn Store,
        policy_for: &PolicyFor,
        mut found: Vec<ActionRecord>,
    ) -> Result<Vec<ActionRecord>, Error> {
        let open = ActionFilter::all(&[Status::Pending], MAX_OPEN_CARDS);
        let may_find_more = self.is_named || !self.channels.is_empty();
        let open = if may_find_more { store.actions(&open).await? } else { Vec::new() };
        for record in open {
            let is_known = found.iter().any(|known| known.id == record.id);
            if !is_known && self.may_approve(&policy::with_current_policy(policy_for, record.clone())) {
                found.push(record);
            }
        }
        found.sort_by_key(|record| Reverse(record.requested_at));
        Ok(found)
    }
}
