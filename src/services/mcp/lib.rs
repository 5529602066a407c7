//! A client for servers that speak the Model Context Protocol, based on the library `rmcp`.
//!
//! [`McpClient`] connects to one server, over streamable HTTP or over the pipes of a process that it starts. It
//! connects lazily, and reconnects after the connection is lost. A read is repeated once if the session was lost; a
//! change is sent only once, over HTTP under a [`Permit`](countersign_core::permit::Permit), and [`Error`] says whether
//! it can have arrived. The duration of every call and the size of every answer are limited.
//!
//! A server may ask a question during a call ([`Asks`]), and report progress ([`Watch`]).
//!
//! This crate is independent of platforms, the engine and Slack. It does not trust or interpret what a server says, but
//! returns it as data. Start reading at [`McpClient`].

mod client;
mod error;
mod handler;
mod http;
mod session;
mod tool;

pub use self::{
    client::{Call, McpClient, Settings, Way},
    error::Error,
    handler::{Answered, Asks, Progress, Question, Watch},
    tool::{Answer, ServerInfo, ToolDefinition},
};
