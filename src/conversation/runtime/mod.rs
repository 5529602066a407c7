//! The runtime stores deliveries, runs threads and sends messages.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`dispatch`] | stores each delivery where it belongs, before it is acknowledged |
//! | [`workers`] | leases threads and has the engine of their graph advance them |
//! | [`inbox`], [`interaction`], [`choice`] | handles requests that cannot wait for a thread: clicks, typed consent, commands, expiry |
//! | [`outbox`], [`pacing`] | sends each message by its channel, once, in order, and within Slack's rate limits |
//! | [`thread_status`] | Slack's own status line while a thread is worked on |
//! | [`events`] | follows events outside Slack for the actions that wait for them |
//! | [`sweeper`] | regularly looks for work of which no hint arrived |
//!
//! The runtime passes each request to the module that handles it. It therefore depends on all other
//! modules of this crate, and none of them depends on it.
//!
//! *Architecture Invariant:* nothing here decides whether a decision is valid, what a command
//! answers or how anything looks.

pub mod choice;
pub mod dispatch;
pub mod events;
pub mod inbox;
pub mod interaction;
pub mod outbox;
pub mod pacing;
pub mod sweeper;
pub mod thread_status;
pub mod workers;
