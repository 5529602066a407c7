//! Streamed messages: text that appears in a thread while it is written, with cards for what is being done.
//!
//! A stream is started, appended to and stopped; after that it is a message like others. As long as it is not stopped, it
//! can be neither edited nor deleted. Slack stops one by itself some minutes after its start, or after less time
//! without an addition, and a person can stop it, too. Where a stream cannot be started, messages are posted as ever:
//! nobody should rely on streams.
//!
//! Only when it is stopped can a stream get metadata. One whose start was not answered is therefore found by what it
//! lacks: it is the bot's own stream without a nonce ([`SlackClient::find_stream`]).

use std::{sync::Mutex, time::Duration};

use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, MessageTs, Nonce, TeamId, UserId},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    blocks::Message,
    client::{Error, METADATA, SlackClient, messages, ts},
    field,
    post::Post,
};

/// The maximum length of a task's title, in characters.
const MAX_TITLE_CHARS: usize = 256;

/// The time by which Slack's clock may be behind ours when a stream is searched for.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// A part that is added to a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Chunk {
    /// Text, which continues the text before it.
    MarkdownText {
        /// The text, sanitised ([`super::markdown::harmless`]).
        text: String,
    },
    /// A card for something that is being done, or the new state of one.
    TaskUpdate {
        /// The id of the card in its message.
        id: String,
        /// The title.
        title: String,
        /// The state.
        status: TaskStatus,
    },
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It is being done.
    InProgress,
    /// It is done.
    Complete,
}

impl Chunk {
    /// Creates the card of a task, whose title is shortened if necessary.
    pub fn task(id: usize, title: &str, status: TaskStatus) -> Self {
        let title = title.chars().take(MAX_TITLE_CHARS).collect();
        Self::TaskUpdate { id: id.to_string(), title, status }
    }
}

impl SlackClient {
    /// Starts a stream in a thread, for a person of a workspace.
    pub async fn start_stream(
        &self,
        channel: &ChannelId,
        thread: &MessageTs,
        (team, person): (&TeamId, &UserId),
        chunks: &[Chunk],
    ) -> Result<MessageTs, Error> {
        let body = json!({
            "channel": channel, "thread_ts": thread, "recipient_team_id": team, "recipient_user_id": person,
            "task_display_mode": "timeline", "chunks": chunks,
        });
        ts(&self.post("chat.startStream", &body).await?)
    }

    /// Adds to a stream.
    pub async fn append_stream(&self, channel: &ChannelId, ts: &MessageTs, chunks: &[Chunk]) -> Result<(), Error> {
        let body = json!({ "channel": channel, "ts": ts, "chunks": chunks });
        self.post("chat.appendStream", &body).await.map(drop)
    }

    /// Stops a stream, unless it is stopped already. From then on it can be found by its nonce.
    pub async fn stop_stream(&self, channel: &ChannelId, ts: &MessageTs, nonce: &Nonce) -> Result<(), Error> {
        let body = json!({ "channel": channel, "ts": ts, "metadata": metadata(nonce) });
        match self.post("chat.stopStream", &body).await {
            Err(error) if is_stopped(&error) => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Stops a stream, and replaces its content and its metadata.
    pub async fn replace_stream(
        &self,
        channel: &ChannelId,
        ts: &MessageTs,
        message: &Message,
        nonce: &Nonce,
    ) -> Result<(), Error> {
        self.stop_stream(channel, ts, nonce).await?;
        let body = Post { ts: Some(ts), metadata: Some(metadata(nonce)), ..Post::new(channel, message) };
        self.post("chat.update", &body).await.map(drop)
    }

    /// Returns the newest stream of this app in a thread that was started at `since` or later and has no nonce.
    pub async fn find_stream(
        &self,
        channel: &ChannelId,
        thread: &MessageTs,
        since: Timestamp,
    ) -> Result<Option<MessageTs>, Error> {
        let us = self.auth_test().await?.identity;
        let newest = Mutex::new(None);
        let since = since.minus(CLOCK_TOLERANCE);
        let look = |page: &Value| {
            let ours = messages(page).filter(|message| {
                message["streaming_state"].is_string()
                    && field::text(message, "/user") == Some(us.user.as_str())
                    && field::text(message, "/metadata/event_type") != Some(METADATA)
            });
            let started = ours.filter_map(|message| ts(message).ok());
            let last = started.filter(|ts| ts.sent_at().is_some_and(|at| at >= since)).max();
            if let Ok(mut newest) = newest.lock() {
                *newest = last.max(newest.take());
            }
            None::<()>
        };
        self.find_since(channel, Some(thread), since, look).await?;
        Ok(newest.into_inner().ok().flatten())
    }
}

/// Returns true if a message was not changed since it is a stream that is not stopped.
pub fn is_streaming(error: &Error) -> bool {
    matches!(error, Error::Refused { code } if code == "streaming_state_conflict")
}

/// Returns true if a stream was not changed since it is stopped.
fn is_stopped(error: &Error) -> bool {
    matches!(error, Error::Refused { code } if code == "message_not_in_streaming_state")
}

/// Returns true if an error means that there are no streams in this workspace, or none for this app.
pub fn has_no_streams(error: &Error) -> bool {
    match error {
        Error::MissingScope { .. } => true,
        Error::Refused { code } => {
            code.starts_with("not_allowed") || ["unknown_method", "feature_not_enabled"].contains(&code.as_str())
        }
        _ => false,
    }
}

fn metadata(nonce: &Nonce) -> Value {
    json!({ "event_type": METADATA, "event_payload": { "nonce": nonce } })
}
