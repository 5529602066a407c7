//! How things look in Slack: messages and cards, windows, and how people and cards are named in them.
//!
//! | room | does |
//! | --- | --- |
//! | [`render`] | draws replies and cards as Block Kit |
//! | [`modals`] | windows: drawn, and what was entered in them read back and checked |
//! | [`names`] | what user groups and people are called |
//! | [`links`] | where cards and messages are |
//!
//! *Architecture Invariant:* nothing here knows who may decide or see what is drawn, nor when it is sent: every other room
//! of the conversation draws with this one, and it knows none of them.

pub mod links;
pub mod modals;
pub mod names;
pub mod render;
