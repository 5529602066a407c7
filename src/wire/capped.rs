//! Connections with a limit on the size of an answer.
//!
//! The bytes received since the last send are counted. On an HTTP/1.1 connection with one request at a time, these are
//! the head and body of one answer, whether it is compressed or chunked or not. This does not work for HTTP/2, where
//! concurrent answers share a connection.

use std::{
    error::Error,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use hyper::Uri;
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower_service::Service;

use super::{BoxError, Connecting};

/// The maximum size of an answer's head and framing, in addition to the limit, in bytes.
const HEAD: usize = 64 * 1024;

/// The error of an answer longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is longer than {}", size(*most))]
pub struct TooLong {
    /// The limit, in bytes.
    pub most: usize,
}

impl TooLong {
    /// Returns this error if `error` is one or was caused by one.
    pub fn in_chain(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            let found = error.downcast_ref::<Self>().copied();
            if let Some(found) = found.or_else(|| inside.and_then(|inside| Self::in_chain(inside))) {
                return Some(found);
            }
            next = error.source();
        }
        None
    }
}

/// Formats a size in whole megabytes, such as `16 MB`, or in bytes if it is less than one megabyte.
pub fn size(bytes: usize) -> String {
    match bytes / (1024 * 1024) {
        0 => format!("{bytes} bytes"),
        mb => format!("{mb} MB"),
    }
}

/// A connector whose connections accept no answer longer than `most` bytes.
#[derive(Clone, Debug)]
pub struct Capping<C> {
    inner: C,
    most: usize,
}

impl<C> Capping<C> {
    /// Wraps `inner` with a limit of `most` bytes on each answer.
    pub fn new(inner: C, most: usize) -> Self {
        Self { inner, most }
    }
}

impl<C> Service<Uri> for Capping<C>
where
    C: Service<Uri>,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    type Response = TokioIo<Capped<TokioIo<C::Response>>>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (connecting, most) = (self.inner.call(to), self.most);
        Box::pin(async move {
            let inner = TokioIo::new(connecting.await.map_err(Into::into)?);
            Ok(TokioIo::new(Capped { inner, received: 0, most }))
        })
    }
}

/// A connection that fails if an answer is too long.
#[derive(Debug)]
pub struct Capped<IO> {
    inner: IO,
    /// The number of bytes received since the last send.
    received: usize,
    most: usize,
}

impl<IO: AsyncRead + Unpin> AsyncRead for Capped<IO> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        self.received += buf.filled().len() - before;
        let most = self.most;
        if self.received > most + HEAD {
            return Poll::Ready(Err(io::Error::other(TooLong { most })));
        }
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Capped<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.received = 0;
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.received = 0;
        Pin::new(&mut self.inner).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl<IO: Connection> Connection for Capped<IO> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn each_answer_is_limited_separately() {
        let (ours, mut theirs) = duplex(1024 * 1024);
        let mut ours = Capped { inner: ours, received: 0, most: 1000 };
        let mut buffer = vec![0; HEAD + 1000];
        for _ in 0..2 {
            ours.write_all(b"a request").await.unwrap();
            theirs.write_all(&vec![b'x'; HEAD + 1000]).await.unwrap();
            ours.read_exact(&mut buffer).await.expect("an answer of this size is accepted");
        }
        theirs.write_all(b"y").await.unwrap();
        let error = ours.read_u8().await.unwrap_err();
        assert_eq!(TooLong::in_chain(&error), Some(TooLong { most: 1000 }));
    }

    #[test]
    fn the_cause_is_found_at_any_depth() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] io::Error);
        let most = 16 << 20;
        let error = Outer(io::Error::other(Outer(io::Error::other(TooLong { most }))));
        let found = TooLong::in_chain(&error).expect("the cause is found");
        assert_eq!(found.to_string(), "the answer is longer than 16 MB");
        assert_eq!(TooLong::in_chain(&Outer(io::ErrorKind::BrokenPipe.into())), None);
    }
}
