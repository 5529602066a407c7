//! The look of things in Slack: messages and cards, windows, and the names of people and groups in them.
//!
//! | room | does |
//! | --- | --- |
//! | [`render`] | draws replies and cards as Block Kit |
//! | [`modals`] | windows: drawn, and their input read back and checked |
//! | [`names`] | the names of user groups and people |
//! | [`links`] | the addresses of cards and messages |
//!
//! *Architecture Invariant:* nothing here knows who may decide or see what is drawn, nor when it is sent: every other
//! room of the conversation draws with this one, and it knows none of them.

pub mod links;
pub mod modals;
pub mod names;
pub mod render;
