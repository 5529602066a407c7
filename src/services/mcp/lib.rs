//! A client for servers that speak the Model Context Protocol, on the library `rmcp`.
//!
//! [`McpClient`] connects to one server, over streamable HTTP or over the pipes of a process that it starts: lazily, and
//! again after a loss. What reads is asked once more if the session was lost; what changes something is sent once, under
//! a [`Permit`](countersign_core::permit::Permit) where there is a connection to hold it to, and [`Error`] says whether
//! it can have arrived. No call takes longer than its time, and no answer is read further than a limit.
//!
//! A server may ask a question in the middle of a call ([`Asks`]), and report its progress ([`Watch`]).
//!
//! It knows no platform, no engine and no Slack. Nothing that a server says is believed here; it is handed on as data.
//! Start reading at [`McpClient`].

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
