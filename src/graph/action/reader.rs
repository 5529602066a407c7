//! The person for whom data is read.

use countersign_core::ids::{ChannelId, TeamId, ThreadId, UserId};

/// A person who reads data, and the conversation in which they read it. Data of one conversation
/// must not appear in another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// The person, if known.
    pub by: Option<UserId>,
    /// The workspace.
    pub team: TeamId,
    /// The conversation.
    pub channel: ChannelId,
    /// The thread, if the person reads in one.
    pub thread: Option<ThreadId>,
    /// True if nobody else reads the conversation.
    pub alone: bool,
    /// The person's time zone, such as `Europe/Berlin`, if known.
    pub zone: Option<String>,
}

impl Reader {
    /// Creates the reader for a person in a thread, which everyone in its conversation can read.
    pub fn in_thread(by: Option<UserId>, thread: &ThreadId) -> Self {
        let (team, channel) = (thread.team.clone(), thread.channel.clone());
        Self { by, alone: channel.is_direct(), team, channel, thread: Some(thread.clone()), zone: None }
    }

    /// Sets the person's time zone.
    pub fn in_zone(self, zone: Option<String>) -> Self {
        Self { zone, ..self }
    }
}
