//! The stand-in for HubSpot's contacts (CRM API v3): a real HTTP server.
//!
//! It searches, reads, changes and creates contacts. Unknown fields, properties and operators, missing tokens and
//! duplicate addresses are refused in HubSpot's format.
//!
//! Start at [`SandboxHubSpot`].

mod routes;

use std::{collections::BTreeMap, sync::Arc};

use countersign_core::clock::{Clock, SystemClock};

use self::routes::World;
use crate::{
    faults::Faults,
    ledger::Request,
    stand_in::{self, Place, StandIn},
};

/// The only access token.
pub const TOKEN: &str = "pat-sandbox-hubspot";

/// The options of the stand-in.
#[derive(Clone, Debug)]
pub struct Options {
    /// True if it contains three contacts: Alice of Acme Corp, Bob of TechCorp and Carol of Startup Dev.
    pub seed: bool,
    /// The port on 127.0.0.1; 0 means a free one.
    pub port: u16,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: false, port: 0, clock: Arc::new(SystemClock) }
    }
}

/// A running stand-in. Dropping it stops the server.
#[derive(Debug)]
pub struct SandboxHubSpot {
    server: StandIn<World>,
}

impl SandboxHubSpot {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// If the port is taken.
    pub async fn start(options: Options) -> std::io::Result<Self> {
        let Options { seed, port, clock } = options;
        let mut world = World::default();
        if seed {
            for (email, first, company) in [
                ("alice@example.com", "Alice", "Acme Corp"),
                ("bob@techcorp.io", "Bob", "TechCorp"),
                ("carol@startup.dev", "Carol", "Startup Dev"),
            ] {
                world.add(&[("email", email), ("firstname", first), ("company", company)], clock.now());
            }
        }
        Ok(Self { server: StandIn::start(world, (), Place::new(port, clock), stand_in::routes).await? })
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Adds a contact with these properties, as a user of HubSpot can. Returns its id.
    pub fn has(&self, properties: &[(&str, &str)]) -> String {
        let mut world = self.server.world();
        world.add(properties, SystemClock.now())
    }

    /// Returns the properties of the contact with an address.
    pub fn contact(&self, email: &str) -> Option<BTreeMap<String, String>> {
        self.server.world().with_email(email).map(|contact| contact.properties.clone())
    }

    /// Returns every request so far.
    pub fn ledger(&self) -> Vec<Request> {
        self.server.requests()
    }

    /// Returns the faults.
    pub fn faults(&self) -> Faults {
        self.server.faults.clone()
    }
}
