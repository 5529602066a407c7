//! Standing approvals: a limited number of changes of one kind that need no approval each, until a certain moment.
//!
//! A standing approval is requested in words and granted on its own card ([`allow`]); [`revoke`] ends it, and
//! [`list`] lists them. [`grant`] defines a standing approval and the changes it covers;
//! [`register`] keeps all of them. They exist only in our own store, not on the platform.
//!
//! This crate names no platform: the changes that can be allowed are the [`countersign_capabilities::Allowance`]s of
//! the other capabilities. Start reading at [`allow`].
//!
//! *Architecture Invariant:* a change that cannot be undone is never covered, except tests with simulated users, whose
//! card names the data that remains. Changes outside an envelope are never covered, nor changes that need more people
//! than granted the approval.

pub mod allow;
pub mod grant;
pub mod list;
mod phrases;
pub mod register;
pub mod replies;
pub mod revoke;

use std::sync::Arc;

use countersign_core::clock::Clock;
use countersign_graph::action::ActionKind;

use self::register::GrantRegister;
use countersign_capabilities::{Capability, CapabilityInfo, Family, Tool};

/// The names of the actions, for settings.
pub const ACTIONS: [&str; 2] = [allow::NAME, revoke::NAME];

/// The capability of standing approvals.
pub struct StandingApprovals {
    register: Arc<GrantRegister>,
    others: Vec<Arc<dyn Capability>>,
    clock: Arc<dyn Clock>,
}

impl StandingApprovals {
    /// Creates the capability for this register and the changes of these other capabilities.
    pub fn new(register: Arc<GrantRegister>, others: Vec<Arc<dyn Capability>>, clock: Arc<dyn Clock>) -> Self {
        Self { register, others, clock }
    }
}

impl Capability for StandingApprovals {
    fn info(&self) -> CapabilityInfo {
        CapabilityInfo {
            phrases: Some(&phrases::StandingApprovalPhrases),
            ..CapabilityInfo::new(
                "standing approvals",
                "Standing approvals: a bounded number of changes of one kind that need no card each.",
            )
        }
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(list::tool(self.register.clone()))]
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        let (register, capabilities, clock) = (self.register.clone(), self.others.clone(), self.clock.clone());
        vec![allow::action(allow::Deps { register, capabilities, clock }), revoke::action(self.register.clone())]
    }

    fn families(&self) -> Vec<Family> {
        let family =
            Family::new("standing_approvals", "standing approvals: allow changes in advance, end that, list them");
        vec![family.tools(["list_standing_approvals"]).actions(ACTIONS)]
    }
}
