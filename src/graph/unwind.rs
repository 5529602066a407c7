//! Handles panics in nodes and actions as failed attempts.
//!
//! A panic in a node or an action is a bug, which the next attempt may or may not hit again. It is
//! caught where it can be counted as a failed attempt and reported to people. The process's panic
//! hook has already logged it.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

/// The error for work that panicked. The panic message may contain people's words, so it is not
/// kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it panicked; the log says where")]
pub struct Panicked;

/// Runs some work and returns its result, or [`Panicked`]. The work's own data is dropped on a
/// panic. Data that it shares may be left half-updated, and a lock that it held is poisoned.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| Panicked)
}
