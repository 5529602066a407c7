//! Connections to Slack: over TLS, or over plain HTTP to a stand-in.
//!
//! The library reads every answer to its end, however long it is. So its connections limit the size of each answer
//! ([`countersign_wire::capped`]), for all calls of the library, including the one that opens Socket Mode. They use
//! HTTP/1.1, where the bytes of one answer can be distinguished from those of the next.

use std::{io, time::Duration};

use countersign_wire::{
    capped::{Capping, TooLong},
    tls,
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use slack_morphism::{errors::SlackClientError, hyper_tokio::SlackClientHyperConnector};

/// The library's connector over TLS, or over plain HTTP to a stand-in.
pub(super) type Connector = SlackClientHyperConnector<Capping<HttpsConnector<HttpConnector>>>;

/// Returns a connector for the API at `api_url` that reads at most `longest` bytes of an answer. Root certificates are
/// loaded only if the address uses TLS.
pub(super) fn connector(api_url: &str, longest: usize) -> io::Result<Connector> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(Duration::from_secs(5)));
    let is_https = api_url.starts_with("https:");
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls::client(is_https)?);
    let https = if is_https { builder.https_only() } else { builder.https_or_http() };
    let capped = Capping::new(https.enable_http1().wrap_connector(http), longest);
    Ok(Connector::with_connector(capped).with_slack_api_url(api_url.trim_end_matches('/')))
}

/// Returns true if a call failed because its answer was too long.
pub(super) fn was_too_long(error: &SlackClientError) -> bool {
    let cause = match error {
        SlackClientError::HttpProtocolError(error) => error.cause.as_deref(),
        SlackClientError::SystemError(error) => error.cause.as_deref(),
        _ => None,
    };
    cause.and_then(|cause| TooLong::in_chain(cause)).is_some()
}
