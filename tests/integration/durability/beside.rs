//! The systems that stand beside Slack and UpGrade in some dialogues: a simulation bridge, an MCP server, a language model,
//! or all that mail needs.

use std::{path::Path, sync::Arc, time::Duration};

use countersign::{
    capabilities::ChangingOffer as _,
    clock::SystemClock,
    mcp::{McpServer, settings::Server},
};
use countersign_sandbox::{
    bridge::{self, Bridge, Version},
    mcp::{self, SandboxMcp},
    model::SandboxModel,
};
use serde_json::{Value, json};

use super::mail_servers::{MailServers, Writer};

/// The tools of the MCP server that are offered.
const TOOLS: &[&str] = &["list-notes", "sign-board"];
/// The time that a run takes unless it is held: long enough for its event stream to be opened.
const RUN: Duration = Duration::from_millis(100);

/// A system beside the usual ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Beside {
    /// None.
    #[default]
    Nothing,
    /// A simulation bridge of a version.
    Bridge(Version),
    /// An MCP server that keeps notes, with its tools accepted.
    Notes,
    /// A language model, whose answers are streamed.
    Model,
    /// The team's mail.
    Mail(Writer),
}

/// The running one.
pub(super) enum Running {
    Nothing,
    Bridge(Arc<Bridge>),
    Notes(SandboxMcp),
    Model(SandboxModel),
    Mail(Box<MailServers>),
}

impl Running {
    /// Starts it; `folder` is for its files.
    pub(super) async fn start(beside: Beside, folder: &Path) -> Self {
        match beside {
            Beside::Nothing => Self::Nothing,
            Beside::Bridge(version) => {
                let options = bridge::Options { run_takes: RUN, ..bridge::Options::quick(version) };
                Self::Bridge(Arc::new(Bridge::with(options).await.unwrap()))
            }
            Beside::Notes => {
                rustls::crypto::ring::default_provider().install_default().ok();
                let server = SandboxMcp::start(mcp::Options::default()).await.unwrap();
                let settings = Server {
                    url: Some(server.url()),
                    tools: TOOLS.iter().map(|tool| (*tool).to_owned()).collect(),
                    accepted: Some(folder.join("notes.json")),
                    ..Server::default()
                };
                let capability = McpServer::new("notes", &settings, Arc::new(SystemClock)).unwrap();
                capability.accept(true, &|_| ()).await.unwrap().1.unwrap();
                Self::Notes(server)
            }
            Beside::Model => {
                let model = SandboxModel::start(0).await.unwrap();
                model.answers_by(answer);
                Self::Model(model)
            }
            Beside::Mail(writer) => Self::Mail(Box::new(MailServers::start(writer).await)),
        }
    }

    /// The settings with which a bot finds it.
    pub(super) fn settings(&self, folder: &Path) -> Vec<(&'static str, String)> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Bridge(bridge) => vec![
                ("BRIDGE_URL", bridge.url()),
                ("BRIDGE_JWT_SECRET", bridge.jwt_secret().to_owned()),
                ("COUNTERSIGN__SIMULATION__TIMEOUT", "1s".to_owned()),
                ("COUNTERSIGN__SIMULATION__SETTLE_WITHIN", "1s".to_owned()),
                ("COUNTERSIGN__SIMULATION__MODELS", "/data/models".to_owned()),
                // Drawing a chart takes long on a machine with much else to do.
                ("COUNTERSIGN__WORKERS__LEASE", "3s".to_owned()),
            ],
            Self::Notes(server) => vec![
                ("COUNTERSIGN__MCP__NOTES__URL", server.url()),
                ("COUNTERSIGN__MCP__NOTES__TOOLS", TOOLS.join(",")),
                ("COUNTERSIGN__MCP__NOTES__ACCEPTED", folder.join("notes.json").display().to_string()),
                ("COUNTERSIGN__MCP__NOTES__TIMEOUT", "2s".to_owned()),
            ],
            Self::Model(model) => {
                vec![("ANTHROPIC_BASE_URL", model.url()), ("ANTHROPIC_API_KEY", model.api_key().to_owned())]
            }
            Self::Mail(mail) => mail.settings(folder),
        }
    }

    /// The addresses of the servers without a path.
    pub(super) fn origins(&self) -> Vec<String> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Bridge(bridge) => vec![bridge.url()],
            Self::Notes(server) => vec![server.url().trim_end_matches("/mcp").to_owned()],
            Self::Model(model) => vec![model.url()],
            Self::Mail(mail) => mail.origins(),
        }
    }

    /// The changes that were made there.
    pub(super) fn effects(&self) -> usize {
        match self {
            Self::Nothing | Self::Model(_) => 0,
            Self::Bridge(bridge) => bridge.audit().iter().filter(|call| call.done).count(),
            Self::Notes(server) => server.calls().len(),
            Self::Mail(mail) => mail.gmail.sent().len(),
        }
    }
}

/// What the model answers in the end.
pub(super) const ANSWER: &str = "A decision point is the place in an app where a condition is asked for. It has a site and \
                                 a target, and each user gets one condition there until the experiment ends.";

/// What the model answers, always the same to the same question: that it can answer at once, and then the answer.
fn answer(request: &Value) -> Vec<Value> {
    let offered = request["tools"].as_array().into_iter().flatten();
    if offered.map(|tool| &tool["name"]).any(|name| name == "analyze_user_request") {
        let input =
            json!({ "intent_type": "direct_answer", "confidence": 0.95, "user_request_summary": "A question." });
        return vec![json!({ "type": "tool_use", "name": "analyze_user_request", "input": input })];
    }
    vec![json!({ "type": "text", "text": ANSWER })]
}
