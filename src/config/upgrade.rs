//! `[upgrade]`: the experiment platform.

use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

/// `[upgrade]`: the experiment platform.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    /// Where its API is, prefix included; also `UPGRADE_API_URL`.
    pub api_url: String,
    /// How long a call may take, such as `"10s"`.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// `UPGRADE_AUTH_TOKEN`, where the platform wants one.
    #[serde(skip)]
    pub auth_token: Option<SecretString>,
}
