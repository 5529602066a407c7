//! `[simulation]`: the settings of this capability.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use countersign_config::{Problem, Section, SectionSpec, between, wrong_address};
use countersign_core::clock::Clock;
use secrecy::SecretString;
use serde::Deserialize;

use super::bridge::{
    client::{BridgeClient, BridgeConfig},
    token::Access,
};

/// `[simulation]`: the bridge to the simulations.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulationSettings {
    /// The address of the bridge; also `BRIDGE_URL`. Without one there are no simulations.
    pub url: Option<String>,
    /// The time limit of a call, such as `"10s"`.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// The time for which a change without an answer is looked for, such as `"1min"`.
    #[serde(with = "humantime_serde")]
    pub settle_within: Duration,
    /// The largest answer that is read, in megabytes.
    pub max_answer_mb: usize,
    /// The default time limit of a run, such as `"5min"`.
    #[serde(with = "humantime_serde")]
    pub run_limit: Duration,
    /// The maximum number of points in a comparison.
    pub most_points: usize,
    /// The folder of model files on the bridge's machine, for requests that name a model without a path.
    pub models: Option<String>,
    /// `BRIDGE_TOKEN`, a token that is used as it is.
    #[serde(skip)]
    pub token: Option<SecretString>,
    /// `BRIDGE_JWT_SECRET`, which signs a new token for each call.
    #[serde(skip)]
    pub jwt_secret: Option<SecretString>,
}

/// The section, for the reader of the settings.
pub const SECTION: SectionSpec = SectionSpec {
    name: "simulation",
    defaults: include_str!("default.toml"),
    secrets: &[("token", "BRIDGE_TOKEN"), ("jwt_secret", "BRIDGE_JWT_SECRET")],
    entry_secret: None,
    usual_names: &[("BRIDGE_URL", "url")],
    optional: &["url", "models"],
    lists: &[],
    read: |values| Ok(Box::new(serde_json::from_value::<SimulationSettings>(values)?)),
};

impl Section for SimulationSettings {
    fn add_secrets(&mut self, secret: &dyn Fn(&str) -> Option<SecretString>) {
        self.token = secret("token");
        self.jwt_secret = secret("jwt_secret");
    }

    fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut wrong = |key: &str, what: String| found.push(Problem { key: format!("simulation.{key}"), what });
        if let Some(what) = self.url.as_deref().and_then(wrong_address) {
            wrong("url", what);
        }
        let times = [
            ("timeout", self.timeout, 120),
            ("settle_within", self.settle_within, 3600),
            ("run_limit", self.run_limit, 24 * 3600),
        ];
        for (key, time, most) in times {
            if let Some(what) = between(time, 1, most) {
                wrong(key, what);
            }
        }
        let mb = self.max_answer_mb;
        if !(1..=1024).contains(&mb) {
            wrong("max_answer_mb", format!("found {mb}; expected 1 to 1024 megabytes"));
        }
        let points = self.most_points;
        if !(2..=50).contains(&points) {
            wrong("most_points", format!("found {points}; expected 2 to 50 points"));
        }
        if self.token.is_some() && self.jwt_secret.is_some() {
            wrong("url", "BRIDGE_TOKEN and BRIDGE_JWT_SECRET are both set; expected one of them".to_owned());
        }
        found
    }

    fn boxed(&self) -> Box<dyn Section> {
        Box::new(self.clone())
    }
}

impl SimulationSettings {
    /// Returns the path of a model file that a person named: a path unchanged, a bare name in the folder of models.
    /// `None` if it is a bare name and the folder is not set.
    pub fn file_named(&self, named: &str) -> Option<String> {
        let named = named.trim();
        if named.contains(['/', '\\']) {
            return Some(named.to_owned());
        }
        let folder = self.models.as_deref()?.trim_end_matches('/');
        let words = named.trim_start_matches("the ").trim_end_matches(" model").trim();
        let ending = if words.contains('.') { "" } else { ".pkml" };
        Some(format!("{folder}/{words}{ending}"))
    }

    /// Returns the source of tokens.
    pub fn access(&self) -> Access {
        match (&self.token, &self.jwt_secret) {
            (Some(token), _) => Access::Token(token.clone()),
            (None, Some(secret)) => Access::Secret(secret.clone()),
            (None, None) => Access::Nothing,
        }
    }

    /// Creates a client for the bridge.
    ///
    /// # Errors
    ///
    /// Fails if there isn't an address, or it cannot be used.
    pub fn client(&self, clock: Arc<dyn Clock>) -> anyhow::Result<Arc<BridgeClient>> {
        let url = self.url.as_deref().context("simulation.url is not set")?;
        let url = url.parse().context("simulation.url isn't a valid URL")?;
        let longest = self.max_answer_mb << 20;
        let config = BridgeConfig { url, access: self.access(), timeout: self.timeout, longest };
        Ok(Arc::new(BridgeClient::new(config, clock).context("cannot set up the client for the simulation bridge")?))
    }
}
