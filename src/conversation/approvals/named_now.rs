//! Cards that somebody may approve by the policy of now.
//!
//! A card is found under whom its policy named when it was shown. Whom the settings name now may be somebody new, so the
//! newest open cards are looked through for those.

use std::cmp::Reverse;

use countersign_core::ids::UserId;
use countersign_graph::{
    action::{ActionRecord, Status},
    engine::PolicyFor,
    store::{ActionFilter, Error, Store},
};

use super::policy::{self, Person};

/// How many open cards are looked through.
const LOOKED_AT: usize = 200;

/// Somebody who asks what waits for them, wherever they are.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// Who.
    pub user: &'a UserId,
    /// The user groups of the policies that they are in.
    pub groups: &'a [String],
    /// Whether the settings of now name them anywhere.
    pub is_named: bool,
}

impl Named<'_> {
    /// Whether they may approve it, without being in its channel.
    pub fn may_approve(&self, record: &ActionRecord) -> bool {
        let person = Person { groups: self.groups.to_vec(), ..Person::default() };
        policy::may_approve(record, self.user, &person).is_ok()
    }

    /// What was found, and the other open cards that they may approve by the policy of now; the newest first.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub async fn with_those_of_now(
        &self,
        store: &dyn Store,
        policy_for: &PolicyFor,
        mut found: Vec<ActionRecord>,
    ) -> Result<Vec<ActionRecord>, Error> {
        let open = ActionFilter { thread: None, statuses: vec![Status::Pending], limit: LOOKED_AT };
        let open = if self.is_named { store.actions(&open).await? } else { Vec::new() };
        for record in open {
            let is_known = found.iter().any(|known| known.id == record.id);
            if !is_known && self.may_approve(&policy::as_of_now(policy_for, record.clone())) {
                found.push(record);
            }
        }
        found.sort_by_key(|record| Reverse(record.requested_at));
        Ok(found)
    }
}
