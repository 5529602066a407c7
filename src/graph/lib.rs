//! The durable engine: graphs whose every step is saved, paused for a person, and resumed where they paused.
//!
//! It does not depend on Slack, on language models or on any platform. Start reading at [`engine`], which drives one
//! thread through its graph; [`node`] is the unit of work in a graph; [`action`] is a change in the outside world and
//! its legal moves; [`store`] is the trait of the store that the engine needs. There may be several graphs, each with
//! an engine; a thread belongs to one of them. [`conversing`] reads a thread without running its graph.
//!
//! *Architecture Invariant:* a node never runs again from its top. An interrupt is a value a node returns
//! ([`node::Next::Ask`]), and the answer leads to the node named in it. *Architecture Invariant:* the only way to
//! change the outside world is an [`action::ActionRecord`] that a person approved; [`node::Node`] has no other.
//!
//! The design we did not take: nodes that suspend in the middle and are re-run up to that point on resume, as graph
//! engines commonly do. Everything such a node did before it paused happens twice.

pub mod action;
pub mod admission;
mod ask;
mod batches;
pub mod card;
pub mod checkpoint;
pub mod conversing;
pub mod definition;
mod delta;
pub mod digest;
pub mod engine;
mod external;
mod follow_up;
pub mod keyring;
mod looks;
pub mod node;
mod perform;
pub mod request;
pub mod retry;
pub mod seal;
mod session;
pub mod standing;
mod step;
mod stop;
pub mod store;
pub mod unwind;
