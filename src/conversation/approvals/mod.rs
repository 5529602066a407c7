//! Whether a decision counts, and making it count once.
//!
//! [`policy`] says who may decide, more strictly outside an [`envelope`]. [`decide`] is pure: a record and a decision give the changes to write. [`consent`] is
//! the list of typed words that mean yes or no. [`Approvals`](desk::Approvals) joins them with the store: whoever is
//! first wins in one compare-and-set, everybody else is told.

pub mod consent;
pub mod decide;
pub mod desk;
pub mod envelope;
mod follow_ups;
pub mod forms;
pub mod named_now;
pub mod policy;
pub mod replies;
pub mod telling;
mod timers;
mod typed;
pub mod withdraw;

/// How often a write is tried again when somebody else moves the action meanwhile: each time, theirs counted.
const RACES: usize = 8;
