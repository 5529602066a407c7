//! The labels by which an action can be found: people, places and things.

use std::fmt;

use countersign_core::ids::{ChannelId, TeamId, UserId};

use super::{ActionRecord, Approver};

/// A person, a place or a thing that an action is related to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// The person who asked for the action.
    AskedBy(UserId),
    /// The conversation in which the action was asked for.
    Within(TeamId, ChannelId),
    /// A person named by the policy.
    Names(UserId),
    /// A user group (`S…`) named by the policy.
    NamesGroup(String),
    /// A person who approved, rejected or withdrew the action.
    DecidedBy(UserId),
    /// A thing that the action changes, one of the targets of its scope.
    About(String),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AskedBy(user) => write!(f, "asked:{user}"),
            Self::Within(team, channel) => write!(f, "within:{team}/{channel}"),
            Self::Names(user) => write!(f, "names:{user}"),
            Self::NamesGroup(group) => write!(f, "group:{group}"),
            Self::DecidedBy(user) => write!(f, "decided:{user}"),
            Self::About(target) => write!(f, "about:{target}"),
        }
    }
}

impl ActionRecord {
    /// Returns all labels of the record, each once.
    pub fn labels(&self) -> Vec<Label> {
        let mut labels = vec![
            Label::AskedBy(self.requested_by.clone()),
            Label::Within(self.thread.team.clone(), self.thread.channel.clone()),
        ];
        labels.extend(self.policy.approvers.iter().filter_map(|approver| match approver {
            Approver::User(user) => Some(Label::Names(user.clone())),
            Approver::Group(group) => Some(Label::NamesGroup(group.clone())),
            Approver::Channel | Approver::Requester => None,
        }));
        labels.extend(self.decisions.iter().filter_map(|decision| decision.by.clone()).map(Label::DecidedBy));
        labels.extend(self.scope.targets.iter().cloned().map(Label::About));
        labels.sort();
        labels.dedup();
        labels
    }

    /// Returns true if the record has any of these labels.
    pub fn is_under(&self, labels: &[Label]) -> bool {
        self.labels().iter().any(|label| labels.contains(label))
    }
}
