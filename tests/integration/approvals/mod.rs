//! Approvals worth trusting: who counts when, one decision for one card, nothing runs that was not shown.

mod after;
mod digest;
mod forms;
mod matrix;
mod meanwhile;
mod outsiders;
mod policies;
mod race;
mod racer;
mod same;
mod sealed;
mod sealed_record;
mod settling;
mod stored;
mod turned_down;
pub(crate) mod windows;
