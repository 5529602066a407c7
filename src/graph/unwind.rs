//! Panics as failures like any other.
//!
//! A node or an action may panic: a fault in the program, which the next attempt may or may not meet again. The panic
//! is caught where it can be counted as an attempt and reported to people. The process's hook has logged it already.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

/// The error of work that panicked. The panic's message may hold words of people, so it is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it panicked; the log says where")]
pub struct Panicked;

/// Returns the result of some work, or that it panicked. The work's own data is dropped; only data that it shares may
/// be half-done, and a lock that it held is poisoned.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| Panicked)
}
