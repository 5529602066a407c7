//! Sends HTTP requests, and reports exactly what is known of a request that was not answered.
//!
//! Start at [`send`]: it returns an [`Answer`] with any status, or a [`Lost`] that says whether the request can have
//! arrived. This difference decides whether a change may be sent again, so it is a type here rather than a guess in
//! each client. Requests that change something are sent by [`super::changes`] instead.
//!
//! The size of every answer and the duration of every call are limited, whatever the other side does.
//!
//! Retrying inside the HTTP client was rejected as a design, since it cannot know which requests change something.

use std::{borrow::Cow, io, time::Duration};

use backon::ExponentialBuilder;
use countersign_core::{http_log, spans};
use countersign_wire::{
    capped::{TooLong, size},
    this_machine, tls,
};
use reqwest::{
    Client, Method, RequestBuilder, StatusCode,
    header::{self, HeaderMap, HeaderValue},
    redirect, retry,
};
use url::Url;

/// The answer of a service.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status. A status in the body is not reliable.
    pub status: StatusCode,
    /// The body.
    pub body: Vec<u8>,
    /// The id of the request in the service's own log.
    pub request_id: Option<String>,
    /// The time after which the service wants to be called again, if it names one in seconds.
    pub retry_after: Option<Duration>,
}

/// The reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// No connection was established, so the request certainly did not arrive.
    NotSent {
        /// The observed failure.
        reason: String,
    },
    /// The request was or may have been sent. It is not known whether it arrived.
    NoAnswer {
        /// The observed failure.
        reason: String,
        /// True if the call timed out, false if the connection was lost.
        timed_out: bool,
    },
    /// The answer is longer than the limit.
    TooLong {
        /// The limit, in words.
        reason: String,
    },
    /// The permit ran out before anything was sent. Another process may have taken over the work since, so the state
    /// must be checked before anything else is done.
    RunOut,
}

impl Lost {
    /// Returns the reason in one word, for spans and metrics.
    pub(super) fn status(&self) -> Cow<'static, str> {
        match self {
            Self::NotSent { .. } => "not_sent",
            Self::NoAnswer { .. } => "no_answer",
            Self::TooLong { .. } => "too_long",
            Self::RunOut => "run_out",
        }
        .into()
    }

    /// Returns the observed failure, in words.
    pub fn reason(&self) -> &str {
        match self {
            Self::NotSent { reason } | Self::NoAnswer { reason, .. } | Self::TooLong { reason } => reason,
            Self::RunOut => "the permit ran out",
        }
    }
}

impl From<TooLong> for Lost {
    fn from(TooLong { most }: TooLong) -> Self {
        Self::TooLong { reason: format!("its answer is longer than the limit of {}", size(most)) }
    }
}

/// Creates a client for the service at `base`, with a time limit for each call.
///
/// The client follows no redirects and never repeats a request, since both could send a change twice. It uses no proxy
/// for a service on this machine.
///
/// # Errors
///
/// If a connection may use TLS and there are no certificates to trust.
pub fn client(base: &Url, timeout: Duration) -> io::Result<Client> {
    let builder = Client::builder()
        .tls_backend_preconfigured(tls::client_of(base)?)
        .timeout(timeout)
        .connect_timeout(timeout / 2) // shorter than `timeout`, so that a dead host is reported as *not sent*
        .redirect(redirect::Policy::none())
        .retry(retry::never());
    let builder = if this_machine::is_named_by(base) { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| io::Error::other(error.without_url()))
}

/// The default limit on the size of an answer, in bytes.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// The maximum number of retries of a call that only reads.
pub const MAX_RETRIES: usize = 3;

/// Returns the waits between attempts of a call that only reads: 0.2 s, 0.6 s, 1.8 s.
pub fn waits() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(200))
        .with_factor(3.0)
        .with_max_times(MAX_RETRIES)
}

/// Sends one request that changes nothing to the system of this name, and reads the whole answer, up to `longest` bytes.
///
/// # Errors
///
/// [`Lost`] if there is no complete answer.
pub async fn send(system: &'static str, request: RequestBuilder, longest: usize) -> Result<Answer, Lost> {
    let (client, request) = request.build_split();
    let request = request.map_err(lost)?;
    let (method, path) = (request.method().clone(), request.url().path().to_owned());
    let answer = spans::call(system, method.as_str(), execute(&client, request, longest), status_of).await;
    note(&method, &path, &answer);
    answer
}

/// Sends a request like [`send`], but does not record it in the [`http_log`], for requests such as signing in.
pub(super) async fn send_unrecorded(
    system: &'static str,
    request: RequestBuilder,
    longest: usize,
) -> Result<Answer, Lost> {
    let (client, request) = request.build_split();
    let request = request.map_err(lost)?;
    let method = request.method().clone();
    spans::call(system, method.as_str(), execute(&client, request, longest), status_of).await
}

/// Adds the place of the current span in its trace to the headers of a request.
pub(super) fn with_trace(mut request: reqwest::Request) -> reqwest::Request {
    if let Some(parent) = spans::parent().and_then(|parent| HeaderValue::try_from(parent).ok()) {
        request.headers_mut().insert("traceparent", parent);
    }
    request
}

/// Returns the end of a call for its span and metric: the HTTP status, or why there is none.
pub(super) fn status_of(answer: &Result<Answer, Lost>) -> Cow<'static, str> {
    answer.as_ref().map_or_else(Lost::status, |answer| answer.status.as_str().to_owned().into())
}

/// Records a request and the status of its answer in the [`http_log`].
pub(super) fn note(method: &Method, path: &str, answer: &Result<Answer, Lost>) {
    if !matches!(answer, Err(Lost::RunOut)) {
        let status = answer.as_ref().ok().map(|answer| answer.status.as_u16());
        http_log::note(method.as_str(), path, status);
    }
}

/// Returns the time in `Retry-After`. A date is not understood, and left out.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Returns the service's id of a request, from the headers of the answer.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    headers.get("x-request-id").and_then(|id| id.to_str().ok()).map(|id| id.chars().take(64).collect())
}

async fn execute(client: &Client, request: reqwest::Request, longest: usize) -> Result<Answer, Lost> {
    let mut response = client.execute(with_trace(request)).await.map_err(lost)?;
    let status = response.status();
    let (request_id, retry_after) = (request_id(response.headers()), retry_after(response.headers()));
    let announced = response.content_length().is_some_and(|length| length > longest as u64);
    let mut body = Vec::new();
    while let Some(chunk) = if announced { None } else { response.chunk().await.map_err(lost)? } {
        body.extend_from_slice(&chunk);
        if body.len() > longest {
            break;
        }
    }
    match announced || body.len() > longest {
        true => Err(TooLong { most: longest }.into()),
        false => Ok(Answer { status, body, request_id, retry_after }),
    }
}

fn lost(error: reqwest::Error) -> Lost {
    let (not_sent, timed_out) = (error.is_connect() || error.is_builder(), error.is_timeout());
    // The address may contain a password, and is known to the reader anyway.
    let error = error.without_url();
    let mut reason = if timed_out { "no answer in time".to_owned() } else { describe(&error) };
    if not_sent && timed_out {
        reason = "no connection in time".to_owned();
    }
    if not_sent { Lost::NotSent { reason } } else { Lost::NoAnswer { reason, timed_out } }
}

/// Describes an error by its innermost cause: `Connection refused (os error 111)` rather than “error sending request”.
pub(super) fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let words = innermost(error);
    if words.starts_with("connection closed before") { "the connection was closed".to_owned() } else { words }
}

fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        words = cause.to_string();
        next = cause.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncReadExt as _, net::TcpListener};

    use super::*;

    async fn ask(base: &str, timeout: Duration) -> Result<Answer, Lost> {
        let base: Url = base.parse().unwrap();
        send("it", client(&base, timeout).unwrap().get(base), MAX_ANSWER_BYTES).await
    }

    #[tokio::test]
    async fn a_refused_connection_means_certainly_not_sent() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let lost = ask(&format!("http://{closed}/"), Duration::from_secs(5)).await.unwrap_err();
        assert!(matches!(&lost, Lost::NotSent { reason } if reason.contains("refused")), "{lost:?}");
    }

    #[tokio::test]
    async fn a_connection_lost_after_sending_has_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut [0; 1024]).await;
        });
        let lost = ask(&format!("http://{address}/"), Duration::from_secs(5)).await.unwrap_err();
        assert!(matches!(lost, Lost::NoAnswer { timed_out: false, .. }), "{lost:?}");
    }

    #[test]
    fn the_seconds_to_wait_are_read_from_the_headers() {
        let headers = |value: &'static str| HeaderMap::from_iter([(header::RETRY_AFTER, value.parse().unwrap())]);
        assert_eq!(retry_after(&headers("7")), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(&headers("Wed, 21 Oct 2026 07:28:00 GMT")), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[tokio::test]
    async fn silence_has_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let lost = ask(&format!("http://{address}/"), Duration::from_millis(100)).await.unwrap_err();
        assert_eq!(lost, Lost::NoAnswer { reason: "no answer in time".into(), timed_out: true });
    }
}
