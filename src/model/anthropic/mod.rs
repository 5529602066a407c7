//! Anthropic's Messages API, with streamed answers.
//!
//! `request` creates the body of a request and refuses an invalid one before it is sent, `pairing` checks the rule that
//! is violated most easily, `answer` assembles the events, and `client` sends requests, waits and retries. Start
//! reading at `client`.
//!
//! The answer is streamed although it is shown only when complete, so that a stalled call is noticed after a quarter of
//! its time limit, and repeated while the person is still waiting.
//!
//! Using a library for the API was rejected as a design: most of the work is to store the conversation and to send it
//! back unchanged, including blocks of unknown kinds.

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
    /// The time limit of one attempt. An attempt also ends after a quarter of this time without data. All attempts
    /// together, with the waits between them, take at most 1.5 times this limit.
    pub timeout: Duration,
    /// The maximum number of attempts; at least one.
    pub attempts: u32,
}

/// A model that is called through the Messages API.
pub struct AnthropicModel {
    client: Client,
    endpoint: String,
    key: HeaderValue,
    model: String,
    timeout: Duration,
    attempts: u32,
}
