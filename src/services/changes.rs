//! Sends changes, each on its own connection, and no byte without a permit.
//!
//! A pooled connection may have been closed by the other side, or be an hour old because the process was suspended, and
//! a request may wait in a queue for one. So nothing is pooled here: [`Changes::send`] connects, sends one request
//! under a [`SendPermit`], reads the answer, and closes the connection. The result is more precise than with a pooled
//! client: if no byte of the request was sent, it certainly had no effect, however the connection ended.
//!
//! Everything happens in the caller's task. Dropping the future closes the connection, and nothing is sent after that.
//!
//! Proxies and certificates are the same as for the client for reads: the usual environment variables, and the
//! certificates that the machine trusts.

use std::{fmt, io, sync::Arc, time::Duration};

use countersign_core::{send_permit::SendPermit, spans};
use countersign_wire::{
    BoxError,
    capped::TooLong,
    permitted::{Permitting, Sending},
};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Uri,
    body::{Body as _, Bytes, Incoming},
    client::conn::http1,
};
#[cfg(test)]
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::RequestBuilder;
use tokio::time::{Instant, timeout};
use url::Url;

use super::{
    connector::{Connection, Connector, Io, to_wire},
    http::{Answer, Lost, describe, note, request_id, retry_after, status_of, with_trace},
};

/// A sender of changes to one service.
pub struct Changes {
    system: &'static str,
    connector: Connector,
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

/// A request with a connection; no byte of it has been sent.
struct Prepared {
    io: Box<dyn Io>,
    request: Request<Full<Bytes>>,
    sending: Arc<Sending>,
}

/// Returns the error for a request of which no byte was sent.
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
    /// Fails if the connection was lost.
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

/// The task that drives a connection. Dropping this aborts it.
#[derive(Debug)]
struct Driver(tokio::task::AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Changes {
    /// Creates a sender for the system of this name, which is at `base`, with limits on the time of a call and the bytes of an answer.
    ///
    /// # Errors
    ///
    /// Fails if the service needs TLS and the TLS library finds no trusted certificates.
    pub fn to(system: &'static str, base: &Url, timeout: Duration, longest: usize) -> io::Result<Self> {
        Ok(Self { system, connector: Connector::to(base, timeout)?, timeout, longest })
    }

    #[cfg(test)]
    fn through(proxies: Option<Matcher>, base: &Url, timeout: Duration, longest: usize) -> io::Result<Self> {
        Ok(Self { system: "it", connector: Connector::through(proxies, base, timeout)?, timeout, longest })
    }

    /// Sets the limit on the bytes of an answer.
    #[must_use]
    pub fn reading_at_most(self, longest: usize) -> Self {
        Self { longest, ..self }
    }

    /// Sends one request under a permit and reads the whole answer.
    ///
    /// # Errors
    ///
    /// [`Lost`] if there was no complete answer; [`Lost::RunOut`] if nothing was sent because the permit had run out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection; unsent bytes are never sent.
    pub async fn send(&self, request: RequestBuilder, permit: &SendPermit) -> Result<Answer, Lost> {
        let request = request.build().map_err(|error| Lost::NotSent { reason: describe(&error.without_url()) })?;
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let answer = spans::call(self.system, method.as_str(), self.send_unnoted(request, permit), status_of).await;
        note(&method, &path, &answer);
        answer
    }

    async fn send_unnoted(&self, request: reqwest::Request, permit: &SendPermit) -> Result<Answer, Lost> {
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

    /// Sends one request under a permit and returns the answer when its head has arrived, for a body that arrives bit
    /// by bit. The time-out applies until then.
    ///
    /// # Errors
    ///
    /// [`Lost`] if no head arrived; [`Lost::RunOut`] if nothing was sent because the permit had run out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, or the answer, closes the connection; unsent bytes are never sent.
    pub async fn open(&self, request: RequestBuilder, permit: &SendPermit) -> Result<Opened, Lost> {
        let request = request.build().map_err(|error| Lost::NotSent { reason: describe(&error.without_url()) })?;
        let method = request.method().clone();
        let status = |opened: &Result<Opened, Lost>| match opened {
            Ok(opened) => opened.head.status.as_str().to_owned().into(),
            Err(lost) => lost.status(),
        };
        spans::call(self.system, method.as_str(), self.open_unmeasured(request, permit), status).await
    }

    async fn open_unmeasured(&self, request: reqwest::Request, permit: &SendPermit) -> Result<Opened, Lost> {
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

    /// Connects for a request under a permit, without sending any byte of the request.
    async fn prepare(&self, request: reqwest::Request, permit: &SendPermit) -> Result<Prepared, Lost> {
        let sending = Sending::under(permit.clone());
        permit.check().map_err(|_| Lost::RunOut)?;
        let uri: Uri = request.url().as_str().parse().map_err(|_| not_sent(&sending, "no address".to_owned()))?;
        let plain = Permitting::new(self.connector.plain(), sending.clone());
        let Connection { io, through } = match timeout(self.timeout / 2, self.connector.connect(&uri, plain)).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(not_sent(&sending, describe(&*error))),
            Err(_) => return Err(not_sent(&sending, "no connection in time".to_owned())),
        };
        Ok(Prepared { io, request: to_wire(with_trace(request), &uri, through.as_ref()), sending })
    }

    /// Sends one request and reads its answer, on a connection that is closed afterwards.
    async fn exchange(&self, io: Box<dyn Io>, request: Request<Full<Bytes>>) -> Result<Answer, BoxError> {
        let (mut sender, connection) = http1::handshake::<_, Full<Bytes>>(io).await?;
        // The connection is driven here and not in a separate task. Its error is returned by the sender, so it is
        // ignored here.
        let drive = async {
            let _ = connection.await;
            std::future::pending().await
        };
        let exchange = async {
            let response = sender.send_request(request).await?;
            let (head, body) = response.into_parts();
            let body = read(body, self.longest).await?;
            let (request_id, retry_after) = (request_id(&head.headers), retry_after(&head.headers));
            Ok(Answer { status: head.status, body, request_id, retry_after })
        };
        tokio::select! {
            answer = exchange => answer,
            never = drive => never,
        }
    }
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

#[cfg(test)]
mod tests;
