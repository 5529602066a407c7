//! Connections to one service, with the proxies and certificates that this machine is set up to use.

use std::{fmt, io, sync::Arc, time::Duration};

use countersign_wire::{BoxError, this_machine, tls};
use http_body_util::Full;
use hyper::{
    Request, Uri,
    body::Bytes,
    header::{self, HeaderValue},
    rt::{Read, Write},
};
use hyper_rustls::HttpsConnector;
use hyper_util::client::{
    legacy::connect::{Connection as Connected, HttpConnector, proxy::Tunnel},
    proxy::matcher::{Intercept, Matcher},
};
use rustls::ClientConfig;
use tower_service::Service;
use url::Url;

/// The idle time after which the system probes a connection.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// A connection's bytes.
pub(crate) trait Io: Read + Write + Unpin + Send {}

impl<T: Read + Write + Unpin + Send> Io for T {}

/// A connection to the service, with its proxy if that needs absolute URIs.
pub(crate) struct Connection {
    pub(crate) io: Box<dyn Io>,
    pub(crate) through: Option<Intercept>,
}

/// A connector to one service.
pub(crate) struct Connector {
    http: HttpConnector,
    tls: Arc<ClientConfig>,
    /// The proxies; `None` for a service on this machine.
    proxies: Option<Matcher>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    /// Creates a connector to the service at `base`, with the time limit of a call.
    ///
    /// # Errors
    ///
    /// Fails if the service needs TLS and the TLS library finds no trusted certificates.
    pub(crate) fn to(base: &Url, timeout: Duration) -> io::Result<Self> {
        let proxies = (!this_machine::is_named_by(base)).then(Matcher::from_system);
        Self::through(proxies, base, timeout)
    }

    /// Creates a connector with these proxies.
    ///
    /// # Errors
    ///
    /// As [`Self::to`].
    pub(crate) fn through(proxies: Option<Matcher>, base: &Url, timeout: Duration) -> io::Result<Self> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(KEEPALIVE));
        http.set_connect_timeout(Some(timeout / 2));
        // Bytes that the other side has not acknowledged after that time do not arrive later: the system closes the
        // connection. Other systems have no such option.
        #[cfg(target_os = "linux")]
        http.set_tcp_user_timeout(Some(timeout));
        Ok(Self { http, tls: Arc::new(tls_to(base, proxies.as_ref())?), proxies })
    }

    /// Returns the connector below TLS, which [`Self::connect`] takes, wrapped or not.
    pub(crate) fn plain(&self) -> HttpConnector {
        self.http.clone()
    }

    /// Connects through `plain`.
    ///
    /// # Errors
    ///
    /// Fails if no connection can be made.
    pub(crate) async fn connect<C>(&self, to: &Uri, plain: C) -> Result<Connection, BoxError>
    where
        C: Service<Uri> + Send,
        C::Response: Connected + Read + Write + Send + Unpin + 'static,
        C::Future: Send + 'static,
        C::Error: Into<BoxError>,
    {
        let mut direct = HttpsConnector::from((plain, self.tls.clone()));
        let proxy = self.proxies.as_ref().and_then(|proxies| proxies.intercept(to));
        match proxy {
            None => Ok(Connection { io: Box::new(direct.call(to.clone()).await?), through: None }),
            Some(proxy) if to.scheme_str() == Some("https") => {
                let mut tunnel = Tunnel::new(proxy.uri().clone(), direct);
                if let Some(auth) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(auth.clone());
                }
                let mut inside = HttpsConnector::from((tunnel, self.tls.clone()));
                Ok(Connection { io: Box::new(inside.call(to.clone()).await?), through: None })
            }
            Some(proxy) => {
                let io = direct.call(proxy.uri().clone()).await?;
                Ok(Connection { io: Box::new(io), through: Some(proxy) })
            }
        }
    }
}

/// Converts a request to the form in which it is sent on a connection.
pub(crate) fn to_wire(request: reqwest::Request, uri: &Uri, through: Option<&Intercept>) -> Request<Full<Bytes>> {
    let body = request.body().and_then(|body| body.as_bytes()).map(Bytes::copy_from_slice).unwrap_or_default();
    let mut written = Request::new(Full::new(body));
    *written.method_mut() = request.method().clone();
    *written.headers_mut() = request.headers().clone();
    *written.uri_mut() = match (through, uri.path_and_query()) {
        (None, Some(path)) => Uri::from(path.clone()),
        _ => uri.clone(),
    };
    let headers = written.headers_mut();
    if let Some(host) = uri.authority().map(|authority| authority.as_str().rsplit('@').next().unwrap_or_default())
        && let Ok(host) = HeaderValue::from_str(host)
    {
        headers.insert(header::HOST, host);
    }
    headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if let Some(auth) = through.and_then(Intercept::basic_auth) {
        let mut auth = auth.clone();
        auth.set_sensitive(true);
        headers.insert(header::PROXY_AUTHORIZATION, auth);
    }
    written
}

/// Returns the TLS configuration. It has trusted certificates only if the service, or its proxy, uses TLS.
fn tls_to(base: &Url, proxies: Option<&Matcher>) -> io::Result<ClientConfig> {
    let proxy = || {
        let base: Uri = base.as_str().parse().ok()?;
        Some(proxies?.intercept(&base)?.uri().scheme_str() == Some("https"))
    };
    tls::client(base.scheme() == "https" || proxy() == Some(true))
}
