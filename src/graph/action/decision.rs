//! The policy of an action, and the decisions about it.

use countersign_core::{clock::Timestamp, ids::UserId, reply::Text};
use serde::{Deserialize, Serialize};

/// The rules on who may decide about an action. They are part of its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The people any of whom may decide. If the list is empty, nobody may.
    pub approvers: Vec<Approver>,
    /// Further lists, each of which must contain the person who decides as well. A change in
    /// several contexts is decided by people who are in the lists of all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Vec<Approver>>,
    /// True if the person who asked may approve.
    pub own_request: bool,
    /// The number of people who must approve.
    pub needed: u32,
    /// True if a typed “yes” counts as an approval; irreversible actions need the button.
    pub typed: bool,
    /// The escalation if nobody has decided for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
    /// The reason why the policy is stricter than usual, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The contexts of the required lists, if nobody may decide because these lists have nobody in
    /// common. Empty if different contexts are not the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<Vec<String>>,
}

/// An escalation: the additional people who may decide once a card has been open for some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    /// The people any of whom may decide.
    pub approvers: Vec<Approver>,
    /// The time from the request to the escalation, in milliseconds.
    pub after_ms: u64,
}

impl Policy {
    /// Returns true if the policy names a person or a user group. These may not be in the channel
    /// and not know that a card is waiting.
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

/// The verdict on a pending action, by a person or by expiry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The action may be carried out.
    Approved,
    /// The action must not be carried out.
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
    /// The request came to nothing, because of something that happened elsewhere.
    Obsolete {
        /// The reason, as it is shown on the card.
        why: Text,
    },
}

/// One decision, as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The person who decided; `None` for an expiry, and for an approval by a setting of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// The time at which the decision arrived.
    pub at: Timestamp,
    /// The verdict.
    pub verdict: Verdict,
}

/// An approval that no longer counts, because its giver may not approve the action any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lapse {
    /// The person who approved.
    pub by: UserId,
    /// The time at which this was found. An approval after it counts again.
    pub at: Timestamp,
    /// The reason, as the end of a sentence.
    pub why: String,
}
