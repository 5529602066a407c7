//! Finds the cards that a person may approve under the current policy.
//!
//! Cards are indexed by the approvers that their policy named when they were shown. Since the
//! current settings may name others, the newest open cards are searched as well.

use std::{cmp::Reverse, collections::BTreeSet};

use countersign_core::ids::{ChannelId, UserId};
use countersign_graph::{
    action::{ActionRecord, Status},
    engine::PolicyFor,
    store::{ActionFilter, Error, Store},
};

use super::policy::{self, Person};

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
        let open = ActionFilter { thread: None, statuses: vec![Status::Pending], limit: MAX_OPEN_CARDS };
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
