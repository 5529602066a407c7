//! Connections that a handler can close.
//!
//! A handler cannot close its connection directly. It can use the [`Switch`] and then return any
//! response: nothing of it is sent, and the client sees the connection close without an answer.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
};

/// The switch of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Switch(Arc<State>);

#[derive(Debug, Default)]
struct State {
    cut: AtomicBool,
    spent: AtomicBool,
}

impl Switch {
    /// Stops sending from now on.
    pub(crate) fn cut(&self) {
        self.0.cut.store(true, Ordering::SeqCst);
    }

    /// Marks the current answer as the last one on this connection, without notifying the client.
    pub(crate) fn spend(&self) {
        self.0.spent.store(true, Ordering::SeqCst);
    }

    /// Returns true if the last answer was given.
    pub(crate) fn is_spent(&self) -> bool {
        self.0.spent.load(Ordering::SeqCst)
    }

    fn is_cut(&self) -> bool {
        self.0.cut.load(Ordering::SeqCst)
    }
}

impl Connected<IncomingStream<'_, SwitchListener>> for Switch {
    fn connect_info(stream: IncomingStream<'_, SwitchListener>) -> Self {
        stream.io().switch.clone()
    }
}

/// A listener whose connections have a switch.
pub(crate) struct SwitchListener(pub(crate) TcpListener);

impl Listener for SwitchListener {
    type Io = SwitchConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (SwitchConnection, SocketAddr) {
        let (stream, from) = Listener::accept(&mut self.0).await;
        // Otherwise every small answer would wait for the acknowledgement of the previous one.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot disable Nagle's algorithm");
        }
        (SwitchConnection { stream, switch: Switch::default() }, from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// A connection with a switch.
pub(crate) struct SwitchConnection {
    stream: TcpStream,
    switch: Switch,
}

impl AsyncRead for SwitchConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for SwitchConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.switch.is_cut() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.switch.is_cut() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
