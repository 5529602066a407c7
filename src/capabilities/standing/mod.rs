//! Standing approvals: a bounded number of changes of one kind that need not wait for a person, until a certain moment.
//!
//! A standing approval is asked for in words and granted by a card of its own, [`allow`]; [`revoke`] ends it, and
//! [`list::ListStandingApprovals`] shows which there are. [`grant`] is what one is and what it covers, [`book`] where all of
//! them are kept. The platform knows nothing of them: their effect is in our own store.
//!
//! *Architecture Invariant:* nothing that cannot be undone is covered but tests with simulated users, whose card says what
//! stays behind; nothing outside an envelope; and nothing that needs more people than granted it.

pub mod allow;
pub mod book;
pub mod grant;
pub mod list;
pub mod replies;
pub mod revoke;

use std::sync::Arc;

use self::book::Book;
use super::Registry;
use crate::{clock::Clock, services::upgrade::client::UpgradeClient};

/// The names of the changes, for settings.
pub const ACTIONS: [&str; 2] = [allow::NAME, revoke::NAME];

/// Adds what can be done with standing approvals.
pub fn add_to(registry: &mut Registry, book: &Arc<Book>, upgrade: Arc<UpgradeClient>, clock: Arc<dyn Clock>) {
    registry.actions.insert(allow::NAME, Arc::new(allow::AllowStanding(book.clone(), upgrade, clock)));
    registry.actions.insert(revoke::NAME, Arc::new(revoke::RevokeStanding(book.clone())));
    registry.tools.insert(list::NAME, Arc::new(list::ListStandingApprovals(book.clone())));
}
