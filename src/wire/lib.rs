//! Connections that look at what passes: no more bytes come in than may be read, none goes out without a permit.
//!
//! Both are wrappers around whatever makes connections, so they hold for every client that is given one, also for those
//! of libraries: [`capped`] above TLS, where answers are seen as they are; [`permitted`] below it, where nothing follows
//! but the system call. What TLS trusts is said once, in [`tls`].

pub mod capped;
pub mod permitted;
pub mod this_machine;
pub mod tls;

use std::pin::Pin;

/// An error of any kind, as connectors report them.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A connection that is being made.
pub type Connecting<IO> = Pin<Box<dyn Future<Output = Result<IO, BoxError>> + Send>>;
