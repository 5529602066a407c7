//! `[model]`: which language model.

use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

/// `[model]`: which language model. Without a key the documented phrases are understood by `rules`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The model's name at its provider.
    pub name: String,
    /// Where the Messages API is; also `ANTHROPIC_BASE_URL`.
    pub base_url: String,
    /// How long one call may take, retries aside.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// How often a call is tried in all.
    pub attempts: u32,
    /// `ANTHROPIC_API_KEY`.
    #[serde(skip)]
    pub api_key: Option<SecretString>,
}
