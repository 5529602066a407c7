//! The join between Slack and the engine: deliveries become messages to threads, decisions become messages in Slack.
//!
//! | room | does |
//! | --- | --- |
//! | [`runtime`] | moves the work: takes in deliveries, has threads run, sends replies |
//! | [`surfaces`] | the bot outside of threads and commands: the Home tab, shortcuts and their windows |
//! | [`commands`] | quick answers without a model |
//! | [`approvals`] | who has which rights, who may decide, and making a decision count once |
//! | [`record`] | the record of the past, and who may see how much of it |
//! | [`presentation`] | the look of things in Slack: messages and cards, windows, names, links |
//!
//! A room imports rooms below it and none above; `tests/integration/tidy.rs` holds the order. The inbox's entry
//! ([`runtime::interaction`]) is the sum of all that the rooms handle: each shape is in the room that handles it.
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
