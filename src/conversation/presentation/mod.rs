//! Rendering for Slack: messages, cards and windows, and the names of people and groups in them.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`render`] | draws replies and cards with Block Kit |
//! | [`buttons`] | the action ids of buttons |
//! | [`modals`] | draws windows, and reads and checks their input |
//! | [`names`] | the names of user groups and people |
//! | [`links`] | the addresses of cards and messages |
//!
//! *Architecture Invariant:* nothing here depends on who may decide or see what is drawn, or on
//! when it is sent. All other modules of this crate may use this one; it uses none of them.

pub mod buttons;
pub mod links;
pub mod modals;
pub mod names;
pub mod render;
