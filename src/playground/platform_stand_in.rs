//! The stand-ins for the platforms, and the settings that lead to them. No other file of the playground names a platform.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use countersign_capabilities::ChangingOffer as _;
use countersign_config::Config;
use countersign_core::{clock::Clock, private_file};
use countersign_experiments::settings;
use countersign_mcp as mcp;
use countersign_sandbox::{
    bridge::{self, Bridge},
    google::SandboxGoogle,
    mcp::{self as mcp_server, SandboxMcp},
    upgrade::{self, SandboxUpgrade},
};
use countersign_simulation::settings::SimulationSettings;

/// The name of [`last_subject`](countersign_assistant::state::AgentState::last_subject) in files of utterances.
pub(crate) const LAST_SUBJECT: &str = "last_experiment";

/// The options of the stand-ins.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PlatformOptions {
    /// The port of the stand-in for UpGrade; 0 picks a free one.
    #[arg(long, default_value_t = 8091)]
    upgrade_port: u16,
    /// The port of the stand-in for the simulation bridge; 0 picks a free one.
    #[arg(long, default_value_t = 8092)]
    bridge_port: u16,
    /// Make UpGrade require service account tokens, and write that account's key file here.
    #[arg(long, value_name = "FILE")]
    service_account: Option<PathBuf>,
    /// The port of a stand-in for an MCP server, named `mcp.notes`; 0 picks a free one. Without this option, it isn't
    /// started.
    #[arg(long)]
    mcp_port: Option<u16>,
}

impl PlatformOptions {
    /// Returns options for all stand-ins, each on a free port, with an MCP server.
    pub fn all() -> Self {
        Self { mcp_port: Some(0), ..Self::default() }
    }
}

/// The stand-ins for the platforms.
pub struct PlatformStandIn {
    upgrade: SandboxUpgrade,
    bridge: Bridge,
    /// The server that issues the tokens UpGrade requires, and the path of the key file; `None` if it requires none.
    google: Option<(SandboxGoogle, PathBuf)>,
    /// The stand-in for an MCP server, if one was requested.
    mcp: Option<SandboxMcp>,
    /// The file of the accepted tools of that server; `None` if no data is kept.
    accepted: Option<PathBuf>,
}

impl PlatformStandIn {
    /// The name of the file in the data folder that contains the data of UpGrade.
    pub const FILE: &str = "upgrade.json";

    /// Starts the stand-ins. The one for UpGrade keeps its data in the data folder and writes its calls and changes to
    /// a file in the ledger folder.
    ///
    /// # Errors
    ///
    /// If a port is taken, or a file cannot be read or written.
    pub async fn start(options: PlatformOptions, data: Option<&Path>, ledger: Option<&Path>) -> anyhow::Result<Self> {
        let google = match options.service_account {
            Some(path) => Some((start_google(&path).await?, path)),
            None => None,
        };
        let upgrade = SandboxUpgrade::start(upgrade::Options {
            port: options.upgrade_port,
            minted: google.as_ref().map(|(google, _)| google.tokens()),
            seed: true,
            persist: data.map(|data| data.join(Self::FILE)),
            ledger_file: ledger.map(|folder| folder.join("upgrade.jsonl")),
            ..upgrade::Options::default()
        })
        .await
        .context("the stand-in for UpGrade cannot start")?;
        let bridge = Bridge::with(bridge::Options {
            port: options.bridge_port,
            run_takes: RUN_TAKES,
            rate_limit: usize::MAX,
            ..bridge::Options::default()
        })
        .await
        .context("the stand-in for the simulation bridge cannot start")?;
        let mcp = match options.mcp_port {
            Some(port) => {
                let options = mcp_server::Options { port, ..mcp_server::Options::default() };
                Some(SandboxMcp::start(options).await.context("the stand-in for an MCP server cannot start")?)
            }
            None => None,
        };
        let accepted = data.map(|data| data.join(ACCEPTED_FILE));
        Ok(Self { upgrade, bridge, google, mcp, accepted })
    }

    /// Points the settings to the stand-ins instead of the real platforms. Real credentials are removed, so that none
    /// is sent to a stand-in.
    pub fn apply_to(&self, config: &mut Config) {
        let settings: &mut settings::Upgrade = config.sections.get_mut();
        settings.api_url = Some(self.upgrade.url());
        (settings.auth_token, settings.service_account) = (None, None);
        let simulation: &mut SimulationSettings = config.sections.get_mut();
        simulation.url = Some(self.bridge.url());
        simulation.models = Some(MODELS.to_owned());
        (simulation.token, simulation.jwt_secret) = (None, Some(self.bridge.jwt_secret().to_owned().into()));
        if let Some(server) = self.mcp_settings() {
            let servers: &mut mcp::settings::Mcp = config.sections.get_mut();
            servers.servers.insert(MCP_NAME.to_owned(), server);
        }
    }

    /// Returns the settings of the stand-in for an MCP server, if there is one.
    fn mcp_settings(&self) -> Option<mcp::settings::Server> {
        let server = self.mcp.as_ref()?;
        Some(mcp::settings::Server {
            url: Some(server.url()),
            tools: MCP_TOOLS.iter().map(|tool| (*tool).to_owned()).collect(),
            accepted: self.accepted.clone(),
            ..mcp::settings::Server::default()
        })
    }

    /// Accepts the tools of the stand-in for an MCP server, if there is one, as an operator does with
    /// `countersign accept`. The tools of other servers are left to the operator.
    ///
    /// # Errors
    ///
    /// If the server does not answer, or the file of accepted tools cannot be written.
    pub async fn accept_tools(&self, clock: Arc<dyn Clock>) -> anyhow::Result<()> {
        let Some(settings) = self.mcp_settings() else { return Ok(()) };
        let server = mcp::McpServer::new(MCP_NAME, &settings, clock)?;
        match server.accept(true, &|_| ()).await {
            Some((_, Err(wrong))) => anyhow::bail!("the tools of the stand-in for an MCP server: {wrong}"),
            Some((_, Ok(_))) | None => Ok(()),
        }
    }

    /// Returns a request that tries the stand-in for an MCP server, with the reason to try it.
    pub fn suggestion(&self) -> Option<(&'static str, &'static str)> {
        self.mcp
            .is_some()
            .then_some(("Use a tool of another server", "call add-note on notes with text=\"Hello\" color=blue"))
    }

    /// Returns the environment variables that point a bot to the stand-ins.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let key = self.google.as_ref().map(|(_, path)| ("UPGRADE_SERVICE_ACCOUNT", path.display().to_string()));
        let bridge = [("BRIDGE_URL", self.bridge.url()), ("BRIDGE_JWT_SECRET", self.bridge.jwt_secret().to_owned())];
        let models = ("COUNTERSIGN__SIMULATION__MODELS", MODELS.to_owned());
        let tools = MCP_TOOLS.join(",");
        let mcp = self.mcp.iter().flat_map(|mcp| {
            [("COUNTERSIGN__MCP__NOTES__URL", mcp.url()), ("COUNTERSIGN__MCP__NOTES__TOOLS", tools.clone())]
        });
        std::iter::once(("UPGRADE_API_URL", self.upgrade.url()))
            .chain(key)
            .chain(bridge)
            .chain([models])
            .chain(mcp)
            .collect()
    }

    /// Stops the stand-ins and saves their data.
    pub async fn stop(self) {
        self.upgrade.stop().await;
    }
}

/// The name of the stand-in for an MCP server.
const MCP_NAME: &str = "notes";

/// The tools of that server that are offered.
const MCP_TOOLS: [&str; 4] = ["list-notes", "add-note", "set-note", "sign-board"];

/// The name of the file in the data folder that contains the accepted tools of that server.
const ACCEPTED_FILE: &str = "mcp-notes.json";

/// The folder of the stand-in's model files.
const MODELS: &str = "/data/models";

/// The duration of a simulation in the stand-in: long enough to watch it run and to cancel it.
const RUN_TAKES: Duration = Duration::from_secs(4);

/// Starts the stand-in for Google and writes the key file of its service account.
async fn start_google(path: &Path) -> anyhow::Result<SandboxGoogle> {
    let google = SandboxGoogle::start().await.context("the stand-in for Google cannot start")?;
    let key = format!("{:#}\n", google.key_file());
    private_file::write(path, key.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(google)
}

/// Returns the environment of an installation in which no capability is off for want of an address. Nothing answers there.
pub fn addresses() -> HashMap<String, String> {
    HashMap::from([("UPGRADE_API_URL".to_owned(), "http://127.0.0.1:9".to_owned())])
}

#[cfg(test)]
mod tests {
    use countersign::app::installed::{SETTINGS, capabilities};
    use countersign_core::clock::SystemClock;

    use super::*;

    #[tokio::test]
    async fn the_tools_of_the_stand_in_are_offered_once_they_are_accepted() {
        rustls::crypto::ring::default_provider().install_default().ok();
        let folder = tempfile::tempdir().unwrap();
        let stand_in = PlatformStandIn::start(PlatformOptions::all(), Some(folder.path()), None).await.unwrap();
        stand_in.accept_tools(Arc::new(SystemClock)).await.unwrap();
        let mut config = Config::load(None, &HashMap::new(), &SETTINGS).unwrap();
        stand_in.apply_to(&mut config);
        let all = capabilities(&config, Arc::new(SystemClock)).unwrap();
        let notes = all.iter().find(|capability| capability.name() == format!("mcp:{MCP_NAME}")).unwrap();
        let (_, checked) = notes.check().await.unwrap();
        assert!(checked.unwrap().contains("4 of "));
        assert!(stand_in.suggestion().is_some());
        stand_in.stop().await;
    }
}
