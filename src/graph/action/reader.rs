//! For whom something is read.

use countersign_core::ids::{ChannelId, TeamId, ThreadId, UserId};

/// Somebody who is told something, and where: what belongs to one conversation is no matter of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Who, if that is known.
    pub by: Option<UserId>,
    /// In which workspace.
    pub team: TeamId,
    /// In which conversation.
    pub channel: ChannelId,
    /// Whether nobody else reads it.
    pub alone: bool,
}

impl Reader {
    /// Somebody in a thread, where everybody reads it who is in the conversation.
    pub fn in_thread(by: Option<UserId>, thread: &ThreadId) -> Self {
        let (team, channel) = (thread.team.clone(), thread.channel.clone());
        Self { by, alone: channel.is_direct(), team, channel }
    }
}
