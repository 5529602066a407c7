//! Stand-ins for the outside world: real HTTP servers that keep state and check the requests they receive.
//!
//! The tests and the playground use the same ones, and the bot reaches them over the wire like the originals. No
//! production module knows them; only `app` does.
//!
//! They know the wire and the leaves, and nothing of the bot: what a stand-in expects is what the original expects. Start
//! reading at [`slack`].

pub mod bridge;
pub(crate) mod connection;
pub(crate) mod flood;
pub mod google;
pub mod mcp;
pub mod model;
pub mod slack;
pub mod slow_client;
pub mod upgrade;
pub mod web_socket;
