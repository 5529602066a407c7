//! The nodes of the chat graph, one file each.

pub(super) mod analyze;
pub(super) mod carry_on;
mod claims;
pub(super) mod clarify;
mod close;
pub(super) mod confirm;
mod evidence;
pub(super) mod gather;
mod gather_tools;
#[cfg(test)]
pub(super) mod harness;
mod look_first;
mod notes;
mod partial;
#[cfg(test)]
mod plan_tests;
mod proposal_text;
mod refused_calls;
pub(super) mod replan;
pub(super) mod respond;
pub(super) mod round;
#[cfg(test)]
mod round_tests;
#[cfg(test)]
mod tests;

// The names of the nodes. A node names the ones that it leads to, and those name it, so the names are in none of them.
pub(super) const ANALYZE: &str = "analyze";
pub(super) const CLARIFY: &str = "clarify";
pub(super) const CONFIRM: &str = "confirm";
pub(super) const GATHER: &str = "gather";
pub(super) const REPLAN: &str = "replan";
pub(super) const RESPOND: &str = "respond";
