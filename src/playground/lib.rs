//! The playground: a Slack workspace in the browser, served by the bot itself.
//!
//! A newcomer opens one address and has a workspace, a bot in it and a look behind every decision. The page is plain
//! HTML, CSS and ES modules under `assets/`, embedded in the binary: there is no build step, and nothing on it is ever
//! fetched from elsewhere (the content security policy would refuse it, and so does a test).
//!
//! It must not know what stands behind it. The workspace arrives as a router ([`router`]), the records of a thread
//! through [`TraceSource`]; so the same page would serve against any server that answers like them.
//!
//! Start reading at `routes.rs` here, and at `assets/scripts/main.js` in the page, whose modules each say what they do.
//!
//! Not taken: a framework with a bundler. The page would need a second tool chain to change a line of it, and a
//! reader of this repository could no longer see in the browser what is in the file.

mod assets;
mod guard;
mod routes;
mod trace;

use async_trait::async_trait;
pub use routes::router;
use serde::Serialize;
use serde_json::Value;

/// A suggestion of something to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// The reason to try it.
    pub why: &'static str,
    /// The text to send.
    pub text: &'static str,
}

/// The source of the traces that the page shows: what the bot did in a thread, and why.
#[async_trait]
pub trait TraceSource: Send + Sync {
    /// Returns all threads, newest first.
    ///
    /// # Errors
    ///
    /// A sentence for the person at the page, when the records cannot be read.
    async fn threads(&self) -> Result<Value, String>;

    /// Returns the steps, actions and audit chain of the thread that begins with message `ts` of `channel`, or `None`
    /// if the bot has never been in it.
    ///
    /// # Errors
    ///
    /// A sentence for the person at the page, when the records cannot be read.
    async fn trace(&self, channel: &str, ts: &str) -> Result<Option<Value>, String>;
}
