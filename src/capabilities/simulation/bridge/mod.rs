//! The client of the simulation bridge, for both of its versions.
//!
//! [`client`] has a method for each call. The form of a tool call depends on the version of the bridge ([`calls`]):
//! `call_tool` in 0.1, MCP in 0.5. Reads carry a viewer's token and are repeated if the bridge cannot be reached.
//! Changes carry a token in the name of the person who approved them ([`token`]), are sent once and under a permit, and
//! need a [`confirmed::Confirmed`], which can only be made from the record of an approved action. [`answer`] reads
//! answers as untrusted data, and [`error`] distinguishes errors by the caller's next step. [`follow`] follows a job
//! until it ends, and [`subjects`] reads the curves of a population.
//!
//! The sentences for people are elsewhere. Start reading at [`client::BridgeClient`].

pub mod answer;
pub mod calls;
pub mod client;
pub mod confirmed;
pub mod data;
pub mod error;
pub mod follow;
pub mod job;
pub mod subjects;
pub mod token;
