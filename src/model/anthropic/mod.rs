//! Anthropic's Messages API: one request out, one stream of events in.
//!
//! It depends on no platform, graph or Slack. `request` turns a question into a body and refuses a broken one before it
//! leaves, `pairing` holds the rule that is broken most easily, `answer` puts the events together, `client` sends,
//! waits and tries again. Start at `client`.
//!
//! The answer is streamed although it is shown only when complete: silence is noticed after a quarter of the time a
//! call may take, so a stalled call is repeated while the person still waits.
//!
//! The design not taken: a library for the API. The conversation is stored by us and goes back unchanged, blocks of
//! kinds that are not known yet included, and that is most of what there is to do.

pub mod answer;
mod client;
mod pairing;
mod request;

use std::time::Duration;

use reqwest::{Client, header::HeaderValue};
use secrecy::SecretString;
use url::Url;

/// The settings of a model.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address of the API, without `/v1`.
    pub base_url: Url,
    /// The API key.
    pub api_key: SecretString,
    /// The model's name.
    pub model: String,
    /// The longest duration of one attempt. Silence ends it after a quarter of that; all attempts with the waits
    /// between them take at most half as long again.
    pub timeout: Duration,
    /// The number of attempts in all; at least one.
    pub attempts: u32,
}

/// A model behind the Messages API.
pub struct AnthropicModel {
    client: Client,
    endpoint: String,
    key: HeaderValue,
    model: String,
    timeout: Duration,
    attempts: u32,
}
