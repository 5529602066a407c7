//! Checks whether a decision is valid, and records it once.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`people`], [`groups`] | the rights of people, and the members of user groups and channels |
//! | [`policy`], [`envelope`] | the people who may decide, and stricter rules outside of limits agreed beforehand |
//! | [`clicks`], [`consent`] | button presses, and the typed words that mean yes or no |
//! | [`decide`] | a pure function from a record and a decision to the changes to write |
//! | [`inbox`] | applies decisions to the store: the first wins in one compare-and-set, all others get a reply |
//! | `old_cards` | buttons that should be gone: on copies of a card, and on one that was not redrawn |
//! | [`forms`] | windows that cards open |
//! | [`approvers`] | notifies approvers of a waiting card; finds the cards that they may approve now |
//! | [`withdraw`] | withdraws an open request |
//! | [`changed`] | notes on open cards that their message was edited or deleted |
//! | [`replies`] | the texts of the replies |
//!
//! *Architecture Invariant:* nothing here needs a thread's lease, sends a message or carries out a
//! change. A decision is stored, and the runtime continues from there.

mod answers;
pub mod approvers;
pub mod changed;
pub mod clicks;
pub mod consent;
pub mod decide;
pub mod envelope;
mod follow_ups;
pub mod forms;
pub mod groups;
pub mod inbox;
mod old_cards;
pub mod people;
pub mod policy;
pub mod replies;
mod timers;
mod typed;
pub mod withdraw;

use countersign_core::ids::{CommitId, ThreadId};
use countersign_graph::store::{Changes, Seq};

/// Returns the changes to a thread that also remove the interaction that they complete from the inbox.
pub fn completing(thread: &ThreadId, seq: impl Into<Option<Seq>>) -> Changes {
    let mut changes = Changes::new(CommitId::fresh(), thread.clone());
    changes.inbox_acks.extend(seq.into());
    changes
}

/// The maximum number of attempts of a write while other decisions about the action are stored in
/// between.
const MAX_WRITE_ATTEMPTS: usize = 8;
