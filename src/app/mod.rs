//! The composition root, which connects the components. Only this module knows all of them.
//!
//! [`Bot`] is the production bot. `serve`, the playground and the tests all run it; they differ only in addresses and
//! the clock.

mod api;
mod audit_stream;
pub mod backup;
pub mod bot;
pub mod check;
mod check_api;
mod check_approvers;
mod check_mail;
mod check_messages;
mod check_models;
mod check_scopes;
mod check_store;
pub mod dependencies;
pub mod fork;
pub mod golden;
mod http;
pub mod installed;
pub mod keys;
pub mod mail;
pub mod metrics;
pub mod models;
pub mod notebook;
pub mod program;
mod readiness;
mod seen;
pub mod server;
mod services;
pub mod spans;
pub mod stdout;
pub mod supervision;
pub mod telemetry;
mod watches;

pub use bot::Bot;
