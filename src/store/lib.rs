//! The stores of threads: two implementations of [`countersign_graph::store::Store`].
//!
//! `sqlite` is the default: one file, one process, nothing to set up. `redis` is for more than one process. Around
//! either of them, `sealed` ensures that write access to the store is not enough to forge a decision.
//!
//! It does not know what a state or an action means: both are kept as they are serialized. Start reading at
//! [`countersign_graph::store`], the trait, then at [`sqlite`].

mod aside;
pub mod redis;
pub mod sealed;
pub mod sqlite;
