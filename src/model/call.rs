//! Calls of a provider's API: sends a request, and repeats it if that may help.
//!
//! An attempt ends with an answer or with a [`Failure`], which is either temporary or lasting. The description of a
//! failure never contains the request or the key.

use std::{borrow::Cow, time::Duration};

use backon::{ExponentialBuilder, Retryable as _};
use countersign_core::spans;
use countersign_wire::{this_machine, tls};
use reqwest::{
    Client, Response, StatusCode,
    header::{self, HeaderMap},
    redirect, retry,
};
use serde_json::Value;
use tokio::time::{Instant, timeout};
use tracing::{debug, warn};
use url::Url;

use crate::Error;

/// The size after which a refusal is not read further, in bytes.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// The maximum length of the API's message in an error, in characters.
const MAX_REASON_CHARS: usize = 240;

/// The failure of an attempt.
#[derive(Debug)]
pub(crate) enum Failure {
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
    /// Creates a temporary failure.
    pub(crate) fn temporary(reason: impl Into<String>) -> Self {
        Self::Passing { reason: reason.into(), at_least: None }
    }

    /// Creates the failure of an answer that cannot be read.
    pub(crate) fn decode(reason: &str) -> Self {
        Self::Lasting(Error::Decode { reason: reason.to_owned() })
    }

    /// Converts an error of the connection.
    pub(crate) fn of_connection(error: reqwest::Error) -> Self {
        Self::temporary(innermost(error))
    }
}

/// An error reported by an API.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// The type of the error, such as `overloaded_error`.
    pub kind: String,
    /// The message of the API.
    pub message: String,
    /// The kind of remedy.
    pub remedy: Remedy,
    /// The minimum wait before another attempt, if the body of the answer states one.
    pub retry_after: Option<Duration>,
}

/// The kind of remedy for an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Remedy {
    /// The status of the answer decides. An error without a status is temporary.
    #[default]
    ByStatus,
    /// Another key is needed.
    Key,
    /// Another request is needed.
    Request,
    /// Nothing helps for a while, such as until a quota is renewed.
    Time,
}

impl Fault {
    /// Converts an error that was reported in the middle of an answer.
    pub(crate) fn into_failure(self) -> Failure {
        let reason = shortened(&format!("{} {}", self.kind, self.message));
        match self.remedy {
            Remedy::Key => Failure::Lasting(Error::Auth),
            Remedy::Request => Failure::Lasting(Error::Refused { reason }),
            Remedy::Time => Failure::Lasting(Error::Unavailable { reason }),
            Remedy::ByStatus => Failure::Passing { reason, at_least: self.retry_after },
        }
    }
}

/// A request to an API.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    /// The address.
    pub(crate) url: &'a str,
    /// The expected type of the answer.
    pub(crate) accept: &'static str,
    /// The body, in JSON; `None` for a request that only reads.
    pub(crate) body: Option<&'a [u8]>,
    /// Parses the body of a refusal.
    pub(crate) fault: fn(&[u8]) -> Fault,
}

/// Sends requests to one API, with time limits and repetitions.
#[derive(Debug)]
pub(crate) struct Caller {
    client: Client,
    headers: HeaderMap,
    timeout: Duration,
    attempts: u32,
}

impl Caller {
    /// Creates a caller of the API at `base_url`, without sending a request.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if TLS cannot be set up.
    pub(crate) fn new(base_url: &Url, headers: HeaderMap, timeout: Duration, attempts: u32) -> Result<Self, Error> {
        let tls = tls::client_of(base_url).map_err(|error| Error::Unavailable { reason: error.to_string() })?;
        // The client does not retry by itself, since `call` does so with the right waits.
        let builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(timeout / 4)
            .redirect(redirect::Policy::none())
            .retry(retry::never());
        let client = if this_machine::is_named_by(base_url) { builder.no_proxy() } else { builder }
            .build()
            .map_err(|error| Error::Unavailable { reason: error.without_url().to_string() })?;
        Ok(Self { client, headers, timeout, attempts: attempts.max(1) })
    }

    /// Returns the time without data after which an attempt ends.
    pub(crate) fn max_silence(&self) -> Duration {
        self.timeout / 4
    }

    /// Sends a request and reads its answer with `read`, in several attempts if necessary.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] after the last attempt; other errors immediately.
    pub(crate) async fn call<T, F, R>(&self, call: Call<'_>, read: F) -> Result<T, Error>
    where
        F: Fn(Response) -> R,
        R: Future<Output = Result<T, Failure>>,
    {
        let begun = Instant::now();
        let budget = self.timeout + self.timeout / 2;
        let attempt = || self.attempt(call, &read, self.timeout.min(budget.saturating_sub(begun.elapsed())));
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
        debug!(
            duration_ms,
            payload_bytes = call.body.map_or(0, <[u8]>::len),
            answered = outcome.is_ok(),
            "Called the language model"
        );
        outcome.map_err(|failure| match failure {
            Failure::Passing { reason, .. } => Error::Unavailable { reason },
            Failure::Lasting(error) => error,
        })
    }

    /// Makes one attempt, which takes at most `longest`.
    async fn attempt<T, F, R>(&self, call: Call<'_>, read: &F, longest: Duration) -> Result<T, Failure>
    where
        F: Fn(Response) -> R,
        R: Future<Output = Result<T, Failure>>,
    {
        let method = if call.body.is_some() { "POST" } else { "GET" };
        let answer = async {
            let sent = match call.body {
                Some(body) => {
                    self.client.post(call.url).header(header::CONTENT_TYPE, "application/json").body(body.to_vec())
                }
                None => self.client.get(call.url),
            };
            let mut sent = sent.headers(self.headers.clone()).header(header::ACCEPT, call.accept);
            if let Some(parent) = spans::parent() {
                sent = sent.header("traceparent", parent);
            }
            let response = sent.send().await.map_err(Failure::of_connection)?;
            if !response.status().is_success() {
                return Err(refusal(response, call.fault).await);
            }
            read(response).await
        };
        let in_time = async {
            let late = |_| Err(Failure::temporary(format!("no complete answer in {longest:.1?}")));
            timeout(longest, answer).await.unwrap_or_else(late)
        };
        spans::call("model", method, in_time, status_of).await
    }

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

/// Reads an answer of at most `most` bytes in JSON.
pub(crate) async fn read_json(mut response: Response, most: usize) -> Result<Value, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Failure::of_connection)? {
        body.extend_from_slice(&chunk);
        if body.len() > most {
            return Err(Failure::decode("it does not end"));
        }
    }
    serde_json::from_slice(&body).map_err(|_| Failure::decode("it isn't JSON"))
}

/// Returns the end of an attempt for its span and metric.
fn status_of<T>(outcome: &Result<T, Failure>) -> Cow<'static, str> {
    match outcome {
        Ok(_) => "ok",
        Err(Failure::Passing { .. } | Failure::Lasting(Error::Unavailable { .. })) => "unavailable",
        Err(Failure::Lasting(Error::OverLimit(_))) => "over_limit",
        Err(Failure::Lasting(Error::Auth)) => "not_signed_in",
        Err(Failure::Lasting(Error::Refused { .. })) => "refused",
        Err(Failure::Lasting(Error::Decode { .. })) => "unreadable",
    }
    .into()
}

/// Converts an answer with an error status to a failure.
async fn refusal(mut response: Response, fault: fn(&[u8]) -> Fault) -> Failure {
    let status = response.status();
    let text = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.trim().to_owned());
    let seconds = |name: &str| text(name)?.parse::<f64>().ok();
    let wait = seconds("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| seconds("retry-after"));
    let wait = wait.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let is_final = text("x-should-retry").is_some_and(|answer| answer == "false");
    let id = text("request-id").or_else(|| text("x-request-id"));

    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_REFUSAL_BYTES {
            break;
        }
    }
    let Fault { kind, message, remedy, retry_after } = fault(&body);
    let mut reason = shortened(&[status.as_str(), &kind, &message].join(" "));
    if let Some(id) = id {
        reason = format!("{reason} ({})", id.chars().take(64).collect::<String>());
    }
    match (remedy, status) {
        (Remedy::Key, _) | (_, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Failure::Lasting(Error::Auth),
        (Remedy::Time, _) => Failure::Lasting(Error::Unavailable { reason }),
        _ if is_final && is_temporary(status) => Failure::Lasting(Error::Unavailable { reason }),
        _ if is_temporary(status) => Failure::Passing { reason, at_least: wait.or(retry_after) },
        _ => Failure::Lasting(Error::Refused { reason }),
    }
}

fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 409 | 429) || status.is_server_error()
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
