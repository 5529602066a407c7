//! The check that a decision counts, and the write that makes it count once.
//!
//! | room | does |
//! | --- | --- |
//! | [`people`], [`groups`] | who has which rights, and the members of user groups |
//! | [`policy`], [`envelope`] | who may decide: more strictly outside of the limits agreed beforehand |
//! | [`clicks`], [`consent`] | button presses, and the typed words that mean yes or no |
//! | [`decide`] | pure: a record and a decision give the changes to write |
//! | [`inbox`] | joins them with the store: the first wins in one compare-and-set, everyone else gets a reply |
//! | [`forms`] | windows that cards open |
//! | [`notify`], [`named_approver`] | tells approvers that a card waits; finds the cards that they may approve now |
//! | [`withdraw`] | withdraws an open request |
//! | [`replies`] | the sentences |
//!
//! *Architecture Invariant:* nothing here needs a thread's lease, sends a message or carries a change out: a decision
//! is written, and the runtime goes on from there.

mod answers;
pub mod clicks;
pub mod consent;
pub mod decide;
pub mod envelope;
mod follow_ups;
pub mod forms;
pub mod groups;
pub mod inbox;
pub mod named_approver;
pub mod notify;
pub mod people;
pub mod policy;
pub mod replies;
mod timers;
mod typed;
pub mod withdraw;

/// The number of tries at a write when others move the action meanwhile: each time, theirs counted.
const MAX_RACES: usize = 8;
