//! Asks [`crate::runtime::pacing`] whether a message may be sent now.

use countersign_graph::store::{Claimed, Outbound};

use super::Sender;
use crate::runtime::pacing::{Candidate, Clearance, Method};

impl Sender {
    /// Returns the time at which Slack's rate limits allow the message.
    pub(super) fn clearance(&self, claimed: &Claimed) -> Clearance {
        let (Some(pacing), Some(method)) = (&self.0.pacing, method(claimed)) else { return Clearance::Go };
        let message = claimed.posted.as_ref().map(|posted| &posted.ts);
        let candidate = Candidate { method, thread: &claimed.thread, message, progress: claimed.outgoing.progress };
        pacing.request(&candidate, self.0.clock.now())
    }
}

/// Returns the Slack method that sends the message; `None` if there is none, or if its sender asks for itself.
pub(super) fn method(claimed: &Claimed) -> Option<Method> {
    match (&claimed.outgoing.body, &claimed.posted) {
        (Outbound::Elsewhere { .. } | Outbound::Status { draft: Some(_), .. }, _) => None,
        (Outbound::File { .. }, _) => Some(Method::Upload),
        (Outbound::Remove, posted) => posted.as_ref().map(|_| Method::Delete),
        (_, Some(_)) => Some(Method::Update),
        (_, None) => Some(Method::Post),
    }
}
