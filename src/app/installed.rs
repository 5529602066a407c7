//! The capabilities that this program comes with, and the stand-in for their platform: the one file that names them.
//!
//! To add one, add it to [`SETTINGS`] and [`capabilities`]; everything else comes with it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use countersign_capabilities::Capability;
use countersign_config::{Additions, Config};
use countersign_core::{clock::Clock, private_file};
use countersign_experiments::{Experiments, settings};
use countersign_sandbox::{
    google::SandboxGoogle,
    upgrade::{self, SandboxUpgrade},
};

/// The additions of the capabilities to the settings.
pub const SETTINGS: Additions = Additions { sections: &[settings::SECTION], measures: &[settings::MEASURES] };

/// Returns the capabilities, as the settings say.
///
/// # Errors
///
/// If a client cannot be set up.
pub fn capabilities(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Vec<Arc<dyn Capability>>> {
    Ok(vec![Arc::new(Experiments::new(config.sections.get(), clock)?)])
}

/// The options of the stand-in.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct StandInOptions {
    /// The port of the stand-in for UpGrade; 0 takes a free one.
    #[arg(long, default_value_t = 8091)]
    upgrade_port: u16,
    /// Let UpGrade ask for the tokens of a service account, and write its key file here.
    #[arg(long, value_name = "FILE")]
    service_account: Option<PathBuf>,
}

/// The stand-in for the platform.
pub struct StandIn {
    upgrade: SandboxUpgrade,
    /// The server that mints the tokens it asks for, and the path of the key for them; `None` if it asks for none.
    google: Option<(SandboxGoogle, PathBuf)>,
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
        Ok(Self { upgrade, google })
    }

    /// Makes the settings name the stand-in in place of the original. No token is sent to it.
    pub fn take_the_place(&self, config: &mut Config) {
        let settings: &mut settings::Upgrade = config.sections.get_mut();
        settings.api_url = self.upgrade.url();
        (settings.auth_token, settings.service_account) = (None, None);
    }

    /// Returns the variables that point a bot to it.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let key = self.google.as_ref().map(|(_, path)| ("UPGRADE_SERVICE_ACCOUNT", path.display().to_string()));
        std::iter::once(("UPGRADE_API_URL", self.upgrade.url())).chain(key).collect()
    }

    /// Ends it and saves its data.
    pub async fn stop(self) {
        self.upgrade.stop().await;
    }
}

async fn google_with_key_at(path: &Path) -> anyhow::Result<SandboxGoogle> {
    let google = SandboxGoogle::start().await.context("the stand-in for Google cannot start")?;
    let key = format!("{:#}\n", google.key_file());
    private_file::write(path, key.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(google)
}
