//! A panic as a failure like any other.
//!
//! What a node or an action does may panic: a fault in the program, which the next attempt may or may not meet again. It
//! is caught where it can be counted as an attempt and told to people. The log has it already, from the process's hook.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

/// Something panicked. Its message may hold what people wrote, so it is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it panicked; the log says where")]
pub struct Panicked;

/// The result of some work, or that it panicked. What the work had in hand is dropped; only what it shares with others
/// may be half-done, and a lock that it held is poisoned.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| Panicked)
}
