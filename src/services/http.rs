//! Sending of HTTP calls, and an exact report of a call that was not answered.
//!
//! Start at [`send`]: it returns an [`Answer`] whatever the status is, or a [`Lost`] that says whether the request can
//! have arrived. That difference decides if a change may be sent again, so it is a type here and not a guess in each
//! client. Changes are sent by [`super::changes`] instead.
//!
//! No answer is read further than a cap, and no call takes longer than its time, whatever the other side does.
//!
//! The design not taken: retrying inside the HTTP client. It cannot know which calls change something.

use std::time::Duration;

use backon::ExponentialBuilder;
use countersign_core::http_log;
use countersign_wire::{
    capped::{TooLong, size},
    this_machine,
};
use reqwest::{Client, Method, RequestBuilder, StatusCode, header::HeaderMap, redirect, retry};
use url::Url;

/// The answer of a service.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status; the only status to believe.
    pub status: StatusCode,
    /// The body, of any kind.
    pub body: Vec<u8>,
    /// The id of this exchange in the service's own log.
    pub request_id: Option<String>,
}

/// The reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// No connection was made: the request certainly did not arrive.
    NotSent {
        /// The observed failure.
        reason: String,
    },
    /// The request left, or may have: whether it arrived is not known.
    NoAnswer {
        /// The observed failure.
        reason: String,
        /// True if the time was up, false if the connection was lost.
        timed_out: bool,
    },
    /// The answer is longer than the limit.
    TooLong {
        /// The limit, in words.
        reason: String,
    },
    /// The permit ran out before anything left. Another process may have continued the work since: look first.
    RunOut,
}

impl From<TooLong> for Lost {
    fn from(TooLong { most }: TooLong) -> Self {
        Self::TooLong { reason: format!("its answer is longer than {}, the most that is read", size(most)) }
    }
}

/// Creates a client for the service at `base`; no call takes longer than `timeout`.
///
/// It follows no redirects and never repeats a request: both could send a change twice. A service on this machine is
/// never asked through a proxy.
///
/// # Errors
///
/// If the TLS library finds no certificates to trust.
pub fn client(base: &Url, timeout: Duration) -> Result<Client, reqwest::Error> {
    // Needed once per process, also where no `main` has run; a second time changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .timeout(timeout)
        .connect_timeout(timeout / 2) // below the whole time, so that a dead host is recognised as *not sent*
        .redirect(redirect::Policy::none())
        .retry(retry::never());
    if this_machine::is_named_by(base) { builder.no_proxy() } else { builder }.build()
}

/// The default limit on the length of an answer, in bytes.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// The number of times that a call that only reads is repeated.
pub const MAX_RETRIES: usize = 3;

/// Returns the waits between attempts of a call that only reads: 0.2 s, 0.6 s, 1.8 s.
pub fn waits() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(200))
        .with_factor(3.0)
        .with_max_times(MAX_RETRIES)
}

/// Sends one request that changes nothing and reads the whole answer, if it is not longer than `longest` bytes.
///
/// # Errors
///
/// [`Lost`], if no complete answer came.
pub async fn send(request: RequestBuilder, longest: usize) -> Result<Answer, Lost> {
    let (client, request) = request.build_split();
    let request = request.map_err(lost)?;
    let (method, path) = (request.method().clone(), request.url().path().to_owned());
    let answer = answered(&client, request, longest).await;
    note(&method, &path, &answer);
    answer
}

/// Does the same without a note for the record, for calls such as signing in.
pub(super) async fn send_unnoted(request: RequestBuilder, longest: usize) -> Result<Answer, Lost> {
    let (client, request) = request.build_split();
    answered(&client, request.map_err(lost)?, longest).await
}

/// Notes the answer to a request, for the record.
pub(super) fn note(method: &Method, path: &str, answer: &Result<Answer, Lost>) {
    if !matches!(answer, Err(Lost::RunOut)) {
        let status = answer.as_ref().ok().map(|answer| answer.status.as_u16());
        http_log::note(method.as_str(), path, status);
    }
}

/// Returns the service's id of an exchange, from the headers of its answer.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    headers.get("x-request-id").and_then(|id| id.to_str().ok()).map(|id| id.chars().take(64).collect())
}

async fn answered(client: &Client, request: reqwest::Request, longest: usize) -> Result<Answer, Lost> {
    let mut response = client.execute(request).await.map_err(lost)?;
    let status = response.status();
    let request_id = request_id(response.headers());
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
        false => Ok(Answer { status, body, request_id }),
    }
}

fn lost(error: reqwest::Error) -> Lost {
    let (not_sent, timed_out) = (error.is_connect() || error.is_builder(), error.is_timeout());
    // The address may carry a password, and people who read this know it anyway.
    let error = error.without_url();
    let mut reason = if timed_out { "no answer in time".to_owned() } else { describe(&error) };
    if not_sent && timed_out {
        reason = "no connection in time".to_owned();
    }
    if not_sent { Lost::NotSent { reason } } else { Lost::NoAnswer { reason, timed_out } }
}

/// Describes a failure in few words by the last link of the chain: `Connection refused (os error 111)` rather than
/// “error sending request”.
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
        send(client(&base, timeout).unwrap().get(base), MAX_ANSWER_BYTES).await
    }

    #[tokio::test]
    async fn a_refused_connection_was_certainly_not_sent() {
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

    #[tokio::test]
    async fn silence_has_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let lost = ask(&format!("http://{address}/"), Duration::from_millis(100)).await.unwrap_err();
        assert_eq!(lost, Lost::NoAnswer { reason: "no answer in time".into(), timed_out: true });
    }
}
