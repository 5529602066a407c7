//! How connections to Slack are made: over TLS, or over plain HTTP to a stand-in.

use std::{io, time::Duration};

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use slack_morphism::hyper_tokio::SlackClientHyperConnector;

/// The library's connector over TLS, or over plain HTTP to a stand-in.
pub(super) type Connector = SlackClientHyperConnector<HttpsConnector<HttpConnector>>;

/// A connector for the API at `api_url`; root certificates are read only if it needs them.
pub(super) fn connector(api_url: &str) -> io::Result<Connector> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(Duration::from_secs(5)));
    let provider = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new();
    let https = if api_url.starts_with("https:") {
        builder.with_provider_and_native_roots(provider)?.https_only()
    } else {
        let tls = rustls::ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .expect("the provider has the default versions")
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        builder.with_tls_config(tls).https_or_http()
    };
    let https = https.enable_http1().enable_http2().wrap_connector(http);
    Ok(Connector::with_connector(https).with_slack_api_url(api_url.trim_end_matches('/')))
}
