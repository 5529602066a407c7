//! Changes of messages: posting, editing, deleting. The page and the app are notified of
//! each change.

use std::{sync::Arc, time::Duration};

use countersign_core::ids::{ChannelId, MessageTs, UserId};
use serde_json::{Value, json};

use super::{
    broadcast::Change,
    events,
    server::Server,
    world::{
        World,
        message::{Message, StreamState},
    },
};

/// The number of earlier layouts of a message whose buttons can still be pressed.
const MAX_REMEMBERED: usize = 10;
/// The time after which a status disappears if it is not renewed.
const STATUS_LIFETIME: Duration = Duration::from_secs(120);

/// A message to post, without a timestamp.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) channel: ChannelId,
    pub(super) thread: Option<MessageTs>,
    pub(super) user: UserId,
    pub(super) text: String,
    pub(super) blocks: Vec<Value>,
    pub(super) metadata: Option<Value>,
    pub(super) ephemeral_to: Option<UserId>,
    pub(super) files: Vec<String>,
    pub(super) stream: Option<StreamState>,
}

impl Draft {
    pub(super) fn new(channel: ChannelId, user: UserId, text: impl Into<String>) -> Self {
        Self {
            channel,
            thread: None,
            user,
            text: text.into(),
            blocks: Vec::new(),
            metadata: None,
            ephemeral_to: None,
            files: Vec::new(),
            stream: None,
        }
    }
}

/// The new content of a message.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) text: String,
    pub(super) blocks: Vec<Value>,
    /// The metadata; `None` if it does not change.
    pub(super) metadata: Option<Value>,
}

impl Server {
    /// Posts a message, and notifies the page and the app.
    pub(super) fn post(self: &Arc<Self>, draft: Draft) -> Message {
        let mut world = self.world();
        let ts = world.next_ts(self.now());
        let by_app = draft.user == world.app.user;
        let thread_ts = draft.thread.filter(|thread| *thread != ts);
        let blocks = assign_ids(draft.blocks, &mut world);
        let message = Message {
            ts,
            channel: draft.channel,
            thread_ts,
            user: draft.user,
            by_app,
            text: draft.text,
            blocks,
            metadata: draft.metadata,
            edited: None,
            deleted: false,
            ephemeral_to: draft.ephemeral_to,
            files: draft.files,
            stream: draft.stream,
            earlier: Vec::new(),
        };
        world.insert(message.clone());
        if message.ephemeral_to.is_none() {
            if !message.is_root() {
                self.root_changed(&mut world, &message);
            }
            if by_app {
                self.clear_status(&mut world, &message.channel, message.root());
            } else {
                let read = world.read.entry(message.user.clone()).or_default();
                read.insert(message.channel.clone(), message.ts.clone());
            }
        }
        self.announce(Change::posted(&message, &world));
        for delivery in events::posted(&message, &mut world, self.now()) {
            self.send(delivery);
        }
        message
    }

    /// Edits a message, and notifies the page and the app. Returns `None` if there is no such
    /// message.
    pub(super) fn edit(&self, channel: &ChannelId, ts: &MessageTs, edit: Edit) -> Option<Message> {
        let mut world = self.world();
        let blocks = assign_ids(edit.blocks, &mut world);
        let edited_at = world.next_ts(self.now());
        let before = world.message(channel, ts)?.clone();
        let message = world.message_mut(channel, ts)?;
        let layout = std::mem::replace(&mut message.blocks, blocks);
        message.earlier.push(layout);
        if message.earlier.len() > MAX_REMEMBERED {
            message.earlier.remove(0);
        }
        message.text = edit.text;
        if let Some(metadata) = edit.metadata {
            message.metadata = Some(metadata).filter(|m| m.as_object().is_some_and(|m| !m.is_empty()));
        }
        if message.blocks.is_empty() {
            message.edited = Some(edited_at);
        }
        let after = message.clone();
        self.announce(Change::edited(&after, &world));
        for delivery in events::changed(&before, &after, &mut world, self.now()) {
            self.send(delivery);
        }
        Some(after)
    }

    /// Notifies the page of a change of a message.
    pub(super) fn changed(&self, channel: &ChannelId, ts: &MessageTs) {
        let world = self.world();
        if let Some(message) = world.message(channel, ts) {
            self.announce(Change::edited(message, &world));
        }
    }

    /// Deletes a message, and notifies the page and the app. Returns `None` if there is no such
    /// message.
    pub(super) fn delete(&self, channel: &ChannelId, ts: &MessageTs) -> Option<Message> {
        let mut world = self.world();
        let message = world.message_mut(channel, ts).filter(|message| !message.deleted)?;
        message.deleted = true;
        let message = message.clone();
        if !message.is_root() && message.ephemeral_to.is_none() {
            self.root_changed(&mut world, &message);
        }
        self.announce(Change::MessageDeleted {
            channel: channel.clone(),
            message: message.shown(&world),
            only: message.ephemeral_to.clone(),
        });
        for delivery in events::deleted(&message, &mut world, self.now()) {
            self.send(delivery);
        }
        Some(message)
    }

    /// Shows the thread status until it is changed or expires.
    pub(super) fn status(self: &Arc<Self>, channel: &ChannelId, thread: &MessageTs, text: &str) {
        let key = format!("{channel}/{thread}");
        let mut world = self.world();
        if text.is_empty() {
            self.clear_status(&mut world, channel, thread);
            return;
        }
        world.statuses.insert(key.clone(), text.to_owned());
        self.announce(Change::Status { channel: channel.clone(), thread_ts: thread.clone(), text: text.to_owned() });
        let (server, channel, thread, shown) = (self.clone(), channel.clone(), thread.clone(), text.to_owned());
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(STATUS_LIFETIME) => {}
                () = server.stop.cancelled() => return,
            }
            let mut world = server.world();
            if world.statuses.get(&key) == Some(&shown) {
                server.clear_status(&mut world, &channel, &thread);
            }
        });
    }

    fn clear_status(&self, world: &mut World, channel: &ChannelId, thread: &MessageTs) {
        if world.statuses.remove(&format!("{channel}/{thread}")).is_some() {
            let (channel, thread_ts) = (channel.clone(), thread.clone());
            self.announce(Change::Status { channel, thread_ts, text: String::new() });
        }
    }

    /// Notifies the page of a change of the root, which shows the number of replies. The first
    /// reply also gives the root its `thread_ts`.
    fn root_changed(&self, world: &mut World, reply: &Message) {
        let root_ts = reply.root().clone();
        let Some(root) = world.message_mut(&reply.channel, &root_ts) else { return };
        root.thread_ts = Some(root_ts);
        let root = root.clone();
        self.announce(Change::edited(&root, world));
    }
}

/// Returns the layout with new ids for blocks and elements that have none, like Slack.
pub(super) fn assign_ids(mut blocks: Vec<Value>, world: &mut World) -> Vec<Value> {
    for block in &mut blocks {
        if block["block_id"].as_str().unwrap_or_default().is_empty() {
            block["block_id"] = json!(world.next_id("b"));
        }
        for single in ["accessory", "element"] {
            if block[single].is_object() && block[single]["type"] != "image" {
                assign_element_id(&mut block[single], world);
            }
        }
        if block["type"] == "actions" || block["type"] == "context_actions" {
            for element in block["elements"].as_array_mut().into_iter().flatten() {
                assign_element_id(element, world);
            }
        }
    }
    blocks
}

fn assign_element_id(element: &mut Value, world: &mut World) {
    if element["action_id"].as_str().unwrap_or_default().is_empty() {
        element["action_id"] = json!(world.next_id("a"));
    }
}
