//! Which actions, and which standing approvals, somebody may be shown outside their threads.
//!
//! A title can give away what a private channel is about, so nothing is shown for being there. Somebody is shown
//!
//! 1. what was asked for *in the channel where they typed the command*: Slack lets them type only where they read;
//! 2. what they asked for themselves, wherever that was: their own direct messages are among these;
//! 3. what they decided about;
//! 4. what waits for them by name: the policy names them, or a user group they are in, when the card was shown or now.
//!
//! That needs no scope to read members of channels, and nothing that could be out of date.

use countersign_core::ids::{ChannelId, TeamId, UserId};
use countersign_graph::action::Label;

/// Somebody who asks, and from where.
#[derive(Clone, Debug)]
pub struct Asker {
    /// Who.
    pub by: UserId,
    /// Where the command was typed.
    pub place: (TeamId, ChannelId),
    /// The user groups of the policies that they are in.
    pub groups: Vec<String>,
    /// Whether the settings of now name them anywhere as an approver.
    pub is_named: bool,
}

impl Asker {
    /// What may be shown of what waits.
    pub fn waiting(&self) -> Vec<Label> {
        let mut labels = vec![self.here(), Label::AskedBy(self.by.clone())];
        labels.extend(named(&self.by, &self.groups));
        labels
    }

    /// What may be shown of what was done.
    pub fn done(&self) -> Vec<Label> {
        vec![self.here(), Label::AskedBy(self.by.clone()), Label::DecidedBy(self.by.clone())]
    }

    fn here(&self) -> Label {
        let (team, channel) = self.place.clone();
        Label::Within(team, channel)
    }
}

/// What names somebody as one who may decide.
pub fn named(user: &UserId, groups: &[String]) -> Vec<Label> {
    let groups = groups.iter().cloned().map(Label::NamesGroup);
    std::iter::once(Label::Names(user.clone())).chain(groups).collect()
}
