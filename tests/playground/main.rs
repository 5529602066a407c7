//! The playground from outside: its program as people run it, and its page in a real browser.
//!
//! It is apart from the other tests because only the tests of a program's own package know where that is built.

#![allow(clippy::unwrap_used, reason = "all of it is test code")]

mod commands;
mod page;
#[path = "../integration/support/ports.rs"]
mod ports;
mod running;

use std::time::Duration;

/// How long anything may take. Nothing here takes as long, unless the machine is busy with other things.
const BOUND: Duration = Duration::from_secs(30);
