//! The composition root: the components and how they are joined. Only this module knows all of them.
//!
//! [`Bot`] is the production bot; `serve` runs it, the playground runs it, the tests run it. The only differences
//! between them are addresses and a clock.

pub mod bot;
pub mod check;
mod check_approvers;
mod check_messages;
mod check_scopes;
mod check_store;
pub mod dependencies;
pub mod evaluate;
mod http;
pub mod installed;
pub mod keys;
pub mod notebook;
pub mod playground;
mod readiness;
pub mod sandbox;
pub mod server;
mod services;
pub mod stand_in;
pub mod stdout;
pub mod supervision;
pub mod telemetry;

pub use bot::Bot;
