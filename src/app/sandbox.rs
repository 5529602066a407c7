//! `countersign sandbox`: the stand-ins alone, to try `countersign serve` against.

use std::path::{Path, PathBuf};

use anyhow::Context;
use countersign_config as config;
use countersign_sandbox::{
    model::SandboxModel,
    slack::{self, SandboxSlack},
};
use tokio_util::sync::CancellationToken;

use super::{
    installed::{self, StandIn},
    stand_in,
    stdout::write_line,
};

/// The file of the workspace in a data folder.
pub const SLACK_FILE: &str = "slack.json";

/// The secret that the stand-in signs its requests with; it need not be hidden, as only a sandbox accepts it.
const SIGNING_SECRET: &str = "sandbox-signing-secret";

/// The options of the sandbox.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// The port of the stand-in for Slack; 0 takes a free one.
    #[arg(long, default_value_t = 8090)]
    slack_port: u16,
    /// The port of the stand-in for a language model, which answers as the grammar does; 0 takes a free one, and
    /// without it there is none.
    #[arg(long)]
    model_port: Option<u16>,
    /// Send events to this address as HTTP requests instead of Socket Mode.
    #[arg(long, value_name = "URL", value_parser = address)]
    events_url: Option<String>,
    /// Keep both worlds in this folder.
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Write every call, delivery and change to files in this folder, a line of JSON each.
    #[arg(long, value_name = "FOLDER")]
    ledger: Option<PathBuf>,
    #[command(flatten)]
    platform: installed::StandInOptions,
}

/// Checks that a text is an address.
fn address(text: &str) -> Result<String, String> {
    config::wrong_address(text).map_or_else(|| Ok(text.to_owned()), Err)
}

impl Options {
    /// Options for stand-ins that are kept in a folder, on free ports.
    pub fn kept_in(data: &Path) -> Self {
        Self { data: Some(data.to_owned()), ..Self::default() }
    }
}

/// Returns the scopes of an app that is declared an agent, so that the page can show all that Slack has for one.
fn as_agent() -> Vec<String> {
    let mut scopes = slack::Options::default().scopes;
    scopes.push("assistant:write".to_owned());
    scopes
}

/// All stand-ins.
pub struct World {
    /// Slack.
    pub slack: SandboxSlack,
    /// The platform.
    pub platform: StandIn,
    /// The language model, if one was asked for.
    pub model: Option<SandboxModel>,
}

impl World {
    /// Starts the stand-ins.
    ///
    /// # Errors
    ///
    /// If a port is taken, or a folder cannot be made or a file not be read.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let Options { slack_port, model_port, events_url, data, ledger, platform } = options;
        for folder in [&data, &ledger].into_iter().flatten() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        let mode = match events_url {
            Some(events_url) => {
                slack::Mode::Http { events_url: Some(events_url), signing_secret: SIGNING_SECRET.to_owned() }
            }
            None => slack::Mode::Socket,
        };
        let slack = SandboxSlack::start(slack::Options {
            port: slack_port,
            mode,
            persist: data.as_ref().map(|data| data.join(SLACK_FILE)),
            ledger: ledger.as_ref().map(|folder| folder.join("slack.jsonl")),
            scopes: as_agent(),
            ..slack::Options::default()
        })
        .await?;
        let platform = StandIn::start(platform, data.as_deref(), ledger.as_deref()).await?;
        let model = match model_port {
            None => None,
            Some(port) => {
                let model =
                    SandboxModel::start(port).await.context("the stand-in for a language model cannot start")?;
                model.answers_by(stand_in::answers()?);
                Some(model)
            }
        };
        Ok(Self { slack, platform, model })
    }

    /// Ends the stand-ins and saves their data.
    pub async fn stop(self) {
        self.slack.stop().await;
        self.platform.stop().await;
        if let Some(model) = self.model {
            model.stop().await;
        }
    }
}

/// Runs the stand-ins until `stop`.
///
/// # Errors
///
/// If a port is taken or a file cannot be read.
pub async fn run(options: Options, stop: CancellationToken) -> anyhow::Result<()> {
    let world = World::start(options).await?;
    write_line(format_args!("SLACK_API_URL={}", world.slack.api_url()))?;
    write_line(format_args!("SLACK_BOT_TOKEN={}", world.slack.bot_token()))?;
    write_line(format_args!("SLACK_APP_TOKEN={}", world.slack.app_token()))?;
    write_line(format_args!("SLACK_SIGNING_SECRET={}", world.slack.signing_secret()))?;
    for (name, value) in world.platform.variables() {
        write_line(format_args!("{name}={value}"))?;
    }
    if let Some(model) = &world.model {
        write_line(format_args!("ANTHROPIC_BASE_URL={}", model.url()))?;
        write_line(format_args!("ANTHROPIC_API_KEY={}", model.api_key()))?;
    }
    stop.cancelled().await;
    world.stop().await;
    Ok(())
}
