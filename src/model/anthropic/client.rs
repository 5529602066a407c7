//! The client of the API: sends a request, reads the answer, and retries if that may help.
//!
//! An attempt ends with an answer or with a [`Failure`], which is either temporary or lasting. The description of a
//! failure never contains the request or the key.

use std::{fmt, pin::pin, time::Duration};

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable as _};
use countersign_wire::this_machine;
use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use reqwest::{Client, StatusCode, header, redirect, retry};
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use tokio::time::{Instant, timeout};
use tracing::{Instrument as _, debug, info_span, warn};

use super::{
    AnthropicModel, Settings,
    answer::{ApiAnswer, Broken, Fault},
    request,
};
use crate::{Error, Model, Request, Response};

/// The version of the API.
const VERSION: &str = "2023-06-01";
/// The maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// The size after which a refusal is not read further, in bytes.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// The maximum length of the API's message in an error, in characters.
const MAX_REASON_CHARS: usize = 240;

/// The failure of an attempt.
#[derive(Debug)]
enum Failure {
    /// A temporary failure: another attempt may succeed.
    Passing {
        /// The observed failure.
        reason: String,
        /// The minimum wait requested by the API.
        at_least: Option<Duration>,
    },
    /// A failure that another attempt would repeat.
    Lasting(Error),
}

impl Failure {
    fn temporary(reason: impl Into<String>) -> Self {
        Self::Passing { reason: reason.into(), at_least: None }
    }
}

impl AnthropicModel {
    /// Creates a client, without sending a request.
    ///
    /// # Errors
    ///
    /// [`Error::Auth`] if the key is not a valid header value, [`Error::Unavailable`] if TLS cannot be set up.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let Settings { base_url, api_key, model, timeout, attempts } = settings;
        // Needed once per process, also where `main` has not run, as in tests. A second call has no effect.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // The client does not retry by itself, since `respond` does so with the right waits.
        let builder =
            Client::builder().connect_timeout(timeout / 4).redirect(redirect::Policy::none()).retry(retry::never());
        let client = if this_machine::is_named_by(&base_url) { builder.no_proxy() } else { builder }
            .build()
            .map_err(|error| Error::Unavailable { reason: error.without_url().to_string() })?;
        let mut key = header::HeaderValue::from_str(api_key.expose_secret().trim()).map_err(|_| Error::Auth)?;
        key.set_sensitive(true);
        let endpoint = format!("{}/v1/messages", base_url.as_str().trim_end_matches('/'));
        Ok(Self { client, endpoint, key, model, timeout, attempts: attempts.max(1) })
    }

    /// Makes one attempt, which takes at most `longest`.
    async fn attempt(&self, body: &[u8], longest: Duration) -> Result<Response, Failure> {
        match timeout(longest, self.ask(body)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::temporary(format!("no complete answer in {longest:.1?}"))),
        }
    }

    async fn ask(&self, body: &[u8]) -> Result<Response, Failure> {
        let sent = self
            .client
            .post(&self.endpoint)
            .header("x-api-key", self.key.clone())
            .header("anthropic-version", VERSION)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "text/event-stream")
            .body(body.to_vec());
        let response = sent.send().await.map_err(|error| Failure::temporary(innermost(error)))?;
        if !response.status().is_success() {
            return Err(refusal(response).await);
        }
        self.read(response).await
    }

    /// Reads a streamed answer.
    async fn read(&self, response: reqwest::Response) -> Result<Response, Failure> {
        let mut received = 0;
        let bytes = response.bytes_stream().map(move |chunk| {
            let chunk = chunk.map_err(|error| Failure::temporary(innermost(error)))?;
            received += chunk.len();
            if received > MAX_ANSWER_BYTES { Err(decode("it does not end")) } else { Ok(chunk) }
        });
        let mut events = pin!(bytes.eventsource());
        let max_silence = self.timeout / 4;
        let mut answer = ApiAnswer::default();
        loop {
            let event = match timeout(max_silence, events.next()).await {
                Ok(Some(Ok(event))) => event,
                Ok(Some(Err(eventsource_stream::EventStreamError::Transport(failure)))) => return Err(failure),
                Ok(Some(Err(_))) => return Err(decode("it is no stream of events")),
                Ok(None) => return Err(Failure::temporary("the answer broke off")),
                Err(_) => return Err(Failure::temporary(format!("silent for {max_silence:.1?}"))),
            };
            if answer.take_event(&event.data).map_err(broken)? {
                return answer.finish().map_err(broken);
            }
        }
    }
}

#[async_trait]
impl Model for AnthropicModel {
    fn name(&self) -> &str {
        &self.model
    }

    async fn respond(&self, request: &Request) -> Result<Response, Error> {
        let body = request::body(&self.model, request)?;
        let body = serde_json::to_vec(&body).expect("a request body can always be serialized");
        let span = info_span!("model_call", model.name = self.model, purpose = ?request.purpose);
        async {
            let begun = Instant::now();
            let budget = self.timeout + self.timeout / 2;
            let attempt = || self.attempt(&body, self.timeout.min(budget.saturating_sub(begun.elapsed())));
            // There is no point in waiting if no time would be left for another attempt.
            let wait = |failure: &Failure, wait: Option<Duration>| match failure {
                Failure::Passing { at_least, .. } => {
                    let wait = wait?.max(at_least.unwrap_or_default());
                    (begun.elapsed() + wait < budget).then_some(wait)
                }
                Failure::Lasting(_) => None,
            };
            let outcome = attempt
                .retry(self.waits())
                .when(|failure| matches!(failure, Failure::Passing { .. }))
                .adjust(wait)
                .notify(|failure, wait| {
                    if let Failure::Passing { reason, .. } = failure {
                        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                        warn!(wait_ms, "The language model did not answer; the request is repeated: {reason}");
                    }
                })
                .await;
            let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            debug!(duration_ms, payload_bytes = body.len(), answered = outcome.is_ok(), "Called the language model");
            outcome.map_err(|failure| match failure {
                Failure::Passing { reason, .. } => Error::Unavailable { reason },
                Failure::Lasting(error) => error,
            })
        }
        .instrument(span)
        .await
    }
}

impl AnthropicModel {
    /// Returns the waits between attempts. The first is half a second, or shorter if the time limit of a call is short.
    /// They are randomized, so that callers that are refused at the same time do not retry at the same time.
    fn waits(&self) -> ExponentialBuilder {
        let times = usize::try_from(self.attempts - 1).unwrap_or(usize::MAX);
        ExponentialBuilder::default()
            .with_min_delay((self.timeout / 100).min(Duration::from_millis(500)))
            .with_factor(2.0)
            .with_max_delay(Duration::from_secs(10))
            .with_max_times(times)
            .with_jitter()
            .with_jitter_seed(rand::random())
    }
}

impl fmt::Debug for AnthropicModel {
    /// Formats only the name, since the address may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicModel").field("model", &self.model).finish_non_exhaustive()
    }
}

/// Converts an answer with an error status to a failure.
async fn refusal(mut response: reqwest::Response) -> Failure {
    #[derive(Deserialize)]
    struct Refusal {
        error: Fault,
    }
    let status = response.status();
    let text = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
    let at_least = text("retry-after").and_then(|seconds| seconds.trim().parse().ok());
    let at_least = at_least.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let is_final = text("x-should-retry").is_some_and(|answer| answer == "false");
    let id = text("request-id");

    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_REFUSAL_BYTES {
            break;
        }
    }
    let fault = serde_json::from_slice(&body).map_or_else(|_| Fault::default(), |Refusal { error }| error);
    let mut reason = [status.as_str(), &fault.kind, &fault.message].join(" ");
    if let Some(id) = id {
        reason = format!("{} ({})", shortened(&reason), id.chars().take(64).collect::<String>());
    } else {
        reason = shortened(&reason);
    }
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failure::Lasting(Error::Auth),
        _ if is_final && is_temporary(status) => Failure::Lasting(Error::Unavailable { reason }),
        _ if is_temporary(status) => Failure::Passing { reason, at_least },
        _ => Failure::Lasting(Error::Refused { reason }),
    }
}

fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 409 | 429) || status.is_server_error()
}

/// Converts the fault of an incomplete answer to a failure.
fn broken(broken: Broken) -> Failure {
    match broken {
        Broken::Unreadable(reason) => decode(&reason),
        Broken::Reported { kind, message } => {
            let reason = shortened(&format!("{kind} {message}"));
            match kind.as_str() {
                "authentication_error" | "permission_error" => Failure::Lasting(Error::Auth),
                "invalid_request_error" | "not_found_error" | "request_too_large" | "billing_error" => {
                    Failure::Lasting(Error::Refused { reason })
                }
                _ => Failure::temporary(reason),
            }
        }
    }
}

fn decode(reason: &str) -> Failure {
    Failure::Lasting(Error::Decode { reason: reason.to_owned() })
}

/// Shortens text to one line of bounded length.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_REASON_CHARS) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

/// Returns the innermost cause of an error, such as `Connection refused (os error 111)`, without the address.
fn innermost(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut deepest: &dyn std::error::Error = &error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    deepest.to_string()
}
