//! Joins Slack and the engine: what arrives becomes mail, what was decided becomes messages.
//!
//! | room | does |
//! | --- | --- |
//! | [`runtime`] | moves the work: takes in what arrives, has threads run, sends what was said |
//! | [`surfaces`] | where people meet the bot besides threads and commands: the Home tab, shortcuts and their windows |
//! | [`commands`] | quick answers without a model |
//! | [`approvals`] | whose words count, who may decide, and making a decision count once |
//! | [`record`] | what is kept of the past, and who may see how much of it |
//! | [`presentation`] | how things look in Slack: messages and cards, windows, names, links |
//!
//! A room imports rooms below it and none above; `tests/integration/tidy.rs` holds the order. What waits in the inbox
//! ([`runtime::entry`]) is the sum of what the rooms handle: each shape is in the room that handles it.
//!
//! *Architecture Invariant:* nothing here decides what the assistant says or does; nothing in the graph knows Slack.
//! *Architecture Invariant:* a decision never waits for a lease. It is one compare-and-set on the action's record, so a
//! click is answered while the thread is busy thinking.

pub mod approvals;
pub mod commands;
pub mod presentation;
pub mod record;
pub mod runtime;
pub mod surfaces;
