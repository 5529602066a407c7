//! Where threads are remembered: two implementations of [`countersign_graph::store::Store`].
//!
//! `sqlite` is the default: one file, one process, nothing to set up. `redis` is for more than one process. Around either
//! of them `sealed` sees to it that who can write there cannot make a decision that nobody made.

mod aside;
pub mod redis;
pub mod sealed;
pub mod sqlite;
