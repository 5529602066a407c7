//! Sends changes, each on a connection of its own, and nothing without a permit.
//!
//! A pooled connection may already be closed by the other side, or may date from before a long pause of the process,
//! and a request may have to wait for a connection. So connections are not pooled here: [`Changes::send`] connects,
//! sends one request under a [`Permit`], reads the answer, and closes the connection. The result is more exact than
//! that of a pooled client: if no byte of the request was written, it was certainly not sent, however the connection
//! ended.
//!
//! Everything happens in the caller's task. Dropping the future closes the connection, and nothing is sent afterwards.
//!
//! Proxies and certificates are the same as for reads: the proxies in the usual environment variables, and the
//! certificates that the machine trusts.

use std::{fmt, io, sync::Arc, time::Duration};

use countersign_core::permit::Permit;
use countersign_wire::{
    BoxError,
    capped::TooLong,
    permitted::{Permitting, Sending},
    this_machine, tls,
};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Uri,
    body::{Body as _, Bytes, Incoming},
    client::conn::http1,
    header::{self, HeaderValue},
    rt::{Read, Write},
};
use hyper_rustls::HttpsConnector;
use hyper_util::client::{
    legacy::connect::{HttpConnector, proxy::Tunnel},
    proxy::matcher::{Intercept, Matcher},
};
use reqwest::RequestBuilder;
use rustls::ClientConfig;
use tokio::time::{Instant, timeout};
use tower_service::Service;
use url::Url;

use super::http::{Answer, Lost, describe, note, request_id};

/// Sends changes to one service.
pub struct Changes {
    http: HttpConnector,
    tls: Arc<ClientConfig>,
    /// The proxies in front of the service; `None` for a service on this machine.
    proxies: Option<Matcher>,
    timeout: Duration,
    longest: usize,
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes")
            .field("timeout", &self.timeout)
            .field("longest", &self.longest)
            .finish_non_exhaustive()
    }
}

trait Io: Read + Write + Unpin + Send {}

impl<T: Read + Write + Unpin + Send> Io for T {}

/// A connection to the service.
struct Connection {
    io: Box<dyn Io>,
    /// The proxy at the other end, which needs absolute URIs, if there is one.
    through: Option<Intercept>,
}

/// A request and its connection, before anything is sent.
struct Prepared {
    io: Box<dyn Io>,
    request: Request<Full<Bytes>>,
    sending: Arc<Sending>,
}

/// Returns the error of a request of which nothing was sent.
fn not_sent(sending: &Sending, reason: String) -> Lost {
    if sending.was_refused() { Lost::RunOut } else { Lost::NotSent { reason } }
}

/// An answer whose body is still arriving. Dropping it closes its connection.
#[derive(Debug)]
pub struct Opened {
    /// The status and the headers.
    pub head: hyper::http::response::Parts,
    body: Incoming,
    _driver: Driver,
}

impl Opened {
    /// Returns the next bytes of the body; `None` at its end.
    ///
    /// # Errors
    ///
    /// If the connection was lost.
    pub async fn next(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        loop {
            match self.body.frame().await?.map(hyper::body::Frame::into_data) {
                Ok(Ok(data)) => return Some(Ok(data)),
                Ok(Err(_)) => {} // trailers
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The task that drives a connection. Dropping this aborts the task.
#[derive(Debug)]
struct Driver(tokio::task::AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Changes {
    /// Creates a sender for the service at `base`, with limits on the duration of a call and the size of an answer in
    /// bytes.
    ///
    /// # Errors
    ///
    /// If the service uses TLS and the TLS library finds no certificates to trust.
    pub fn to(base: &Url, timeout: Duration, longest: usize) -> io::Result<Self> {
        let proxies = (!this_machine::is_named_by(base)).then(Matcher::from_system);
        Self::with_proxies(proxies, base, timeout, longest)
    }

    fn with_proxies(proxies: Option<Matcher>, base: &Url, timeout: Duration, longest: usize) -> io::Result<Self> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(timeout / 2));
        // Data that is not acknowledged in this time must not arrive later: the system closes the connection.
        http.set_tcp_user_timeout(Some(timeout));
        Ok(Self { http, tls: Arc::new(tls_to(base, proxies.as_ref())?), proxies, timeout, longest })
    }

    /// Sets the limit on the size of an answer, in bytes.
    #[must_use]
    pub fn reading_at_most(self, longest: usize) -> Self {
        Self { longest, ..self }
    }

    /// Sends one request under a permit and reads the whole answer.
    ///
    /// # Errors
    ///
    /// [`Lost`] if there is no complete answer; [`Lost::RunOut`] if nothing was sent because the permit had run out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection; unsent bytes are never sent.
    pub async fn send(&self, request: RequestBuilder, permit: &Permit) -> Result<Answer, Lost> {
        let request = request.build().map_err(|error| Lost::NotSent { reason: describe(&error.without_url()) })?;
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let answer = self.send_unrecorded(request, permit).await;
        note(&method, &path, &answer);
        answer
    }

    async fn send_unrecorded(&self, request: reqwest::Request, permit: &Permit) -> Result<Answer, Lost> {
        let begun = Instant::now();
        let Prepared { io, request, sending } = self.prepare(request, permit).await?;
        let before = sending.bytes();
        let left = self.timeout.saturating_sub(begun.elapsed());
        let error = match timeout(left, self.exchange(io, request)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        if let Some(too_long) = error.as_deref().and_then(|error| TooLong::in_chain(error)) {
            return Err(too_long.into());
        }
        let reason = error.as_deref().map_or_else(|| "no answer in time".to_owned(), |error| describe(error));
        match sending.bytes() == before {
            true => Err(not_sent(&sending, reason)),
            false => Err(Lost::NoAnswer { reason, timed_out: error.is_none() }),
        }
    }

    /// Sends one request under a permit and returns the answer as soon as its head has arrived, for a body that is
    /// streamed. The time-out does not apply to the body.
    ///
    /// # Errors
    ///
    /// [`Lost`] if no answer began; [`Lost::RunOut`] if nothing was sent because the permit had run out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, or the answer, closes the connection; unsent bytes are never sent.
    pub async fn open(&self, request: RequestBuilder, permit: &Permit) -> Result<Opened, Lost> {
        let request = request.build().map_err(|error| Lost::NotSent { reason: describe(&error.without_url()) })?;
        let Prepared { io, request, sending } = self.prepare(request, permit).await?;
        let before = sending.bytes();
        let begun = async {
            let (mut sender, driven) = http1::handshake::<_, Full<Bytes>>(io).await?;
            let driver = Driver(tokio::spawn(async { drop(driven.await) }).abort_handle());
            Ok::<_, hyper::Error>((sender.send_request(request).await?.into_parts(), driver))
        };
        let error = match timeout(self.timeout, begun).await {
            Ok(Ok(((head, body), driver))) => return Ok(Opened { head, body, _driver: driver }),
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        let reason = error.as_ref().map_or_else(|| "no answer in time".to_owned(), |error| describe(error));
        match sending.bytes() == before {
            true => Err(not_sent(&sending, reason)),
            false => Err(Lost::NoAnswer { reason, timed_out: error.is_none() }),
        }
    }

    /// Connects to send a request under a permit. Nothing of the request is sent yet.
    async fn prepare(&self, request: reqwest::Request, permit: &Permit) -> Result<Prepared, Lost> {
        let sending = Sending::under(permit.clone());
        permit.check().map_err(|_| Lost::RunOut)?;
        let uri: Uri = request.url().as_str().parse().map_err(|_| not_sent(&sending, "no address".to_owned()))?;
        let Connection { io, through } = match timeout(self.timeout / 2, self.connect(&uri, &sending)).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(not_sent(&sending, describe(&*error))),
            Err(_) => return Err(not_sent(&sending, "no connection in time".to_owned())),
        };
        Ok(Prepared { io, request: to_wire(request, &uri, through.as_ref()), sending })
    }

    async fn connect(&self, to: &Uri, sending: &Arc<Sending>) -> Result<Connection, BoxError> {
        let permitting = Permitting::new(self.http.clone(), sending.clone());
        let mut direct = HttpsConnector::from((permitting, self.tls.clone()));
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

    /// Sends one request on a connection and reads the answer.
    async fn exchange(&self, io: Box<dyn Io>, request: Request<Full<Bytes>>) -> Result<Answer, BoxError> {
        let (mut sender, connection) = http1::handshake::<_, Full<Bytes>>(io).await?;
        // The connection is driven here, not in a separate task. The sender returns its error if it ends.
        let drive = async {
            let _ = connection.await;
            std::future::pending().await
        };
        let exchange = async {
            let response = sender.send_request(request).await?;
            let (head, body) = response.into_parts();
            let body = read(body, self.longest).await?;
            Ok(Answer { status: head.status, request_id: request_id(&head.headers), body })
        };
        tokio::select! {
            answer = exchange => answer,
            never = drive => never,
        }
    }
}

/// Converts a request to the form in which it is sent on a connection.
fn to_wire(request: reqwest::Request, uri: &Uri, through: Option<&Intercept>) -> Request<Full<Bytes>> {
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

async fn read(mut body: Incoming, longest: usize) -> Result<Vec<u8>, BoxError> {
    let too_long = TooLong { most: longest };
    if body.size_hint().lower() > longest as u64 {
        return Err(too_long.into());
    }
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if read.len() + data.len() > longest {
            return Err(too_long.into());
        }
        read.extend_from_slice(&data);
    }
    Ok(read)
}

/// Returns the TLS configuration, with certificates if the service or a proxy in front of it uses TLS.
fn tls_to(base: &Url, proxies: Option<&Matcher>) -> io::Result<ClientConfig> {
    let proxy = || {
        let base: Uri = base.as_str().parse().ok()?;
        Some(proxies?.intercept(&base)?.uri().scheme_str() == Some("https"))
    };
    tls::client(base.scheme() == "https" || proxy() == Some(true))
}

#[cfg(test)]
mod tests;
