//! Menus whose options are requested from the app while a person types: `block_suggestion`.

use std::sync::Arc;

use countersign_core::ids::{ChannelId, MessageTs, UserId};
use serde_json::{Value, json};

use super::{
    Error, SandboxSlack, check,
    delivery::Kind,
    server::Server,
    world::message::{interactive, text_of},
};

impl SandboxSlack {
    /// Types `typed` into the menu with this action id, in the message `ts`. Returns the options
    /// that the app suggests.
    ///
    /// # Errors
    ///
    /// [`Error::Nothing`] if there is no such menu; [`Error::Unanswered`] if the app did not answer
    /// in time, or with options that cannot be shown; the latter is recorded in the ledger.
    pub async fn types_into(
        &self,
        user: &str,
        channel: &str,
        ts: &MessageTs,
        action_id: &str,
        typed: &str,
    ) -> Result<Vec<Value>, Error> {
        let (user, channel) = self.server.who_and_where(user, channel)?;
        self.server.suggest(&user, &channel, ts, action_id, typed).await
    }
}

impl Server {
    async fn suggest(
        self: &Arc<Self>,
        user: &UserId,
        channel: &ChannelId,
        ts: &MessageTs,
        action_id: &str,
        typed: &str,
    ) -> Result<Vec<Value>, Error> {
        let payload = {
            let mut world = self.world();
            let message = world.message(channel, ts).filter(|message| !message.deleted);
            let message = message.ok_or_else(|| Error::Nothing(format!("message `{ts}`")))?.clone();
            let is_external = |kind: &str| matches!(kind, "external_select" | "multi_external_select");
            let menu = interactive(&message.blocks)
                .into_iter()
                .find(|(_, element)| element["action_id"] == action_id && is_external(&text_of(&element["type"])));
            let (block_id, _) = menu.ok_or_else(|| Error::Nothing(format!("menu `{action_id}`")))?;
            let mut payload = self.suggestion_wanted(&mut world, user, &message);
            payload["action_id"] = json!(action_id);
            payload["block_id"] = json!(block_id);
            payload["value"] = json!(typed);
            payload
        };
        let answer = self.ask_app(Kind::Interaction, "block_suggestion", payload).await?.unwrap_or_default();
        let checked = check::suggestions(&answer);
        let shown = checked.is_ok();
        self.record_problem("block_suggestion", checked);
        if !shown {
            return Err(Error::Unanswered);
        }
        let grouped = answer["option_groups"].as_array().into_iter().flatten();
        let grouped = grouped.flat_map(|group| group["options"].as_array().into_iter().flatten());
        Ok(answer["options"].as_array().into_iter().flatten().chain(grouped).cloned().collect())
    }
}
