//! `[upgrade]`: the experiment platform.

use std::{path::PathBuf, time::Duration};

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
    /// The most that is read of one answer, in megabytes.
    pub max_answer_mb: usize,
    /// How long a change that got no answer is looked for, such as `"1min"`.
    #[serde(with = "humantime_serde")]
    pub settle_within: Duration,
    /// The key file of a Google service account that signs in; also `UPGRADE_SERVICE_ACCOUNT`.
    pub service_account: Option<PathBuf>,
    /// Where its tokens come from, if not from where the key file says.
    pub token_uri: Option<String>,
    /// `UPGRADE_AUTH_TOKEN`, a token that does not expire.
    #[serde(skip)]
    pub auth_token: Option<SecretString>,
}
