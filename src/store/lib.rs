//! The stores of threads: two implementations of [`countersign_graph::store::Store`].
//!
//! `sqlite` is the default: one file, one process, nothing to set up. `redis` is for more than one process. Around
//! either of them, `sealed` ensures that write access to the store is not enough to forge a decision.

mod aside;
pub mod redis;
pub mod sealed;
pub mod sqlite;
