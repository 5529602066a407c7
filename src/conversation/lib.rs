//! Connects Slack to the engine: deliveries from Slack become messages to threads, and the engine's
//! messages and decisions are shown in Slack.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`runtime`] | stores deliveries, runs threads, sends replies |
//! | [`surfaces`] | the Home tab, shortcuts and their windows |
//! | [`commands`] | commands, which are answered without a model |
//! | [`approvals`] | people's rights, and decisions, each of which counts once |
//! | [`record`] | the record of the past, and access to it |
//! | [`presentation`] | rendering for Slack: messages and cards, windows, names, links |
//!
//! A module imports only modules below it in this table; `tests/integration/tidy.rs` checks this.
//! An entry of the inbox ([`runtime::interaction`]) can be anything that one of these modules
//! handles; each variant's type is defined in the module that handles it.
//!
//! *Architecture Invariant:* nothing here decides what the assistant says or does, and nothing in
//! the graph depends on Slack.
//!
//! *Architecture Invariant:* a decision never waits for a lease. It is one compare-and-set on the
//! action's record, so a click is answered even while the thread is busy.

pub mod approvals;
pub mod commands;
pub mod presentation;
pub mod record;
pub mod runtime;
pub mod surfaces;
