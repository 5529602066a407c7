//! The policy of an action, and the decisions about it.

use countersign_core::{clock::Timestamp, ids::UserId};
use serde::{Deserialize, Serialize};

/// The people who may decide about an action. Part of its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The people of whom any may decide. Empty: nobody may.
    pub approvers: Vec<Approver>,
    /// Further lists that every decider has to be in as well: a change in several contexts is decided by people whom
    /// all of them name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Vec<Approver>>,
    /// True if the person who asked may approve.
    pub own_request: bool,
    /// The number of different people who must approve.
    pub needed: u32,
    /// True if a typed “yes” counts; irreversible actions need the button.
    pub typed: bool,
    /// The additional people who may decide if nobody has for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
    /// The reason why the policy is stricter than usual, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Set if nobody may decide because the required lists have nobody in common: the contexts of those lists, as far
    /// as different contexts are the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<Vec<String>>,
}

/// The additional people who may decide once a card has been open for some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    /// The people of whom any may decide.
    pub approvers: Vec<Approver>,
    /// The time after the request, in milliseconds.
    pub after_ms: u64,
}

impl Policy {
    /// Returns true if it names a person or a user group: they may be elsewhere and not know that a card waits.
    pub fn names_anybody(&self) -> bool {
        self.approvers.iter().any(|approver| matches!(approver, Approver::User(_) | Approver::Group(_)))
    }
}

/// A person or a set of people in a [`Policy`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// All people in the channel of the request.
    Channel,
    /// The person who asked.
    Requester,
    /// This person.
    User(UserId),
    /// The members of this Slack user group (`S…`).
    Group(String),
}

/// The decision of a person, or of the clock, about a pending action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The action is to be done.
    Approved,
    /// The action is not to be done.
    Rejected {
        /// The reason, in the person's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Nobody decided in time.
    Expired,
    /// The request was withdrawn.
    Cancelled,
    /// A newer request replaced it.
    Superseded,
}

/// One decision, as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The person who decided; `None` for an expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// The time at which it arrived.
    pub at: Timestamp,
    /// The verdict.
    pub verdict: Verdict,
}
