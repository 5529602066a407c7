//! The capabilities that this program comes with, and the stand-ins for their platforms: the one file that names them.
//!
//! To add one, add it to [`SETTINGS`] and [`capabilities`]; everything else comes with it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use countersign_capabilities::Capability;
use countersign_config::{Additions, Config};
use countersign_core::{clock::Clock, private_file};
use countersign_experiments::{Experiments, settings};
use countersign_mcp as mcp;
use countersign_sandbox::{
    bridge::{self, Bridge},
    google::SandboxGoogle,
    mcp::{self as mcp_server, SandboxMcp},
    upgrade::{self, SandboxUpgrade},
};
use countersign_simulation::{
    Simulation,
    settings::{SECTION as SIMULATION, SimulationSettings},
};

/// The additions of the capabilities to the settings.
pub const SETTINGS: Additions =
    Additions { sections: &[settings::SECTION, SIMULATION, mcp::settings::SECTION], measures: &[settings::MEASURES] };

/// Returns the capabilities, as the settings say.
///
/// # Errors
///
/// If a client cannot be set up.
pub fn capabilities(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Vec<Arc<dyn Capability>>> {
    let mut all: Vec<Arc<dyn Capability>> = vec![Arc::new(Experiments::new(config.sections.get(), clock.clone())?)];
    let simulation: &SimulationSettings = config.sections.get();
    if simulation.url.is_some() {
        all.push(Arc::new(Simulation::new(simulation, clock.clone())?));
    }
    all.extend(mcp::servers(config.sections.get(), &clock)?);
    Ok(all)
}

/// The options of the stand-ins.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct StandInOptions {
    /// The port of the stand-in for UpGrade; 0 takes a free one.
    #[arg(long, default_value_t = 8091)]
    upgrade_port: u16,
    /// The port of the stand-in for the simulation bridge; 0 takes a free one.
    #[arg(long, default_value_t = 8092)]
    bridge_port: u16,
    /// Let UpGrade ask for the tokens of a service account, and write its key file here.
    #[arg(long, value_name = "FILE")]
    service_account: Option<PathBuf>,
    /// The port of a stand-in for an MCP server, as `mcp.notes`; 0 takes a free one, and without it there is none.
    #[arg(long)]
    mcp_port: Option<u16>,
}

/// The stand-ins for the platforms.
pub struct StandIn {
    upgrade: SandboxUpgrade,
    bridge: Bridge,
    /// The server that mints the tokens it asks for, and the path of the key for them; `None` if it asks for none.
    google: Option<(SandboxGoogle, PathBuf)>,
    /// The MCP server, if one was asked for.
    mcp: Option<SandboxMcp>,
}

impl StandIn {
    /// The file that it keeps in a data folder.
    pub const FILE: &str = "upgrade.json";

    /// Starts it, with what is in the data folder; its calls and changes go into the ledger folder.
    ///
    /// # Errors
    ///
    /// If a port is taken, or a file cannot be read or written.
    pub async fn start(options: StandInOptions, data: Option<&Path>, ledger: Option<&Path>) -> anyhow::Result<Self> {
        let google = match options.service_account {
            Some(path) => Some((google_with_key_at(&path).await?, path)),
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
        Ok(Self { upgrade, bridge, google, mcp })
    }

    /// Makes the settings name the stand-in in place of the original. No token is sent to it.
    pub fn take_the_place(&self, config: &mut Config) {
        let settings: &mut settings::Upgrade = config.sections.get_mut();
        settings.api_url = self.upgrade.url();
        (settings.auth_token, settings.service_account) = (None, None);
        let simulation: &mut SimulationSettings = config.sections.get_mut();
        simulation.url = Some(self.bridge.url());
        simulation.models = Some(MODELS.to_owned());
        (simulation.token, simulation.jwt_secret) = (None, Some(self.bridge.jwt_secret().to_owned().into()));
    }

    /// Returns the variables that point a bot to it.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let key = self.google.as_ref().map(|(_, path)| ("UPGRADE_SERVICE_ACCOUNT", path.display().to_string()));
        let bridge = [("BRIDGE_URL", self.bridge.url()), ("BRIDGE_JWT_SECRET", self.bridge.jwt_secret().to_owned())];
        let models = ("COUNTERSIGN__SIMULATION__MODELS", MODELS.to_owned());
        let tools = "list-notes,add-note,set-note,sign-board".to_owned();
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

    /// Ends it and saves its data.
    pub async fn stop(self) {
        self.upgrade.stop().await;
    }
}

/// The folder of the stand-in's model files.
const MODELS: &str = "/data/models";

/// The time that a run of the stand-in takes: long enough to see it run, and to stop it.
const RUN_TAKES: Duration = Duration::from_secs(4);

async fn google_with_key_at(path: &Path) -> anyhow::Result<SandboxGoogle> {
    let google = SandboxGoogle::start().await.context("the stand-in for Google cannot start")?;
    let key = format!("{:#}\n", google.key_file());
    private_file::write(path, key.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(google)
}
