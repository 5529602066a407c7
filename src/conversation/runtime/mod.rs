//! The runtime: takes in deliveries, has threads run, sends messages.
//!
//! | room | does |
//! | --- | --- |
//! | [`dispatch`] | stores each delivery where it belongs, before it is acknowledged |
//! | [`workers`] | leases threads and lets the engine of their graph advance them |
//! | [`inbox`], [`interaction`] | handles what cannot wait for a thread: clicks, typed consent, commands, expiry |
//! | [`keyword`], [`stopping`] | “stop” and “notebook”, typed; ending a run |
//! | [`outbox`], [`pacing`] | sends each message by its channel, once, in order, and no faster than Slack takes it |
//! | [`thread_status`] | Slack's own status line while a thread is worked on |
//! | [`events`] | follows what happens elsewhere for the actions that wait for it |
//! | [`sweeper`] | looks regularly for work without a hint |
//!
//! It hands each thing to the room that handles it, so it knows all of them, and none of them knows it.
//!
//! *Architecture Invariant:* nothing here decides if a decision counts, what a command answers or how anything looks.

pub mod dispatch;
pub mod events;
pub mod inbox;
pub mod interaction;
pub mod keyword;
pub mod outbox;
pub mod pacing;
pub mod stopping;
pub mod sweeper;
pub mod thread_status;
pub mod workers;
