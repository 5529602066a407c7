//! Cards that a person may approve by the current policy.
//!
//! A card is found under the approvers that its policy named when it was shown. The current settings may name others,
//! so the newest open cards are searched for those.

use std::cmp::Reverse;

use countersign_core::ids::UserId;
use countersign_graph::{
    action::{ActionRecord, Status},
    engine::PolicyFor,
    store::{ActionFilter, Error, Store},
};

use super::policy::{self, Person};

/// The number of open cards that are searched.
const MAX_OPEN_CARDS: usize = 200;

/// A person who asks what waits for them, in any channel.
#[derive(Clone, Copy, Debug)]
pub struct NamedApprover<'a> {
    /// The person's user id.
    pub user: &'a UserId,
    /// The user groups named in policies that the person is in.
    pub groups: &'a [String],
    /// True if the current settings name the person anywhere.
    pub is_named: bool,
}

impl NamedApprover<'_> {
    /// Returns true if the person may approve it, without being in its channel.
    pub fn may_approve(&self, record: &ActionRecord) -> bool {
        let person = Person { groups: self.groups.to_vec(), ..Person::default() };
        policy::may_approve(record, self.user, &person).is_ok()
    }

    /// Returns `found` and the other open cards that the person may approve by the current policy, newest first.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub async fn with_current_cards(
        &self,
        store: &dyn Store,
        policy_for: &PolicyFor,
        mut found: Vec<ActionRecord>,
    ) -> Result<Vec<ActionRecord>, Error> {
        let open = ActionFilter { thread: None, statuses: vec![Status::Pending], limit: MAX_OPEN_CARDS };
        let open = if self.is_named { store.actions(&open).await? } else { Vec::new() };
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
