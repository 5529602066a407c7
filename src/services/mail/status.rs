//! The state of a mail in the hands of the team.

use serde::{Deserialize, Serialize};

/// The state of a mail: from its arrival to its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailStatus {
    /// It arrived, and nobody has looked at it yet.
    #[default]
    Pending,
    /// It is being classified, or a draft is being written.
    Processing,
    /// There is a draft, and nothing else is decided.
    Drafted,
    /// A person has to decide.
    NeedsReview,
    /// An answer was sent.
    Sent,
    /// A person decided not to answer, or it is sure spam.
    Rejected,
}

impl MailStatus {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Processing, Self::Drafted, Self::NeedsReview, Self::Sent, Self::Rejected];

    /// Returns true if the transition is legal. A transition without a match arm is not.
    pub fn may_become(self, next: Self) -> bool {
        use MailStatus::*;
        match (self, next) {
            (Pending | Drafted | NeedsReview | Rejected, Processing) => true,
            (Processing, Sent | NeedsReview | Drafted) => true,
            (Processing, Rejected) => true, // sure spam
            (Drafted | NeedsReview, Sent | Rejected) => true,
            (Pending, Rejected) => true, // sure spam, classified in bulk
            _ => false,
        }
    }

    /// Returns the name, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Drafted => "drafted",
            Self::NeedsReview => "needs_review",
            Self::Sent => "sent",
            Self::Rejected => "rejected",
        }
    }

    /// Returns the state in words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Pending => "not looked at yet",
            Self::Processing => "in progress",
            Self::Drafted | Self::NeedsReview => "waiting for review",
            Self::Sent => "answered",
            Self::Rejected => "rejected",
        }
    }

    /// Returns true if a person has to decide.
    pub fn waits(self) -> bool {
        matches!(self, Self::Drafted | Self::NeedsReview)
    }

    /// Returns true if the mail was answered or rejected.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Sent | Self::Rejected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statuses_move_as_the_contract_says() {
        use MailStatus::*;
        let legal: Vec<(MailStatus, MailStatus)> = MailStatus::ALL
            .into_iter()
            .flat_map(|from| MailStatus::ALL.into_iter().map(move |to| (from, to)))
            .filter(|(from, to)| from.may_become(*to))
            .collect();
        assert_eq!(
            legal,
            [
                (Pending, Processing),
                (Pending, Rejected),
                (Processing, Drafted),
                (Processing, NeedsReview),
                (Processing, Sent),
                (Processing, Rejected),
                (Drafted, Processing),
                (Drafted, Sent),
                (Drafted, Rejected),
                (NeedsReview, Processing),
                (NeedsReview, Sent),
                (NeedsReview, Rejected),
                (Rejected, Processing),
            ]
        );
    }
}
