//! Slack's agent features around a thread: the thread status, agent sessions and suggested prompts.

use countersign_core::ids::{ChannelId, MessageTs};
use serde::Serialize;
use serde_json::json;

use super::client::{Error, SlackClient};

/// The status of an agent session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// The agent is waiting for the person's next message.
    Active,
    /// The agent is working. Slack shows its Stop button.
    Processing,
    /// The agent is waiting for a person's decision.
    Suspended,
    /// The session has ended.
    Closed,
}

impl SlackClient {
    /// Sets the thread status. An empty text clears it; otherwise Slack clears it after two minutes.
    pub async fn set_thread_status(&self, channel: &ChannelId, thread: &MessageTs, status: &str) -> Result<(), Error> {
        let body = json!({ "channel_id": channel, "thread_ts": thread, "status": status });
        self.post("assistant.threads.setStatus", &body).await.map(drop)
    }

    /// Sets the status of an agent session. Only for an app that is declared as an agent.
    pub async fn set_session_status(
        &self,
        channel: &ChannelId,
        thread: &MessageTs,
        status: SessionStatus,
    ) -> Result<(), Error> {
        let body = json!({ "channel_id": channel, "thread_ts": thread, "status": status });
        self.post("agents.sessions.setStatus", &body).await.map(drop)
    }

    /// Suggests up to four prompts, each given as label and message. `thread` is set only if Slack has created a
    /// thread.
    pub async fn set_suggested_prompts(
        &self,
        channel: &ChannelId,
        thread: Option<&MessageTs>,
        prompts: &[(&str, &str)],
    ) -> Result<(), Error> {
        let prompts = prompts.iter().take(4).map(|(title, message)| json!({ "title": title, "message": message }));
        let mut body = json!({ "channel_id": channel, "prompts": prompts.collect::<Vec<_>>() });
        if let Some(thread) = thread {
            body["thread_ts"] = json!(thread);
        }
        self.post("assistant.threads.setSuggestedPrompts", &body).await.map(drop)
    }
}
