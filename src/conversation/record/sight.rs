//! The actions, and the standing approvals, that a person may be shown outside their threads.
//!
//! A title can give away the subject of a private channel, so membership alone shows nothing. A person is shown
//!
//! 1. requests made *in the channel where they typed the command*: Slack lets them type only where they read;
//! 2. their own requests, in any channel: their own direct messages are among these;
//! 3. actions they decided on;
//! 4. cards that wait for them: the policy, as shown or as of now, names them or a user group they are in.
//!
//! That needs no scope to read members of channels, and nothing that could be out of date.

use countersign_core::ids::{ChannelId, TeamId, UserId};
use countersign_graph::action::Label;

/// A person who asks, and the channel they ask from.
#[derive(Clone, Debug)]
pub struct Asker {
    /// The person.
    pub by: UserId,
    /// The channel where the command was typed.
    pub place: (TeamId, ChannelId),
    /// The user groups named in policies that the person is in.
    pub groups: Vec<String>,
    /// True if the current settings name the person anywhere as an approver.
    pub is_named: bool,
}

impl Asker {
    /// Returns the labels of the open actions that may be shown.
    pub fn waiting(&self) -> Vec<Label> {
        let mut labels = vec![self.here(), Label::AskedBy(self.by.clone())];
        labels.extend(approver_labels(&self.by, &self.groups));
        labels
    }

    /// Returns the labels of the past actions that may be shown.
    pub fn done(&self) -> Vec<Label> {
        vec![self.here(), Label::AskedBy(self.by.clone()), Label::DecidedBy(self.by.clone())]
    }

    fn here(&self) -> Label {
        let (team, channel) = self.place.clone();
        Label::Within(team, channel)
    }
}

/// Returns the labels that name a person as an approver.
pub fn approver_labels(user: &UserId, groups: &[String]) -> Vec<Label> {
    let groups = groups.iter().cloned().map(Label::NamesGroup);
    std::iter::once(Label::Names(user.clone())).chain(groups).collect()
}
