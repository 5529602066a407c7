//! The page: it looks and works like a Slack workspace with the bot in it.
//!
//! One address gives a newcomer a workspace, a bot in it and the reasons for each of its decisions.
//! The page is plain HTML, CSS and ES modules under `assets/`, embedded in the binary. There is no
//! build step, and nothing is loaded from elsewhere: the content security policy forbids it, and a
//! test checks the files.
//!
//! The page must not depend on the implementation behind it. The workspace is passed as a router
//! ([`router`]), the records of a thread through [`TraceSource`], and the mails of customers through
//! [`CustomerMail`], so the same page works with any server that answers in the same way.
//!
//! Start reading at `routes.rs` here and at `assets/scripts/main.js` in the page.
//!
//! A framework with a bundler was rejected as a design: each change of the page would need a second
//! tool chain, and the files in the browser would differ from those in the repository.

mod assets;
mod guard;
mod inbox;
mod routes;
mod trace;

use async_trait::async_trait;
pub use inbox::{Customer, CustomerMail, Example, ShownMail, SlackThread, WrittenMail};
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
    /// The name of the only channel that it is for; other suggestions are not shown there.
    pub channel: Option<&'static str>,
}

/// The source of the traces that the page shows. A trace tells what the bot did in a thread, and
/// why.
#[async_trait]
pub trait TraceSource: Send + Sync {
    /// Returns all threads, newest first.
    ///
    /// # Errors
    ///
    /// A sentence for the user of the page, if the records cannot be read.
    async fn threads(&self) -> Result<Value, String>;

    /// Returns the steps, actions and audit chain of the thread that begins with the message `ts`
    /// in `channel`; `None` if the bot has never been in the thread.
    ///
    /// # Errors
    ///
    /// A sentence for the user of the page, if the records cannot be read.
    async fn trace(&self, channel: &str, ts: &str) -> Result<Option<Value>, String>;
}
