//! Moves the work: takes in what arrives, has threads run, sends what was said.
//!
//! | room | does |
//! | --- | --- |
//! | [`dispatch`] | stores each delivery where it belongs, before it is acknowledged |
//! | [`workers`] | leases threads and lets the engine of their graph advance them |
//! | [`inbox`], [`interaction`] | handles what cannot wait for a thread, clicks, typed consent, commands, expiry; and what lies there |
//! | [`order`], [`stopping`] | “stop” and “notebook”, typed; ending a run |
//! | [`outbox`], [`pacing`] | sends what was said by its channel, once, in order, and no faster than Slack takes it |
//! | [`thread_status`] | what Slack itself shows while it works |
//! | [`sweeper`] | looks regularly for what nobody announced |
//!
//! It hands each thing to the room that knows what to do with it, so it knows all of them, and none of them knows it.
//!
//! *Architecture Invariant:* nothing here says whether a decision counts, what a command answers or how anything looks.

pub mod dispatch;
pub mod inbox;
pub mod interaction;
pub mod order;
pub mod outbox;
pub mod pacing;
pub mod stopping;
pub mod sweeper;
pub mod thread_status;
pub mod workers;
