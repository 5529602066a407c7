//! Connections on which nothing is sent without a valid permit.
//!
//! The permit is checked immediately before each write to the socket, below TLS, so that only the
//! system call follows the last check. Bytes still in the buffers of TLS or HTTP when the permit
//! runs out are never sent.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use countersign_core::send_permit::SendPermit;
use hyper::Uri;
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower_service::Service;

use super::{BoxError, Connecting};

/// A permit, and the number of bytes sent under it on one connection.
#[derive(Debug)]
pub struct Sending {
    permit: SendPermit,
    sent: AtomicU64,
    refused: AtomicBool,
}

impl Sending {
    /// Creates the record of a connection on which nothing has been sent yet.
    pub fn under(permit: SendPermit) -> Arc<Self> {
        Arc::new(Self { permit, sent: AtomicU64::new(0), refused: AtomicBool::new(false) })
    }

    /// Returns the number of bytes sent, including those of TLS.
    pub fn bytes(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    /// Returns true if a write was refused because the permit had run out.
    pub fn was_refused(&self) -> bool {
        self.refused.load(Ordering::SeqCst)
    }

    /// Performs one write if the permit is still valid.
    fn write(&self, write: impl FnOnce() -> Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Err(run_out) = self.permit.check() {
            self.refused.store(true, Ordering::SeqCst);
            return Poll::Ready(Err(io::Error::other(run_out)));
        }
        let written = ready!(write())?;
        self.sent.fetch_add(written as u64, Ordering::SeqCst);
        Poll::Ready(Ok(written))
    }
}

/// A connector whose connections send nothing without a valid permit.
#[derive(Clone, Debug)]
pub struct Permitting<C> {
    inner: C,
    sending: Arc<Sending>,
}

impl<C> Permitting<C> {
    /// Wraps `inner`; `sending` contains the permit and counts the bytes sent.
    pub fn new(inner: C, sending: Arc<Sending>) -> Self {
        Self { inner, sending }
    }
}

impl<C> Service<Uri> for Permitting<C>
where
    C: Service<Uri>,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    type Response = TokioIo<Permitted<TokioIo<C::Response>>>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (connecting, sending) = (self.inner.call(to), self.sending.clone());
        Box::pin(async move {
            let inner = TokioIo::new(connecting.await.map_err(Into::into)?);
            Ok(TokioIo::new(Permitted::new(inner, sending)))
        })
    }
}

/// A connection that writes nothing once the permit has run out.
#[derive(Debug)]
pub struct Permitted<IO> {
    inner: IO,
    sending: Arc<Sending>,
}

impl<IO> Permitted<IO> {
    /// Wraps a connection that is already established; `sending` contains the permit and counts the bytes sent.
    pub fn new(inner: IO, sending: Arc<Sending>) -> Self {
        Self { inner, sending }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Permitted<IO> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Permitted<IO> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { inner, sending } = self.get_mut();
        sending.write(|| Pin::new(inner).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { inner, sending } = self.get_mut();
        sending.write(|| Pin::new(inner).poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx) // a socket has no buffer to flush
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl<IO: Connection> Connection for Permitted<IO> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;
    use countersign_core::{clock::ManualClock, send_permit::RunOut};

    #[tokio::test]
    async fn a_permit_that_ran_out_stops_the_next_write() {
        let clock = ManualClock::default();
        let sending = Sending::under(SendPermit::new(Arc::new(clock.clone()), Duration::from_secs(60)));
        let (inner, mut theirs) = duplex(1024);
        let mut ours = Permitted { inner, sending: sending.clone() };
        ours.write_all(b"in time").await.unwrap();
        assert!(!sending.was_refused());
        clock.advance(Duration::from_secs(60));
        let error = ours.write_all(b"too late").await.unwrap_err();
        assert!(error.get_ref().is_some_and(|inner| inner.is::<RunOut>()), "{error:?}");
        assert!(sending.was_refused());
        assert_eq!(sending.bytes(), 7);
        drop(ours);
        let mut arrived = String::new();
        theirs.read_to_string(&mut arrived).await.unwrap();
        assert_eq!(arrived, "in time");
    }
}
