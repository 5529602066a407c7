//! A stand-in for an SMTP server: it keeps the messages it accepted, and can fail at every point of a session.
//!
//! It is strict: commands come in their order, the client signs in first, and lines end with CRLF and are not too long.
//! A session that violates this gets an error, and the violation is kept for the test.

mod session;

use std::{
    collections::VecDeque,
    future::pending,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{net::TcpListener, sync::Notify};
use tokio_util::sync::CancellationToken;

/// The name with which clients sign in.
pub const USER: &str = "ana";
/// The password with which clients sign in.
pub const PASSWORD: &str = "secret";

/// A failure in the next session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is closed before the greeting.
    NoGreeting,
    /// The sign-in is refused with 535.
    WrongPassword,
    /// The recipient is refused with 550.
    UnknownRecipient,
    /// The message is refused with 451 before it is sent.
    Busy,
    /// The message is refused with 554 after it was sent.
    RefusedMessage,
    /// The connection is closed while the message is being sent.
    ClosedInMessage,
    /// The message is accepted, and then the connection is closed without a response.
    LostResponse,
    /// The message is accepted, and there is no response, but the connection stays open.
    SilentAfterMessage,
    /// There is no response to `MAIL`, but the connection stays open.
    SilentBeforeMessage,
}

/// A message that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The sender of the envelope.
    pub from: String,
    /// The recipients of the envelope.
    pub to: Vec<String>,
    /// The message, without the dots that were added for sending.
    pub message: Vec<u8>,
}

/// A running stand-in. Dropping it closes all connections.
#[derive(Debug)]
pub struct SandboxSmtp {
    address: SocketAddr,
    world: World,
    stop: CancellationToken,
}

/// The state that the sessions share.
#[derive(Clone, Debug, Default)]
struct World {
    inner: Arc<Mutex<Inner>>,
    silent: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Inner {
    accepted: Vec<Accepted>,
    faults: VecDeque<Fault>,
    violations: Vec<String>,
    sessions: usize,
}

impl SandboxSmtp {
    /// Starts a stand-in on a free port of this machine.
    ///
    /// # Errors
    ///
    /// If it cannot listen.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let (address, world, stop) = (listener.local_addr()?, World::default(), CancellationToken::new());
        let (sessions, stopping) = (world.clone(), stop.clone());
        tokio::spawn(async move {
            while let Some(Ok((stream, _))) = stopping.run_until_cancelled(listener.accept()).await {
                let (world, stopping) = (sessions.clone(), stopping.clone());
                tokio::spawn(async move { stopping.run_until_cancelled(session::serve(stream, world)).await });
            }
        });
        Ok(Self { address, world, stop })
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Lets the next session without a fault of its own fail.
    pub fn fail_next(&self, fault: Fault) {
        self.world.lock().faults.push_back(fault);
    }

    /// Returns the messages that were accepted, oldest first.
    pub fn accepted(&self) -> Vec<Accepted> {
        self.world.lock().accepted.clone()
    }

    /// Returns the ways in which clients violated the protocol.
    pub fn violations(&self) -> Vec<String> {
        self.world.lock().violations.clone()
    }

    /// Waits until a session has fallen silent.
    pub async fn is_silent(&self) {
        self.world.silent.notified().await;
    }

    /// Returns the number of connections so far.
    pub fn sessions(&self) -> usize {
        self.world.lock().sessions
    }
}

impl Drop for SandboxSmtp {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a session, and returns its fault.
    fn begin(&self) -> Option<Fault> {
        let mut world = self.lock();
        world.sessions += 1;
        world.faults.pop_front()
    }

    /// Leaves the client without a response.
    async fn fall_silent(&self) {
        self.silent.notify_one();
        pending().await
    }

    fn accept(&self, accepted: Accepted) {
        self.lock().accepted.push(accepted);
    }

    fn violated(&self, violation: String) {
        self.lock().violations.push(violation);
    }
}
