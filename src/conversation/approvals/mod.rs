//! Whether a decision counts, and making it count once.
//!
//! | room | does |
//! | --- | --- |
//! | [`people`], [`groups`] | whose words count, and who is in which user group |
//! | [`policy`], [`envelope`] | who may decide: more strictly outside of what was agreed beforehand |
//! | [`clicks`], [`consent`] | what people press, and the typed words that mean yes or no |
//! | [`decide`] | pure: a record and a decision give the changes to write |
//! | [`inbox`] | joins them with the store: whoever is first wins in one compare-and-set, everybody else is told |
//! | [`forms`] | windows that cards open |
//! | [`telling`], [`named_now`] | tells those who are named that a card waits for them; which cards those are by now |
//! | [`withdraw`] | lets go of an open request |
//! | [`replies`] | the sentences |
//!
//! *Architecture Invariant:* nothing here needs a thread's lease, sends a message or carries a change out: a decision is
//! written, and whoever moves the work goes on from there.

pub mod clicks;
pub mod consent;
pub mod decide;
pub mod envelope;
mod follow_ups;
pub mod forms;
pub mod groups;
pub mod inbox;
pub mod named_now;
pub mod people;
pub mod policy;
pub mod replies;
pub mod telling;
mod timers;
mod typed;
pub mod withdraw;

/// How often a write is tried again when somebody else moves the action meanwhile: each time, theirs counted.
const RACES: usize = 8;
