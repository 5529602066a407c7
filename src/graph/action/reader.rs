//! The person for whom data is read.

use countersign_core::ids::{ChannelId, TeamId, ThreadId, UserId};

/// A person who reads data, and the conversation: data of one conversation does not belong in another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// The person, if known.
    pub by: Option<UserId>,
    /// The workspace.
    pub team: TeamId,
    /// The conversation.
    pub channel: ChannelId,
    /// True if there is no other reader.
    pub alone: bool,
}

impl Reader {
    /// Creates the reader for a person in a thread, which everyone in the conversation reads.
    pub fn in_thread(by: Option<UserId>, thread: &ThreadId) -> Self {
        let (team, channel) = (thread.team.clone(), thread.channel.clone());
        Self { by, alone: channel.is_direct(), team, channel }
    }
}
