//! `countersign-playground`: a workspace in the browser, with the bot and stand-ins for the platforms.
//!
//! It runs the production bot, which connects to the stand-ins over the network, with Socket Mode, as it would to the
//! real systems.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use async_trait::async_trait;
use countersign::app::{Bot, models::Offered, stdout::write_line};
use countersign_config::{ChosenModel, Config, Provider};
use countersign_conversation::record::trace::Traces;
use countersign_core::{
    clock::SystemClock,
    ids::{TeamId, ThreadId},
};
use countersign_email::register::MailRegister;
use countersign_store::sqlite;
use secrecy::SecretString;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    customers::{self, SandboxCustomers},
    mail_stand_in::MailStandIn,
    page::{self, CustomerMail, Suggestion, TraceSource},
    platform_stand_in::PlatformStandIn,
    sandbox,
};

/// The name of the bot's store in a data folder.
const STORE_FILE: &str = "threads.sqlite";

/// The options of the page.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The port of the page.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// The folder for the data of the workspace, the platforms and the bot.
    #[arg(long, default_value = ".countersign", value_name = "FOLDER")]
    data: PathBuf,
    /// Start over: delete the data in that folder.
    #[arg(long)]
    reset: bool,
}

/// Runs until `stop`. The playground's own workspace, platforms and store replace those in the settings.
///
/// # Errors
///
/// If something cannot be opened; the error says what, and why.
pub async fn run(options: Options, mut config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    let Options { port, data, reset } = options;
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .with_context(|| format!("cannot listen on 127.0.0.1:{port}; choose another port with --port"))?;
    if reset {
        delete_data(&data)?;
    }
    std::fs::create_dir_all(&data).with_context(|| format!("cannot create the folder {}", data.display()))?;

    let world = sandbox::World::start(sandbox::Options::kept_in(&data).with_mail()).await?;
    config.server.port = 0;
    config.slack.api_url = world.slack.api_url();
    config.slack.mode = Some(countersign_config::SlackMode::Socket);
    config.slack.bot_token = Some(SecretString::from(world.slack.bot_token().to_owned()));
    config.slack.app_token = Some(SecretString::from(world.slack.app_token().to_owned()));
    world.platform.accept_tools(Arc::new(SystemClock)).await?;
    world.platform.apply_to(&mut config);
    if let Some(mail) = &world.mail {
        mail.apply_to(&mut config);
        config.email.gmail_web_url = format!("http://{}/", listener.local_addr()?);
    }
    config.slack.agent_view = true;
    config.store.kind = Some(countersign_config::StoreKind::Sqlite);
    config.store.path = data.join(STORE_FILE);
    config.approvals.digest_key_file = None; // the default: beside the store
    config.approvals.digest_keys = None;

    let bot = Bot::start(&config, Arc::new(SystemClock), stop.clone()).await?;
    let traces =
        PlaygroundTraces { traces: Traces::new(bot.store()), team: world.slack.look(|world| world.team.clone()) };
    let invitations = bot.registry().invitations().chain(world.platform.suggestion());
    let everywhere = invitations.map(|(why, text)| Suggestion { why, text, channel: None });
    let suggestions: Vec<_> = everywhere.chain(customers::SUGGESTIONS.iter().copied()).collect();
    let customers = world.mail.as_ref().map(|mail| -> Arc<dyn CustomerMail> {
        let book = MailRegister::new(bot.store(), MailStandIn::ADDRESS);
        Arc::new(SandboxCustomers::new(mail.gmail.clone(), book))
    });
    let page = page::router(world.slack.router(), Arc::new(traces), &suggestions, customers);
    let understood = match Offered::ask(&config).await.with_names(&config).model.general() {
        Some(ChosenModel { name, provider, .. }) => format!("what you write, with {name} by {provider}"),
        None => {
            let variables = Provider::ALL.map(Provider::key_variable).join(" or ");
            format!("its documented phrases; set {variables} for a language model")
        }
    };
    write_line(format_args!("Countersign is at http://{}", listener.local_addr()?))?;
    write_line(format_args!(
        "It understands {understood}. Stop it with Ctrl-C; everything is kept in {}.",
        data.display()
    ))?;
    let stopped = stop.clone();
    // Each page keeps an event stream open, so the server does not wait for connections to close.
    let page = async {
        tokio::select! {
            served = axum::serve(listener, page) => served.context("the page failed"),
            () = stopped.cancelled() => Ok(()),
        }
    };
    let (page, bot) = tokio::join!(page, bot.run(stop.clone()));
    world.stop().await;
    page.and(bot)
}

/// Removes the data of an earlier playground. Refuses to touch a folder that is not a playground's, or is in use.
fn delete_data(data: &Path) -> anyhow::Result<()> {
    if !data.exists() {
        return Ok(());
    }
    let store = data.join(STORE_FILE);
    let marks = [data.join(sandbox::SLACK_FILE), data.join(PlatformStandIn::FILE), store.clone()];
    let ours = marks.iter().any(|mark| mark.exists());
    let empty = std::fs::read_dir(data)?.next().is_none();
    anyhow::ensure!(ours || empty, "{} doesn't look like a playground's folder, so it was left alone", data.display());
    let _lock = sqlite::lock(&store).context("nothing was reset")?;
    for entry in std::fs::read_dir(data)? {
        let (path, folder) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?.is_dir())))?;
        if path.file_name() != sqlite::lock_of(&store).file_name() {
            let removed = if folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            removed.with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// The traces of the playground's workspace.
struct PlaygroundTraces {
    traces: Traces,
    team: TeamId,
}

#[async_trait]
impl TraceSource for PlaygroundTraces {
    async fn threads(&self) -> Result<Value, String> {
        self.traces.threads().await.map_err(|error| error.to_string())
    }

    async fn trace(&self, channel: &str, ts: &str) -> Result<Option<Value>, String> {
        let thread = ThreadId { team: self.team.clone(), channel: channel.into(), root: ts.into() };
        self.traces.trace(&thread).await.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_data_of_a_playground_that_is_not_running_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let [ours, foreign] = ["ours", "foreign"].map(|name| dir.path().join(name));
        for folder in [ours.join("slack.files"), foreign.clone()] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(ours.join(sandbox::SLACK_FILE), "{}").unwrap();
        std::fs::write(foreign.join("thesis.tex"), "…").unwrap();

        let running = sqlite::lock(&ours.join(STORE_FILE)).unwrap();
        let refused = delete_data(&ours).unwrap_err();
        assert!(format!("{refused:#}").contains("another process"), "{refused:#}");
        assert!(ours.join(sandbox::SLACK_FILE).exists());
        drop(running);
        delete_data(&ours).unwrap();
        assert!(!ours.join(sandbox::SLACK_FILE).exists() && !ours.join("slack.files").exists());

        assert!(delete_data(&foreign).is_err() && foreign.join("thesis.tex").exists());
        delete_data(&dir.path().join("none")).unwrap();
    }
}
