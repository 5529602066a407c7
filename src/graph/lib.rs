//! The durable engine. It saves every step of a graph, pauses for a person's decision, and resumes
//! where it paused.
//!
//! It does not depend on Slack, on language models or on any platform. Start reading at [`engine`],
//! which drives one thread through its graph. [`node`] is the unit of work in a graph; [`action`]
//! is a change in the outside world, with its legal status transitions; [`store`] is the trait of
//! the store that the engine needs, and [`step_commit`] is the way of its messages to their sender. There may be several graphs, each with its own engine; a thread
//! belongs to one of them. [`conversing`] reads a thread's memory without running its graph.
//!
//! *Architecture Invariant:* a node is never re-entered after a pause. An interrupt is a value that
//! a node returns ([`node::Next::Ask`]), and the answer leads to the node named in it.
//! *Architecture Invariant:* the only way to change the outside world is an
//! [`action::ActionRecord`] that a person approved; a [`node::Node`] has no other means.
//!
//! Nodes that suspend in the middle and run again from the top on resume, as in many graph engines,
//! were rejected as a design: everything that such a node did before it paused would happen twice.

pub mod action;
pub mod admission;
mod canonical;
pub mod card;
pub mod checkpoint;
pub mod conversing;
pub mod definition;
mod delta;
pub mod digest;
pub mod engine;
mod indexed;
pub mod json;
pub mod keyring;
pub mod node;
mod pointer;
pub mod request;
pub mod retry;
pub mod seal;
pub mod shared;
pub mod standing;
pub mod step_commit;
pub mod store;
pub mod unwind;
