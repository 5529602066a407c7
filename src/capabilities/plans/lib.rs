//! Plans that are shown before they begin: one card with all steps of a request, in order.
//!
//! The card of [`carry_out`] changes nothing itself: its approval begins the plan, and each change in the plan has a
//! card of its own. Only the person who asked decides. In the form of the card, steps can be dropped and reordered.
//!
//! This crate knows no platform: the phrases and actions of the other capabilities determine the effect of a step.
//! Start reading at [`carry_out`].

pub mod carry_out;
mod phrases;
mod replies;

use std::sync::Arc;

use countersign_capabilities::{Capability, CapabilityInfo, Family, Registry, Tool};
use countersign_graph::action::ActionKind;

/// The names of the actions, for settings.
pub const ACTIONS: [&str; 1] = [carry_out::NAME];

/// The capability of plans that are shown before they begin.
pub struct Plans {
    others: Arc<Registry>,
}

impl Plans {
    /// Creates the capability for plans whose steps use these other capabilities.
    pub fn new(others: Registry) -> Self {
        Self { others: Arc::new(others) }
    }
}

impl Capability for Plans {
    fn info(&self) -> CapabilityInfo {
        CapabilityInfo {
            phrases: Some(&phrases::OfPlans),
            plan_action: Some(carry_out::NAME),
            ..CapabilityInfo::new("plans", "Plans of several steps, looked at before they are carried out.")
        }
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        vec![carry_out::action(self.others.clone())]
    }

    fn families(&self) -> Vec<Family> {
        vec![Family::new("plans", "a plan of several steps, shown before it is carried out").actions(ACTIONS)]
    }
}
