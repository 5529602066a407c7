//! Posts messages in the channel of mails that are not replies in a thread.

use std::fmt;

use async_trait::async_trait;
use countersign_conversation::presentation::{links::Links, names::Names, render};
use countersign_core::{
    cause,
    clock::Timestamp,
    ids::{ChannelId, MessageTs, Nonce, ThreadId},
    reply::Reply,
};
use countersign_email::sync::{PostError, Roots};
use countersign_slack::{client::SlackClient, client_error::Error};
use countersign_team_inbox::digest::Announcer;

/// The poster of messages to a channel.
#[derive(Clone)]
pub struct ChannelAnnouncer {
    slack: SlackClient,
    names: Names,
}

impl fmt::Debug for ChannelAnnouncer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChannelAnnouncer")
    }
}

impl ChannelAnnouncer {
    /// Creates a poster for the bot's workspace.
    pub fn new(slack: SlackClient, names: Names) -> Self {
        Self { slack, names }
    }

    /// Posts a message, unless an attempt at or after `since` has posted it: that one has the same nonce.
    ///
    /// # Errors
    ///
    /// Fails if Slack has not confirmed the message; then it may be posted all the same.
    pub async fn post(
        &self,
        channel: &ChannelId,
        reply: &Reply,
        nonce: &Nonce,
        since: Option<Timestamp>,
    ) -> Result<MessageTs, Error> {
        if let Some(since) = since
            && let Some(posted) = self.slack.find_by_nonce(channel, None, nonce, since).await?
        {
            return Ok(posted);
        }
        let message = render::reply(self.names.in_reply(reply).await.as_ref());
        self.slack.post_message(channel, None, &message, nonce).await
    }
}

impl ChannelAnnouncer {
    /// Removes a message that begins no thread.
    pub(in super::super) async fn remove(&self, channel: &ChannelId, message: &MessageTs) {
        if let Err(error) = self.slack.delete_message(channel, message).await {
            tracing::warn!(error = cause::chain(&error), "Cannot remove a message that begins no thread");
        }
    }
}

#[async_trait]
impl Announcer for ChannelAnnouncer {
    async fn announce(
        &self,
        channel: &ChannelId,
        reply: &Reply,
        nonce: &Nonce,
        since: Option<Timestamp>,
    ) -> Result<(), String> {
        self.post(channel, reply, nonce, since).await.map(drop).map_err(|error| cause::chain(&error))
    }
}

/// The messages that begin the threads of mails in their channel.
#[derive(Clone)]
pub(in super::super) struct ChannelRoots {
    /// The poster.
    pub(super) announcer: ChannelAnnouncer,
    /// The channel.
    pub(super) channel: ChannelId,
    /// The builder of links to threads.
    pub(super) links: Links,
}

impl ChannelRoots {
    /// Draws a message that begins a thread again.
    ///
    /// # Errors
    ///
    /// Fails if Slack has not confirmed the change.
    pub(super) async fn redraw(&self, message: &MessageTs, reply: &Reply) -> Result<(), Error> {
        let drawn = render::reply(self.announcer.names.in_reply(reply).await.as_ref());
        self.announcer.slack.update_message(&self.channel, message, &drawn).await
    }
}

impl fmt::Debug for ChannelRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelRoots").field("channel", &self.channel).finish_non_exhaustive()
    }
}

#[async_trait]
impl Roots for ChannelRoots {
    async fn post(
        &self,
        message: &Reply,
        nonce: &Nonce,
        since: Timestamp,
        may_exist: bool,
    ) -> Result<MessageTs, PostError> {
        let since = may_exist.then_some(since);
        self.announcer.post(&self.channel, message, nonce, since).await.map_err(|error| {
            tracing::warn!(error = cause::chain(&error), "Cannot post the message that begins a mail's thread");
            PostError(refusal(&error))
        })
    }

    async fn remove(&self, message: &MessageTs) {
        self.announcer.remove(&self.channel, message).await;
    }

    fn link(&self, thread: &ThreadId) -> Option<String> {
        self.links.message(&thread.channel, &thread.root, &thread.root)
    }
}

/// Describes why a message was not posted, for people.
fn refusal(error: &Error) -> String {
    match error.word().as_str() {
        "not_in_channel" | "channel_not_found" => {
            "The bot is not in the channel for email (email.channel). Invite it there.".to_owned()
        }
        "is_archived" => "The channel for email (email.channel) is archived.".to_owned(),
        word => format!("Slack didn't accept the message that starts a thread ({word})."),
    }
}
