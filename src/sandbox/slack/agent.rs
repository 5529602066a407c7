//! Slack's features for apps that are agents: the Stop button, the Messages tab, sessions and
//! suggested prompts.

use std::sync::Arc;

use countersign_core::ids::{ChannelId, MessageTs, UserId};
use serde_json::{Value, json};

use super::{Error, SandboxSlack, broadcast::Change, events, server::Server};

impl SandboxSlack {
    /// Presses Slack's own Stop button of a session.
    ///
    /// # Errors
    ///
    /// [`Error::Nothing`] if there is no session with status `processing`, and so no button.
    pub fn stops_session(&self, user: &str, channel: &str, thread: &MessageTs) -> Result<(), Error> {
        let (user, channel) = self.server.who_and_where(user, channel)?;
        self.server.stop_session(&user, &channel, thread)
    }

    /// Opens the Messages tab of the app.
    pub fn opens_talk(&self, user: &str) {
        let user = self.user(user);
        let mut world = self.server.world();
        let delivery = events::talk_opened(&user, &mut world, self.server.now());
        self.server.send(delivery);
    }
}

impl Server {
    /// Sets the status of an agent session.
    pub(super) fn session(&self, channel: &ChannelId, thread: &MessageTs, status: &str) {
        self.world().sessions.insert(format!("{channel}/{thread}"), status.to_owned());
        let (channel, thread_ts, status) = (channel.clone(), thread.clone(), status.to_owned());
        self.announce(Change::Session { channel, thread_ts, status });
    }

    pub(super) fn stop_session(
        self: &Arc<Self>,
        user: &UserId,
        channel: &ChannelId,
        thread: &MessageTs,
    ) -> Result<(), Error> {
        let mut world = self.world();
        if world.sessions.get(&format!("{channel}/{thread}")).map(String::as_str) != Some("processing") {
            return Err(Error::Nothing(format!("Stop button in thread `{thread}`")));
        }
        let now = self.now();
        let event = json!({
            "type": "agent_session_stopped", "channel": channel, "thread_ts": thread, "user": user,
            "streaming_message_ts": [], "event_ts": world.next_ts(now),
        });
        let delivery = events::envelope(event, &mut world, now);
        self.send(delivery);
        Ok(())
    }

    /// Sets the prompts that a direct message offers before its first message.
    pub(super) fn prompts(&self, channel: &ChannelId, prompts: &Value) {
        self.world().prompts.insert(channel.clone(), prompts.clone());
    }
}
