//! Stand-ins for external services: real HTTP servers that keep state and check the requests they
//! receive.
//!
//! The tests and the playground use the same stand-ins, and the bot calls them over HTTP like the
//! originals. The program for a real workspace does not contain them.
//!
//! They depend on the `wire` and `core` crates and not on the bot: a stand-in expects what the
//! original expects. Start reading at [`slack`].

pub mod bridge;
pub mod calendar;
mod call;
pub(crate) mod connection;
pub mod faults;
mod files;
pub(crate) mod flood;
pub mod gmail;
pub mod google;
pub mod hubspot;
pub mod ledger;
pub mod mcp;
pub mod model;
pub mod slack;
pub mod slow_client;
pub mod smtp;
mod stand_in;
pub mod upgrade;
pub mod web_socket;
