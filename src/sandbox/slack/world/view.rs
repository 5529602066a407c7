//! A modal or a Home tab.

use countersign_core::ids::UserId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::World;

/// A modal or a Home tab, as shown to one person.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct View {
    /// The id, which starts with `V`.
    pub id: String,
    /// The person who sees it.
    pub user: UserId,
    /// The hash, which changes with each update.
    pub hash: String,
    /// The id of the first modal in the stack.
    pub root: String,
    /// The id of the modal below, if there is one.
    pub below: Option<String>,
    /// The view payload, as sent by the app.
    pub content: Value,
    /// The values of the input fields, by block id and action id.
    pub values: Value,
    /// True if it is still shown.
    pub open: bool,
}

impl View {
    /// Returns the type of the view, `modal` or `home`.
    pub fn kind(&self) -> &str {
        self.content["type"].as_str().unwrap_or_default()
    }

    /// Returns the title of a modal.
    pub fn title(&self) -> String {
        super::message::text_of(&self.content["title"])
    }

    /// Returns the layout blocks.
    pub fn blocks(&self) -> &[Value] {
        self.content["blocks"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the visible text, with a line for each block.
    pub fn words(&self) -> String {
        super::message::words_of(self.blocks())
    }

    /// Returns the view as JSON, in the format that the Web API, interaction payloads and the page use.
    pub fn wire(&self, world: &World) -> Value {
        let mut wire = self.content.clone();
        for (key, default) in [
            ("private_metadata", json!("")),
            ("callback_id", json!("")),
            ("external_id", json!("")),
            ("clear_on_close", json!(false)),
            ("notify_on_close", json!(false)),
            ("title", json!({ "type": "plain_text", "text": "", "emoji": true })),
            ("close", Value::Null),
            ("submit", Value::Null),
        ] {
            if wire[key].is_null() {
                wire[key] = default;
            }
        }
        wire["id"] = json!(self.id);
        wire["team_id"] = json!(world.team);
        wire["app_id"] = json!(world.app.id);
        wire["bot_id"] = json!(world.app.bot_id);
        wire["app_installed_team_id"] = json!(world.team);
        wire["hash"] = json!(self.hash);
        wire["root_view_id"] = json!(self.root);
        wire["previous_view_id"] = json!(self.below);
        wire["state"] = json!({ "values": self.values });
        wire
    }
}
