//! Who may decide, and what was decided.

use countersign_core::{clock::Timestamp, ids::UserId};
use serde::{Deserialize, Serialize};

/// Who may decide about an action. Part of its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Any of these may decide. Empty: nobody may.
    pub approvers: Vec<Approver>,
    /// Lists that whoever decides has to be in as well: a change in several contexts is decided by those whom all of them
    /// name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Vec<Approver>>,
    /// Whether the person who asked may approve.
    pub own_request: bool,
    /// How many different people must approve.
    pub needed: u32,
    /// Whether a typed “yes” counts; irreversible actions need the button.
    pub typed: bool,
    /// Who may decide besides, once nobody did for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
    /// Why it is stricter than usual, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// That nobody may decide since the lists that have to agree have nobody in common: the contexts they are for, as far
    /// as that is due to different contexts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<Vec<String>>,
}

/// Who may decide besides, once a card has been open for some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    /// Any of these.
    pub approvers: Vec<Approver>,
    /// How long after the request, in milliseconds.
    pub after_ms: u64,
}

impl Policy {
    /// Whether it names anybody, themselves or by a user group: they may be elsewhere and not know that a card waits.
    pub fn names_anybody(&self) -> bool {
        self.approvers.iter().any(|approver| matches!(approver, Approver::User(_) | Approver::Group(_)))
    }
}

/// A person or a set of people in a [`Policy`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// Everybody in the channel of the request.
    Channel,
    /// The person who asked.
    Requester,
    /// This person.
    User(UserId),
    /// The members of this Slack user group (`S…`).
    Group(String),
}

/// What a person, or the clock, made of a pending action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Do it.
    Approved,
    /// Do not.
    Rejected {
        /// Why, in the person's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Nobody answered in time.
    Expired,
    /// Withdrawn.
    Cancelled,
    /// A newer request took its place.
    Superseded,
}

/// One decision, as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Who; nobody for an expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// When it arrived.
    pub at: Timestamp,
    /// What.
    pub verdict: Verdict,
}
