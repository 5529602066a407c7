//! Ports for servers that cannot be told "any": whoever starts them must name one before they listen.

use std::{
    net::TcpListener,
    process,
    sync::atomic::{AtomicU16, Ordering},
};

/// Where we look: below the ports that systems give to outgoing connections (from 32768 on Linux, from 49152 elsewhere).
///
/// A port from up there is free for a moment only: any connection of any other test may be given it before the server
/// that it is meant for gets to listen, or while a server that was killed is started again.
const FROM: u16 = 20_000;
const PORTS: u16 = 12_000;

/// A port that nobody listens on, and that this process names once only.
pub(crate) fn free_port() -> u16 {
    static NAMED: AtomicU16 = AtomicU16::new(0);
    // Test processes beside this one begin elsewhere.
    let begin = u16::try_from(process::id().wrapping_mul(97) % u32::from(PORTS)).expect("it is below a u16");
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (0..PORTS)
        .map(|_| FROM + (begin + NAMED.fetch_add(1, Ordering::Relaxed) % PORTS) % PORTS)
        .find(free)
        .expect("a port that nobody uses")
}
