//! `countersign-playground sandbox`: runs only the stand-ins, for trying out `countersign serve` against them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use countersign::app::stdout::write_line;
use countersign_config as config;
use countersign_core::clock::SystemClock;
use countersign_sandbox::{
    model::SandboxModel,
    slack::{self, SandboxSlack},
};
use tokio_util::sync::CancellationToken;

use crate::{
    mail_stand_in::{CHANNEL, MailOptions, MailStandIn},
    model_stand_in,
    platform_stand_in::{PlatformOptions, PlatformStandIn},
};

/// The name of the file in the data folder that contains the workspace.
pub const SLACK_FILE: &str = "slack.json";

/// The secret with which the stand-in for Slack signs its requests. It may be public, since it is
/// accepted only by a bot that runs against a sandbox.
const SIGNING_SECRET: &str = "sandbox-signing-secret";

/// The options of the sandbox.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// The port of the stand-in for Slack; 0 picks a free one.
    #[arg(long, default_value_t = 8090)]
    slack_port: u16,
    /// The port of the stand-in for a language model, which answers as the grammar does; 0 picks a
    /// free one. Without this option, it isn't started.
    #[arg(long)]
    model_port: Option<u16>,
    /// Send events to this address as HTTP requests instead of Socket Mode.
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    events_url: Option<String>,
    /// Store the data of the stand-ins in this folder.
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Write every call, delivery and change to files in this folder, as one line of JSON each.
    #[arg(long, value_name = "FOLDER")]
    ledger: Option<PathBuf>,
    #[command(flatten)]
    platform: PlatformOptions,
    #[command(flatten)]
    mail: MailOptions,
}

/// Checks that a text is a valid URL.
fn parse_url(text: &str) -> Result<String, String> {
    config::wrong_address(text).map_or_else(|| Ok(text.to_owned()), Err)
}

impl Options {
    /// Returns options for all stand-ins, on free ports, that store their data in this folder.
    pub fn kept_in(data: &Path) -> Self {
        Self { data: Some(data.to_owned()), platform: PlatformOptions::all(), ..Self::default() }
    }

    /// Adds the stand-ins for mail, on free ports.
    #[must_use]
    pub fn with_mail(self) -> Self {
        Self { mail: MailOptions::on_free_ports(), ..self }
    }
}

/// Returns the scopes of an app that is declared as an agent, so that the page can show all
/// features of Slack for agents.
fn agent_scopes() -> Vec<String> {
    let mut scopes = slack::Options::default().scopes;
    scopes.push("assistant:write".to_owned());
    scopes
}

/// All stand-ins.
pub struct World {
    /// The stand-in for Slack.
    pub slack: SandboxSlack,
    /// The stand-in for the platform.
    pub platform: PlatformStandIn,
    /// The stand-ins for the systems that mail needs, if they were requested.
    pub mail: Option<MailStandIn>,
    /// The stand-in for a language model, if one was requested.
    pub model: Option<SandboxModel>,
}

impl World {
    /// Starts the stand-ins.
    ///
    /// # Errors
    ///
    /// If a port is taken, a folder cannot be created, or a file cannot be read.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let Options { slack_port, model_port, events_url, data, ledger, platform, mail } = options;
        for folder in [&data, &ledger].into_iter().flatten() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot create the folder {}", folder.display()))?;
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
            scopes: agent_scopes(),
            ..slack::Options::default()
        })
        .await?;
        let platform = PlatformStandIn::start(platform, data.as_deref(), ledger.as_deref()).await?;
        let mail = match mail.mail {
            true => {
                let (name, topic) = CHANNEL;
                let channel = slack.public_channel(name, topic);
                Some(MailStandIn::with(&mail, channel, Arc::new(SystemClock), data.as_deref()).await?)
            }
            false => None,
        };
        let model = match model_port {
            None => None,
            Some(port) => {
                let model =
                    SandboxModel::start(port).await.context("the stand-in for a language model cannot start")?;
                model.answers_by(model_stand_in::answers()?);
                Some(model)
            }
        };
        Ok(Self { slack, platform, mail, model })
    }

    /// Returns the environment variables that point a bot to the stand-ins.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let slack = [
            ("SLACK_API_URL", self.slack.api_url()),
            ("SLACK_BOT_TOKEN", self.slack.bot_token().to_owned()),
            ("SLACK_APP_TOKEN", self.slack.app_token().to_owned()),
            ("SLACK_SIGNING_SECRET", self.slack.signing_secret().to_owned()),
        ];
        let of_model = self.model.iter().flat_map(|model| {
            [
                ("ANTHROPIC_BASE_URL", model.url()),
                ("ANTHROPIC_API_KEY", model.api_key().to_owned()),
                ("OPENAI_BASE_URL", model.openai_url()),
                ("OPENAI_API_KEY", model.api_key().to_owned()),
                ("GEMINI_BASE_URL", model.url()),
                ("GEMINI_API_KEY", model.api_key().to_owned()),
            ]
        });
        let of_mail = self.mail.iter().flat_map(MailStandIn::variables);
        slack.into_iter().chain(self.platform.variables()).chain(of_mail).chain(of_model).collect()
    }

    /// Stops the stand-ins and saves their data.
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
/// If the stand-ins cannot start; see [`World::start`].
pub async fn run(options: Options, stop: CancellationToken) -> anyhow::Result<()> {
    let world = World::start(options).await?;
    for (name, value) in world.variables() {
        write_line(format_args!("{name}={value}"))?;
    }
    stop.cancelled().await;
    world.stop().await;
    Ok(())
}
