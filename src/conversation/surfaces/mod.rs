//! The bot outside of threads and commands: the Home tab, the menu of a message, the menu of shortcuts.
//!
//! | room | does |
//! | --- | --- |
//! | [`home`] | the Home tab: open cards, own requests, work in progress, past decisions |
//! | [`shortcuts`] | the shortcuts in the menu of a message |
//! | [`creation`] | windows to ask for something new, opened from anywhere |
//!
//! *Architecture Invariant:* nothing here decides: a press or submission here is the same click and the same request as
//! in a thread, and goes the same way.

pub mod creation;
pub mod home;
pub mod shortcuts;
