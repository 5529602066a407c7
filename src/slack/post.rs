//! The request body of all calls that post or update messages, with borrowed fields.

use countersign_core::ids::{ChannelId, MessageTs, UserId};
use serde::Serialize;
use serde_json::Value;

use super::blocks::Message;

/// The fields of a call that posts or updates a message.
#[derive(Serialize)]
pub(super) struct Post<'a> {
    pub(super) channel: &'a ChannelId,
    pub(super) text: &'a str,
    pub(super) blocks: &'a [Value],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ts: Option<&'a MessageTs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread_ts: Option<&'a MessageTs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user: Option<&'a UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unfurl_links: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unfurl_media: Option<bool>,
}

impl<'a> Post<'a> {
    pub(super) fn new(channel: &'a ChannelId, message: &'a Message) -> Self {
        Self {
            channel,
            text: &message.text,
            blocks: &message.blocks,
            ts: None,
            thread_ts: None,
            user: None,
            metadata: None,
            unfurl_links: None,
            unfurl_media: None,
        }
    }
}
