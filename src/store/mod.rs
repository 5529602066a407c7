//! Where threads are remembered: two implementations of [`crate::graph::store::Store`].
//!
//! `sqlite` is the default: one file, one process, nothing to set up. `redis` is for more than one process.

mod aside;
pub mod redis;
pub mod sqlite;
