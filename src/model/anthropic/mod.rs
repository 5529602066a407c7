//! Anthropic's Messages API: one request out, one stream of events in.
//!
//! It knows the wire and nothing of platforms, graphs or Slack. `request` turns a question into a body and refuses a
//! broken one before it leaves, `pairing` holds the rule that is broken most easily, `answer` puts the events together,
//! `client` sends, waits and tries again. Start at `client`.
//!
//! The answer is streamed although nobody reads along: silence is noticed after a quarter of the time a call may take,
//! so a stalled call is repeated while the person still waits.
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

/// How to reach a model.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the API is, without `/v1`.
    pub base_url: Url,
    /// The key it knows us by.
    pub api_key: SecretString,
    /// The model's name.
    pub model: String,
    /// How long one attempt may take. Silence ends it after a quarter of that; all attempts with the waits between them
    /// take at most half as long again.
    pub timeout: Duration,
    /// How often it is tried in all; at least once.
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
