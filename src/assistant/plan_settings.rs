//! The settings of plans.

use countersign_config::plans::{LookFirst, Plans};
use countersign_planner::control::Limits;

/// The settings of plans, as the nodes use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanSettings {
    /// The plans that are shown on a card before they begin.
    pub look_first: LookFirst,
    /// The limits of a plan.
    pub limits: Limits,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self::from(&Plans::default())
    }
}

impl From<&Plans> for PlanSettings {
    fn from(plans: &Plans) -> Self {
        let limits = Limits { run_time: plans.run_time, nodes: plans.nodes, ..Limits::default() };
        Self { look_first: plans.look_first, limits }
    }
}
