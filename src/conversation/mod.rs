//! Joins Slack and the engine: what arrives becomes mail, what was decided becomes messages.
//!
//! | room | does |
//! | --- | --- |
//! | [`dispatch`] | stores each delivery where it belongs, before it is acknowledged |
//! | [`workers`] | leases threads and lets the engine of their graph advance them |
//! | [`desk`] | answers what cannot wait for a thread: clicks, typed consent, commands, expiry |
//! | [`approvals`] | whose words count, who may decide, and making a decision count once |
//! | [`outbox`], [`pacing`] | sends what was said by its channel, once, in order, and no faster than Slack takes it |
//! | [`presentation`] | how things look in Slack: messages and cards, windows, names, links |
//! | [`presence`] | what Slack itself shows while it works |
//! | [`order`], [`stopping`] | “stop” and “notebook” |
//! | [`commands`] | quick answers without a model |
//! | [`surfaces`] | where people meet the bot besides threads and commands: the Home tab, shortcuts and their windows |
//! | [`record`] | what is kept of the past: notebook, trace, ratings, and for how long |
//!
//! *Architecture Invariant:* nothing here decides what the assistant says or does; nothing in the graph knows Slack.
//! *Architecture Invariant:* a decision never waits for a lease. It is one compare-and-set on the action's record, so a
//! click is answered while the thread is busy thinking.

pub mod approvals;
pub mod commands;
pub mod desk;
pub mod dispatch;
pub mod entry;
pub mod order;
pub mod outbox;
pub mod pacing;
pub mod presence;
pub mod presentation;
pub mod record;
pub mod stopping;
pub mod surfaces;
pub mod sweeper;
pub mod workers;
