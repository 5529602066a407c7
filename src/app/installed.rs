//! The capabilities of this program. No other file of it names them.
//!
//! To add a capability, add it to [`SETTINGS`] and [`capabilities`]; nothing else here needs to change.

use std::sync::Arc;

use countersign_capabilities::Capability;
use countersign_config::{Additions, Config};
use countersign_core::clock::Clock;
use countersign_experiments::{Experiments, NotSetUp, settings};
use countersign_mcp as mcp;
use countersign_simulation::{
    Simulation,
    settings::{SECTION as SIMULATION, SimulationSettings},
};
use countersign_watches::settings::SECTION as WATCHES;

/// The settings that the capabilities add.
pub const SETTINGS: Additions = Additions {
    sections: &[settings::SECTION, SIMULATION, WATCHES, mcp::settings::SECTION, countersign_api::settings::SECTION],
    measures: &[settings::MEASURES],
};

/// Returns the configured capabilities.
///
/// # Errors
///
/// If a client cannot be set up.
pub fn capabilities(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Vec<Arc<dyn Capability>>> {
    let upgrade: &settings::Upgrade = config.sections.get();
    let mut all: Vec<Arc<dyn Capability>> = match upgrade.api_url {
        Some(_) => vec![Arc::new(Experiments::new(upgrade, clock.clone())?)],
        None => vec![Arc::new(NotSetUp)],
    };
    let simulation: &SimulationSettings = config.sections.get();
    if simulation.url.is_some() {
        all.push(Arc::new(Simulation::new(simulation, clock.clone())?));
    }
    all.extend(mcp::servers(config.sections.get(), &clock)?);
    Ok(all)
}
