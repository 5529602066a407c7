//! Messages and their visible text.

use countersign_core::ids::{ChannelId, MessageTs, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::World;

/// A message in a channel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    /// The timestamp, which is the id of the message in its channel.
    pub ts: MessageTs,
    /// The channel.
    pub channel: ChannelId,
    /// The root of its thread, if it is a reply.
    pub thread_ts: Option<MessageTs>,
    /// The author.
    pub user: UserId,
    /// True if the app posted it.
    pub by_app: bool,
    /// The text, as mrkdwn.
    pub text: String,
    /// The layout, if there is one.
    pub blocks: Vec<Value>,
    /// The metadata that the app attached. Every member can read it.
    pub metadata: Option<Value>,
    /// The timestamp of the last edit that is visible to readers.
    pub edited: Option<MessageTs>,
    /// True if it was deleted.
    pub deleted: bool,
    /// The only person who sees it, if it is ephemeral.
    pub ephemeral_to: Option<UserId>,
    /// The ids of attached files.
    pub files: Vec<String>,
    /// The state of the stream, if it began as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamState>,
    /// Earlier layouts, oldest first. A person may still see and press one of their buttons.
    pub earlier: Vec<Vec<Value>>,
}

/// The state of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamState {
    /// Text is added to it.
    InProgress,
    /// It is stopped.
    Completed,
}

/// A button.
#[derive(Clone, Debug, PartialEq)]
pub struct Button {
    /// The label.
    pub label: String,
    /// The id of its block.
    pub block_id: String,
    /// The action id.
    pub action_id: String,
    /// The value.
    pub value: Option<String>,
    /// The style: `primary`, `danger` or none.
    pub style: Option<String>,
    /// The whole element.
    pub element: Value,
}

impl Message {
    /// Returns true if it is not a reply in a thread.
    pub fn is_root(&self) -> bool {
        self.thread_ts.as_ref().is_none_or(|thread| *thread == self.ts)
    }

    /// Returns the root of its thread, or the message itself.
    pub fn root(&self) -> &MessageTs {
        self.thread_ts.as_ref().unwrap_or(&self.ts)
    }

    /// Returns the buttons, from top to bottom.
    pub fn buttons(&self) -> Vec<Button> {
        interactive(&self.blocks)
            .into_iter()
            .filter(|(_, element)| element["type"] == "button")
            .map(|(block_id, element)| Button {
                label: text_of(&element["text"]),
                block_id,
                action_id: text_of(&element["action_id"]),
                value: element["value"].as_str().map(str::to_owned),
                style: element["style"].as_str().map(str::to_owned),
                element,
            })
            .collect()
    }

    /// Returns the button with this label.
    pub fn button(&self, label: &str) -> Option<Button> {
        self.buttons().into_iter().find(|button| button.label == label)
    }

    /// Returns the text that a reader sees: a line for each block, with buttons in brackets, or the
    /// plain text if there are no blocks.
    pub fn words(&self) -> String {
        if self.blocks.is_empty() {
            return self.text.clone();
        }
        words_of(&self.blocks)
    }

    /// Returns the message in the format of the Web API and events.
    pub fn wire(&self, world: &World) -> Value {
        let mut wire = Map::new();
        wire.insert("type".to_owned(), json!("message"));
        wire.insert("user".to_owned(), json!(self.user));
        wire.insert("text".to_owned(), json!(self.text));
        wire.insert("ts".to_owned(), json!(self.ts));
        let team = world.team_of(&self.user);
        wire.insert("team".to_owned(), json!(team));
        if *team != world.team {
            wire.insert("user_team".to_owned(), json!(team));
            wire.insert("source_team".to_owned(), json!(team));
        }
        if self.by_app {
            wire.insert("bot_id".to_owned(), json!(world.app.bot_id));
            wire.insert("app_id".to_owned(), json!(world.app.id));
            wire.insert(
                "bot_profile".to_owned(),
                json!({ "id": world.app.bot_id, "app_id": world.app.id, "name": "countersign", "deleted": false,
                        "updated": 1_700_000_000, "team_id": world.team }),
            );
        }
        if !self.blocks.is_empty() {
            wire.insert("blocks".to_owned(), json!(self.blocks));
        }
        if let Some(state) = self.stream {
            wire.insert("streaming_state".to_owned(), json!(state));
        }
        if let Some(thread) = &self.thread_ts {
            wire.insert("thread_ts".to_owned(), json!(thread));
            if let Some(root) = world.message(&self.channel, thread).filter(|_| !self.is_root()) {
                wire.insert("parent_user_id".to_owned(), json!(root.user));
            }
        }
        if let Some(edited) = &self.edited {
            wire.insert("edited".to_owned(), json!({ "user": self.user, "ts": edited }));
        }
        if !self.files.is_empty() {
            let files: Vec<Value> =
                self.files.iter().filter_map(|id| world.files.get(id)).map(|f| f.wire_in_message(world)).collect();
            wire.insert("files".to_owned(), json!(files));
        }
        Value::Object(wire)
    }

    /// Returns the message in the format of the page.
    pub fn shown(&self, world: &World) -> Value {
        let replies: Vec<&Message> =
            if self.is_root() { world.replies(&self.channel, &self.ts).collect() } else { Vec::new() };
        let mut reply_users: Vec<&UserId> = Vec::new();
        for reply in &replies {
            if !reply_users.contains(&&reply.user) {
                reply_users.push(&reply.user);
            }
        }
        let files: Vec<Value> = self.files.iter().filter_map(|id| world.files.get(id)).map(|f| f.shown()).collect();
        let mut shown = json!({
            "ts": self.ts, "channel": self.channel, "user": self.user, "text": self.text,
            "reply_count": replies.len(), "reply_users": reply_users, "latest_reply": replies.last().map(|m| &m.ts),
            "files": files,
        });
        if let Some(thread) = &self.thread_ts {
            shown["thread_ts"] = json!(thread);
        }
        if !self.blocks.is_empty() {
            shown["blocks"] = json!(self.blocks);
        }
        if self.stream == Some(StreamState::InProgress) {
            shown["streaming"] = json!(true);
        }
        if self.edited.is_some() {
            shown["edited"] = json!(true);
        }
        if self.deleted {
            shown["deleted"] = json!(true);
            shown["text"] = json!("This message was deleted.");
            shown.as_object_mut().expect("it is an object").remove("blocks");
        }
        if self.ephemeral_to.is_some() {
            shown["ephemeral"] = json!(true);
        }
        shown
    }
}

/// Returns every interactive element of a layout, with the id of its block.
pub(in crate::slack) fn interactive(blocks: &[Value]) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for block in blocks {
        let block_id = text_of(&block["block_id"]);
        let single = [&block["accessory"], &block["element"]];
        let several = ["elements", "actions", "child_blocks"].map(|several| block[several].as_array());
        for inner in single.into_iter().chain(several.into_iter().flatten().flatten()) {
            if inner["action_id"].is_string() {
                found.push((block_id.clone(), inner.clone()));
            } else if inner.is_object() {
                // Cards and containers contain further elements.
                let own = interactive(std::slice::from_ref(inner)).into_iter();
                found.extend(own.map(|(id, element)| (if id.is_empty() { block_id.clone() } else { id }, element)));
            }
        }
    }
    found
}

/// Returns the text of a text object or a string; an empty text for anything else.
pub(in crate::slack) fn text_of(value: &Value) -> String {
    value.as_str().or_else(|| value["text"].as_str()).unwrap_or_default().to_owned()
}

/// Returns the text of a layout, with a line for each block.
pub(super) fn words_of(blocks: &[Value]) -> String {
    let lines: Vec<String> = blocks.iter().map(block_words).filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

fn block_words(block: &Value) -> String {
    match block["type"].as_str().unwrap_or_default() {
        "divider" => "---".to_owned(),
        "task_card" => format!("({}: {})", text_of(&block["title"]), text_of(&block["status"])),
        "context_actions" => String::new(), // small icons next to the message, which have no text
        "actions" => elements(block, |element| format!("[{}]", element_words(element)), " "),
        "context" => elements(block, element_words, " "),
        "image" => format!("({})", text_of(&block["alt_text"])),
        "rich_text" => rich_text_words(block),
        "table" => {
            let rows = block["rows"].as_array().into_iter().flatten();
            let row = |row: &Value| {
                let cells = row.as_array().into_iter().flatten();
                cells.map(block_words_or_text).collect::<Vec<_>>().join(" | ")
            };
            rows.map(row).collect::<Vec<_>>().join("\n")
        }
        _ => {
            let fields = block["fields"].as_array().into_iter().flatten().map(text_of);
            let mut lines: Vec<String> = std::iter::once(text_of(&block["text"])).chain(fields).collect();
            if block["accessory"].is_object() {
                lines.push(format!("[{}]", element_words(&block["accessory"])));
            }
            lines.retain(|line| !line.is_empty());
            lines.join("\n")
        }
    }
}

fn block_words_or_text(cell: &Value) -> String {
    if cell["type"] == "rich_text" { rich_text_words(cell) } else { text_of(cell) }
}

fn elements(block: &Value, words: impl Fn(&Value) -> String, between: &str) -> String {
    block["elements"].as_array().into_iter().flatten().map(words).collect::<Vec<_>>().join(between)
}

fn element_words(element: &Value) -> String {
    for key in ["text", "placeholder", "alt_text"] {
        let words = text_of(&element[key]);
        if !words.is_empty() {
            return words;
        }
    }
    text_of(&element["action_id"])
}

fn rich_text_words(value: &Value) -> String {
    match value["type"].as_str().unwrap_or_default() {
        "text" => text_of(&value["text"]),
        "user" => format!("<@{}>", text_of(&value["user_id"])),
        "link" => text_of(if value["text"].is_string() { &value["text"] } else { &value["url"] }),
        "date" => {
            let [format, fallback] = [&value["format"], &value["fallback"]].map(text_of);
            format!("<!date^{}^{format}|{fallback}>", value["timestamp"])
        }
        "emoji" => format!(":{}:", text_of(&value["name"])),
        "rich_text_list" => elements(value, |item| format!("• {}", rich_text_words(item)), "\n"),
        "rich_text" => elements(value, rich_text_words, "\n"),
        _ => elements(value, rich_text_words, ""),
    }
}
