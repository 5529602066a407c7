//! What Slack shows around a thread: a line that says what is being done, sessions of agents, what can be asked first.

use countersign_core::ids::{ChannelId, MessageTs};
use serde::Serialize;
use serde_json::json;

use super::client::{Error, SlackClient};

/// How an agent session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// It waits for what a person says next.
    Active,
    /// The agent works; Slack shows its Stop button.
    Processing,
    /// A person has to decide.
    Suspended,
    /// It is over.
    Closed,
}

impl SlackClient {
    /// Says under a thread what is being done; an empty text clears it. Vanishes by itself after two minutes.
    pub async fn set_thread_status(&self, channel: &ChannelId, thread: &MessageTs, status: &str) -> Result<(), Error> {
        let body = json!({ "channel_id": channel, "thread_ts": thread, "status": status });
        self.post("assistant.threads.setStatus", &body).await.map(drop)
    }

    /// Says how an agent session stands. Only for an app that is declared an agent.
    pub async fn set_session_status(
        &self,
        channel: &ChannelId,
        thread: &MessageTs,
        status: SessionStatus,
    ) -> Result<(), Error> {
        let body = json!({ "channel_id": channel, "thread_ts": thread, "status": status });
        self.post("agents.sessions.setStatus", &body).await.map(drop)
    }

    /// Offers what can be asked first, as label and words; at most four. A thread only where Slack has made one.
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
