//! Under what an action can be found, besides its own names: whom and which place it has to do with.

use std::fmt;

use countersign_core::ids::{ChannelId, TeamId, UserId};

use super::{ActionRecord, Approver};

/// Whom, or which place, an action has to do with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// This person asked for it.
    AskedBy(UserId),
    /// It was asked for in this conversation.
    Within(TeamId, ChannelId),
    /// Its policy names this person.
    Names(UserId),
    /// Its policy names this user group (`S…`).
    NamesGroup(String),
    /// This person approved, rejected or withdrew it.
    DecidedBy(UserId),
    /// It changes this thing, one of the targets of its scope.
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
    /// Everything it can be found under, each once.
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

    /// Whether it can be found under any of these.
    pub fn is_under(&self, labels: &[Label]) -> bool {
        self.labels().iter().any(|label| labels.contains(label))
    }
}
