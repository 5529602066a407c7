//! Slash commands.

use countersign_core::ids::{ChannelId, DedupKey, TeamId, UserId};
use serde_json::Value;

use super::{
    Identity, Inbound, UnreadableDelivery,
    field::{required, text},
    plain,
};

/// A slash command that a person sent. It is never in a thread, where Slack does not allow commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The command with its slash, such as `/countersign`.
    pub command: String,
    /// The text after the command, as plain text.
    pub text: String,
    /// The person who sent it.
    pub user: UserId,
    /// The workspace.
    pub team: TeamId,
    /// The channel in which it was sent.
    pub channel: ChannelId,
    /// The address for later answers, valid for 30 minutes and five uses.
    pub response_url: Option<String>,
    /// The id for opening a modal, valid for 3 s and one use.
    pub trigger_id: Option<String>,
    /// The key by which a repeat of this command is recognised.
    pub dedup: DedupKey,
}

/// Parses a command from the fields of a form or the payload of an envelope.
///
/// # Errors
///
/// [`UnreadableDelivery`] if a required field is missing.
pub fn read(fields: &Value, us: &Identity) -> Result<Inbound, UnreadableDelivery> {
    if let Some(why) = us.refuses_command(fields) {
        return Ok(Inbound::Ignored(why));
    }
    let trigger = required(fields, "/trigger_id")?;
    Ok(Inbound::Command(Command {
        command: required(fields, "/command")?.to_owned(),
        text: plain::plain(text(fields, "/text").unwrap_or_default()),
        user: required(fields, "/user_id")?.into(),
        team: text(fields, "/team_id")
            .or_else(|| text(fields, "/enterprise_id"))
            .map(|named| us.team_or(named.into()))
            .ok_or(UnreadableDelivery("/team_id"))?,
        channel: required(fields, "/channel_id")?.into(),
        response_url: text(fields, "/response_url").map(str::to_owned),
        trigger_id: Some(trigger.to_owned()),
        dedup: DedupKey::new(format!("command:{trigger}")),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_is_parsed() {
        let fields = json!({
            "token": "gone", "team_id": "T1", "team_domain": "lab", "channel_id": "C1", "channel_name": "general",
            "user_id": "U0ANA", "user_name": "ana", "command": "/upgrade", "text": "status &lt;all&gt; <@U0BO|bo>",
            "api_app_id": "A1", "is_enterprise_install": "false", "trigger_id": "1.2.abc",
            "response_url": "https://hooks.example.org/commands/1"
        });
        let Ok(Inbound::Command(command)) = read(&fields, &Identity::of("U0BOT")) else { panic!("no command") };
        assert_eq!((command.command.as_str(), command.text.as_str()), ("/upgrade", "status <all> @bo"));
        assert_eq!(command.dedup.as_str(), "command:1.2.abc");
        assert_eq!(command.response_url.as_deref(), Some("https://hooks.example.org/commands/1"));
    }

    #[test]
    fn a_command_without_text_is_parsed() {
        let fields = json!({ "command": "/upgrade", "text": "", "user_id": "U1", "enterprise_id": "E1", "team_id": null,
            "channel_id": "C1", "trigger_id": "1" });
        let Ok(Inbound::Command(command)) = read(&fields, &Identity::of("U0BOT")) else { panic!("no command") };
        assert_eq!((command.text.as_str(), command.team.as_str()), ("", "E1"));
    }

    #[test]
    fn a_form_that_is_no_command_is_unreadable() {
        assert_eq!(
            read(&json!({ "command": "/upgrade" }), &Identity::of("U0BOT")),
            Err(UnreadableDelivery("/trigger_id"))
        );
    }
}
