//! The status of an action, and the table of its legal transitions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The status of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Prepared, but not yet shown.
    Proposed,
    /// Shown on a card, waiting for a decision.
    Pending,
    /// Approved by enough people; not yet begun.
    Approved,
    /// The request is about to be sent, or has been sent.
    Intent,
    /// The change happened.
    Done,
    /// The change did not happen, and the reason is known.
    Failed,
    /// The change may have happened; a person has to look.
    Unknown,
    /// A person says that the change happened, but reading back did not show it.
    Settled,
    /// A person rejected it.
    Rejected,
    /// Nobody decided in time.
    Expired,
    /// A newer request for the same thing replaced it.
    Superseded,
    /// Withdrawn before a decision.
    Cancelled,
}

impl Status {
    /// Returns true if the action was tried and has an outcome to report.
    pub fn has_outcome(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Unknown | Self::Settled)
    }

    /// All statuses, in the order of an action's life cycle.
    pub const ALL: [Self; 12] = [
        Self::Proposed,
        Self::Pending,
        Self::Approved,
        Self::Intent,
        Self::Done,
        Self::Failed,
        Self::Unknown,
        Self::Settled,
        Self::Rejected,
        Self::Expired,
        Self::Superseded,
        Self::Cancelled,
    ];

    /// Returns true if the transition is legal. A transition without a match arm is not.
    pub fn may_become(self, next: Self) -> bool {
        use Status::*;
        match (self, next) {
            (Proposed, Pending | Cancelled) => true,
            (Pending, Pending) => true, // one of several approvals counted
            (Pending, Approved | Rejected | Expired | Superseded | Cancelled) => true,
            (Approved, Intent) => true,
            (Approved, Failed | Cancelled) => true, // refused at execution: changed target, digest, stop
            (Intent, Intent) => true,               // sent again, with evidence that it had not happened
            (Intent, Done | Failed | Unknown) => true,
            (Unknown, Done | Failed | Settled) => true, // settled by a person or a later look
            (Rejected, Rejected) => true,               // the reason was added
            _ => false,
        }
    }

    /// Returns true if the action waits for a decision or is to be carried out.
    pub fn is_in_progress(self) -> bool {
        matches!(self, Self::Pending | Self::Approved | Self::Intent)
    }

    /// Returns true if the action is waiting for a person's decision.
    pub fn is_open(self) -> bool {
        self == Self::Pending
    }

    /// Returns the name of the status, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Intent => "intent",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Settled => "settled",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Superseded => "superseded",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for an illegal transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an action that is {from} cannot become {to}")]
pub struct IllegalMove {
    /// The status before.
    pub from: Status,
    /// The status asked for.
    pub to: Status,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_action_stays_ended() {
        use Status::*;
        for ended in [Done, Failed, Settled, Rejected, Expired, Superseded] {
            for next in Status::ALL {
                let reason = (ended, next) == (Status::Rejected, Status::Rejected);
                assert_eq!(ended.may_become(next), reason, "{ended} → {next}");
            }
        }
    }

    #[test]
    fn nothing_is_sent_without_an_approval() {
        let before_intent: Vec<_> = Status::ALL.into_iter().filter(|s| s.may_become(Status::Intent)).collect();
        assert_eq!(before_intent, [Status::Approved, Status::Intent]);
        let before_approved: Vec<_> = Status::ALL.into_iter().filter(|s| s.may_become(Status::Approved)).collect();
        assert_eq!(before_approved, [Status::Pending]);
    }
}
