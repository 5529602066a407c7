//! Connections that check the bytes: none come in above a limit, none go out without a permit.
//!
//! Both wrap any connector, so they hold for every client that is given one, also for those of libraries: [`capped`]
//! above TLS, where answers are seen as they are; [`permitted`] below it, where only the system call follows. The
//! certificates that TLS trusts are named once, in [`tls`].
//!
//! It does not know what the bytes mean, nor who sends them. Start reading at [`permitted`].

pub mod capped;
pub mod permitted;
pub mod this_machine;
pub mod tls;

use std::pin::Pin;

/// An error of any kind, as connectors report them.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A connection that is being made.
pub type Connecting<IO> = Pin<Box<dyn Future<Output = Result<IO, BoxError>> + Send>>;
