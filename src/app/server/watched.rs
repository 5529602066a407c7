//! Streams and bodies that report the phase of their connection.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::connections::{Phase, Room};

/// A stream that reports when a request begins to arrive.
pub(super) struct Stream {
    pub(super) stream: TcpStream,
    pub(super) room: Arc<Room>,
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.room.goes_on(&[Phase::Idle], Phase::Head);
        }
        read
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// The body of a request; when it has arrived, or is not read on, the request is being handled.
pub(super) struct Arriving<B> {
    body: B,
    room: Arc<Room>,
}

impl<B: Body> Arriving<B> {
    pub(super) fn new(body: B, room: Arc<Room>) -> Self {
        room.goes_on(&[Phase::Idle, Phase::Head, Phase::Answer], Phase::Body);
        if body.is_end_stream() {
            room.goes_on(&[Phase::Body], Phase::Handling);
        }
        Self { body, room }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Arriving<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        match &frame {
            Poll::Ready(Some(Ok(frame))) => self.room.holds(frame.data_ref().map_or(0, Bytes::len)),
            Poll::Ready(Some(Err(_)) | None) => self.room.goes_on(&[Phase::Body], Phase::Handling),
            Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for Arriving<B> {
    fn drop(&mut self) {
        self.room.goes_on(&[Phase::Body], Phase::Handling);
    }
}

/// The body of an answer; when all of it is handed over, the connection is idle.
pub(super) struct Leaving<B> {
    body: B,
    room: Arc<Room>,
}

impl<B> Leaving<B> {
    pub(super) fn new(body: B, room: Arc<Room>) -> Self {
        room.lets_go();
        room.goes_on(&[Phase::Body, Phase::Handling], Phase::Answer);
        Self { body, room }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Leaving<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for Leaving<B> {
    fn drop(&mut self) {
        self.room.goes_on(&[Phase::Answer], Phase::Idle);
    }
}
