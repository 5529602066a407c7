//! The stores of threads: two implementations of [`countersign_graph::store::Store`].
//!
//! `sqlite` is the default: one file, one process, no setup. `redis` is for several processes.
//! `sealed` wraps either of them and ensures that write access to the store is not enough to forge
//! a decision.
//!
//! The stores do not interpret states or actions, which are stored in their serialized form. Start
//! reading at [`countersign_graph::store`], the trait, then at [`sqlite`].

mod aside;
pub mod packed;
pub mod redis;
pub mod sealed;
pub mod sqlite;
