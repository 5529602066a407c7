//! Connections that limit the size of answers, or send only with a permit.
//!
//! Both wrap a connector, so they work with every client that accepts one, including those of libraries. [`capped`]
//! connections are above TLS, where answers are not encrypted; [`permitted`] connections are below it, where only the
//! system call follows. The certificates that TLS trusts are set in one place, [`tls`].
//!
//! This crate knows neither the meaning of the bytes nor their sender. Start reading at [`permitted`].

pub mod capped;
pub mod permitted;
pub mod this_machine;
pub mod tls;

use std::pin::Pin;

/// Any error, as returned by connectors.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A connection that is being established.
pub type Connecting<IO> = Pin<Box<dyn Future<Output = Result<IO, BoxError>> + Send>>;
