//! All that mail needs: stand-ins for Gmail, Google's tokens, the calendar and HubSpot, and a model where one writes.

use std::{ops::Deref, path::Path};

use countersign_playground::mail_stand_in::{MailOptions, MailStandIn};
use countersign_sandbox::model::SandboxModel;
use serde_json::{Value, json};

/// The channel of mails, in which the dialogues are held.
const CHANNEL: &str = "C1";
/// What the model writes, at first and when it is asked for something shorter.
const DRAFTS: [&str; 2] = ["Hello Dana,\n\nthe small plan costs 5 a month.\n\nSupport", "It costs 5 a month."];

/// Who writes the drafts, and who decides about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// Templates; a person decides.
    Templates,
    /// A model; a person decides.
    Model,
    /// A model, and the operator lets sure answers be sent without a person.
    Automatic,
}

/// The running servers.
pub(super) struct MailServers {
    servers: MailStandIn,
    model: Option<SandboxModel>,
    writer: Writer,
}

impl Deref for MailServers {
    type Target = MailStandIn;

    fn deref(&self) -> &MailStandIn {
        &self.servers
    }
}

impl MailServers {
    pub(super) async fn start(writer: Writer) -> Self {
        let servers = MailStandIn::start(&MailOptions::default(), CHANNEL.into()).await.unwrap();
        let model = match writer {
            Writer::Templates => None,
            Writer::Model | Writer::Automatic => {
                let model = SandboxModel::start(0).await.unwrap();
                model.answers_by(answer);
                Some(model)
            }
        };
        Self { servers, model, writer }
    }

    /// The settings with which a bot finds them.
    pub(super) fn settings(&self, folder: &Path) -> Vec<(&'static str, String)> {
        let mut settings = self.servers.variables();
        settings.extend([
            ("COUNTERSIGN__EMAIL__TIMEOUT", "2s".to_owned()),
            ("COUNTERSIGN__EMAIL__CONTEXT_PATH", folder.join("mail-context.sqlite").display().to_string()),
            ("COUNTERSIGN__EMAIL__AUTOMATIC", (self.writer == Writer::Automatic).to_string()),
        ]);
        if let Some(model) = &self.model {
            settings.push(("ANTHROPIC_BASE_URL", model.url()));
            settings.push(("ANTHROPIC_API_KEY", model.api_key().to_owned()));
        }
        settings
    }

    /// The addresses of the servers without a path.
    pub(super) fn origins(&self) -> Vec<String> {
        let addresses = self.servers.variables().into_iter().filter(|(name, _)| name.ends_with("_URL"));
        let origin = |url: String| url.split('/').take(3).collect::<Vec<_>>().join("/");
        let model = self.model.iter().map(SandboxModel::url);
        addresses.map(|(_, url)| origin(url)).chain(model).collect()
    }

    /// How often the bot has asked what is new since it knows the mailbox.
    pub(super) fn rounds(&self) -> usize {
        let requests = self.servers.gmail.ledger();
        requests.iter().filter(|request| request.path.ends_with("/history") && request.status == Some(200)).count()
    }
}

/// What the model answers, always the same to the same question.
fn answer(request: &Value) -> Vec<Value> {
    let asked = request["tools"].as_array().and_then(|tools| tools.last()).map(|tool| tool["name"].clone());
    let asked = asked.unwrap_or_default();
    let input = match asked.as_str().unwrap_or_default() {
        "classification" => {
            json!({ "classification": "inquiry", "confidence": 0.95, "reasoning": "It asks for a price." })
        }
        "tools" => {
            json!({ "tools": ["get_contact"], "start": "", "days": 7, "reasoning": "The sender may be known." })
        }
        "draft" => {
            let is_second = request.to_string().contains("colleague_asks");
            json!({ "reply": DRAFTS[usize::from(is_second)], "confidence": 0.95 })
        }
        other => panic!("nobody asks a model for {other:?} here"),
    };
    vec![json!({ "type": "tool_use", "name": asked, "input": input })]
}
