//! Joins Slack and the engine: what arrives becomes mail, what was decided becomes messages.
//!
//! | room | does |
//! | --- | --- |
//! | [`dispatch`] | stores each delivery where it belongs, before it is acknowledged |
//! | [`workers`] | leases threads and lets the engine advance them |
//! | [`desk`] | answers what cannot wait for a thread: clicks, typed consent, commands, expiry |
//! | [`approvals`] | decides whether a click counts, and makes it count once |
//! | [`outbox`], [`pacing`] | sends what was said, once, in order, and no faster than Slack takes it |
//! | [`render`] | draws replies and cards as Block Kit |
//! | [`commands`], [`home`] | quick answers without a model |
//! | [`trace`] | tells what happened in a thread |
//!
//! *Architecture Invariant:* nothing here decides what the assistant says or does; nothing in the graph knows Slack.
//! *Architecture Invariant:* a decision never waits for a lease. It is one compare-and-set on the action's record, so a
//! click is answered while the thread is busy thinking.

pub mod approvals;
pub mod commands;
pub mod desk;
pub mod dispatch;
pub mod entry;
pub mod home;
pub mod outbox;
pub mod pacing;
pub mod render;
pub mod sweeper;
pub mod trace;
pub mod workers;
