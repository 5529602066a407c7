//! `[model]`: the language model.

use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

/// `[model]`: the language model. Without a key, only the documented phrases are understood.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The model's name at its provider.
    pub name: String,
    /// The address of the Messages API; also `ANTHROPIC_BASE_URL`.
    pub base_url: String,
    /// The time limit of one attempt of a call.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// The total number of attempts of a call.
    pub attempts: u32,
    /// `ANTHROPIC_API_KEY`.
    #[serde(skip)]
    pub api_key: Option<SecretString>,
}
