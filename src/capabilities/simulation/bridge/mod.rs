//! The client of the simulation bridge, for both of its versions.
//!
//! [`client`] has a method for each call; a tool is called in the way of the version that answers ([`calls`]): by
//! `call_tool` in 0.1, by MCP in 0.5. Reads carry a viewer's token and are repeated when the bridge cannot be reached;
//! changes carry the token of the person who approved them ([`token`]), leave once and under a permit, and need a
//! [`confirmed::Confirmed`], which only the record of an approved action can give. [`answer`] reads answers as untrusted
//! data, and [`error`] distinguishes errors by what the caller does next. [`follow`] follows a job until it ends.
//!
//! It knows no sentence for people. Start reading at [`client::BridgeClient`].

pub mod answer;
pub mod calls;
pub mod client;
pub mod confirmed;
pub mod data;
pub mod error;
pub mod follow;
pub mod job;
pub mod token;
