//! A client for servers that speak the Model Context Protocol, based on the library `rmcp`.
//!
//! [`McpClient`] connects to one server, over HTTP (the streamable one, or the older one with a stream of events) or over
//! the pipes of a process that it starts and ends. It connects lazily, and reconnects after the connection is lost. A read is repeated once if the session was lost; a
//! change is sent only once, over HTTP under a [`SendPermit`](countersign_core::send_permit::SendPermit), and [`Error`] says whether
//! it can have arrived. The duration of every call and the size of every answer are limited.
//!
//! A server may ask a question during a call ([`Asks`]), and report progress ([`Watch`]).
//!
//! This crate is independent of platforms, the engine and Slack. It does not trust or interpret what a server says, but
//! returns it as data. Start reading at [`McpClient`].

mod client;
mod error;
mod event_stream;
mod handler;
mod http;
mod process;
mod repeats;
mod session;
mod sign_in;
mod tasks_only;
mod tool;

pub use self::{
    client::{Call, McpClient, Program, Remote, Settings, Way, wrong_header},
    error::Error,
    handler::{Answered, Asks, Progress, Question, Watch},
    sign_in::{OAuth, SignIn},
    tool::{Answer, Picture, ServerInfo, ToolDefinition},
};
