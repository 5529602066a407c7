//! What every client of an HTTP service needs: a way to send, and the truth about a call that was not answered.
//!
//! It knows no service. Start at [`send`]: it returns an [`Answer`] whatever the status is, or a [`Lost`] that says
//! whether the request can have arrived. That difference decides if a change may be sent again, so it is a type here
//! and not a guess in each client.
//!
//! The design not taken: retrying inside the HTTP client. It cannot know which calls change something.

use std::{error::Error as _, time::Duration};

use backon::ExponentialBuilder;
use reqwest::{Client, RequestBuilder, StatusCode, redirect, retry};
use url::{Host, Url};

use crate::exchanges;

/// What a service answered.
#[derive(Debug)]
pub struct Answer {
    /// Its HTTP status; the only status to believe.
    pub status: StatusCode,
    /// Its body, whatever it is.
    pub body: Vec<u8>,
    /// How the service names this exchange in its own log.
    pub request_id: Option<String>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// No connection came about: the request certainly did not arrive.
    NotSent {
        /// What was seen.
        reason: String,
    },
    /// The request left, or may have: whether it arrived is not known.
    NoAnswer {
        /// What was seen.
        reason: String,
        /// Whether the time was up, rather than the connection lost.
        timed_out: bool,
    },
}

/// A client for the service at `base`; no call takes longer than `timeout`.
///
/// It follows no redirects and repeats nothing by itself: both could send a change twice. A service on this machine is
/// never asked through a proxy.
///
/// # Errors
///
/// If the TLS library finds no certificates to trust.
pub fn client(base: &Url, timeout: Duration) -> Result<Client, reqwest::Error> {
    // Needed once per process, also where no `main` has run; a second time changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let local = match base.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let builder = Client::builder()
        .timeout(timeout)
        .connect_timeout(timeout / 2) // below the whole time, so that a dead host is recognised as *not sent*
        .redirect(redirect::Policy::none())
        .retry(retry::never());
    if local { builder.no_proxy() } else { builder }.build()
}

/// How many times a call that only reads is repeated.
pub const AGAIN: usize = 3;

/// The waits between attempts of a call that only reads: 0.2 s, 0.6 s, 1.8 s.
pub fn waits() -> ExponentialBuilder {
    ExponentialBuilder::default().with_min_delay(Duration::from_millis(200)).with_factor(3.0).with_max_times(AGAIN)
}

/// Sends one request and reads the whole answer.
///
/// # Errors
///
/// [`Lost`], if no complete answer came.
pub async fn send(request: RequestBuilder) -> Result<Answer, Lost> {
    let (client, request) = request.build_split();
    let request = request.map_err(lost)?;
    let (method, path) = (request.method().clone(), request.url().path().to_owned());
    let answer = answered(&client, request).await;
    let status = answer.as_ref().ok().map(|answer| answer.status.as_u16());
    exchanges::note(method.as_str(), &path, status);
    answer
}

async fn answered(client: &Client, request: reqwest::Request) -> Result<Answer, Lost> {
    let response = client.execute(request).await.map_err(lost)?;
    let status = response.status();
    let request_id =
        response.headers().get("x-request-id").and_then(|id| id.to_str().ok()).map(|id| id.chars().take(64).collect());
    let body = response.bytes().await.map_err(lost)?;
    Ok(Answer { status, body: body.into(), request_id })
}

fn lost(error: reqwest::Error) -> Lost {
    let (not_sent, timed_out) = (error.is_connect() || error.is_builder(), error.is_timeout());
    // The address may carry a password, and people who read this know it anyway.
    let error = error.without_url();
    let mut reason = if timed_out { "no answer in time".to_owned() } else { innermost(&error) };
    if reason.starts_with("connection closed before") {
        reason = "the connection was closed".to_owned();
    }
    if not_sent && timed_out {
        reason = "no connection in time".to_owned();
    }
    if not_sent { Lost::NotSent { reason } } else { Lost::NoAnswer { reason, timed_out } }
}

/// The last link of the chain: `Connection refused (os error 111)` rather than “error sending request”.
fn innermost(error: &reqwest::Error) -> String {
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
        send(client(&base, timeout).unwrap().get(base)).await
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
