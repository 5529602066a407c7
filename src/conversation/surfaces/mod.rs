//! The bot outside of threads and commands: the Home tab, and the shortcuts of Slack and of
//! messages.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`home`] | the Home tab: open cards, own requests, work in progress, past decisions |
//! | [`shortcuts`] | the shortcuts in the menu of a message |
//! | [`creation`] | windows that create something, opened from anywhere |
//!
//! *Architecture Invariant:* nothing here makes decisions. A press or submission here is handled as
//! the same click or request as in a thread.

pub mod creation;
pub mod home;
pub mod shortcuts;
