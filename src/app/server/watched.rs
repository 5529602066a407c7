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

/// A connection's stream, which reports when a request begins to arrive.
pub(super) struct Stream {
    pub(super) stream: TcpStream,
    pub(super) room: Arc<Room>,
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.room.change_phase(&[Phase::Idle], Phase::Head);
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

/// The body of a request. Once it has arrived or is dropped, the request is being handled.
pub(super) struct RequestBody<B> {
    body: B,
    room: Arc<Room>,
}

impl<B: Body> RequestBody<B> {
    pub(super) fn new(body: B, room: Arc<Room>) -> Self {
        room.change_phase(&[Phase::Idle, Phase::Head, Phase::Answer], Phase::Body);
        if body.is_end_stream() {
            room.change_phase(&[Phase::Body], Phase::Handling);
        }
        Self { body, room }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        match &frame {
            Poll::Ready(Some(Ok(frame))) => self.room.add_body(frame.data_ref().map_or(0, Bytes::len)),
            Poll::Ready(Some(Err(_)) | None) => self.room.change_phase(&[Phase::Body], Phase::Handling),
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

impl<B> Drop for RequestBody<B> {
    fn drop(&mut self) {
        self.room.change_phase(&[Phase::Body], Phase::Handling);
    }
}

/// The body of an answer. While its next part is not ready, the request is being handled. Once it is dropped after sending,
/// the connection is idle.
pub(super) struct ResponseBody<B> {
    body: B,
    room: Arc<Room>,
}

impl<B> ResponseBody<B> {
    pub(super) fn new(body: B, room: Arc<Room>) -> Self {
        room.release_body();
        room.change_phase(&[Phase::Body, Phase::Handling], Phase::Answer);
        Self { body, room }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        match &frame {
            Poll::Ready(_) => self.room.change_phase(&[Phase::Handling], Phase::Answer),
            Poll::Pending => self.room.change_phase(&[Phase::Answer], Phase::Handling),
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

impl<B> Drop for ResponseBody<B> {
    fn drop(&mut self) {
        self.room.change_phase(&[Phase::Answer, Phase::Handling], Phase::Idle);
    }
}
