//! Where people meet the bot besides threads and commands: the Home tab, the menu of a message, the menu of shortcuts.
//!
//! | room | does |
//! | --- | --- |
//! | [`home`] | the Home tab: what waits, what was asked for, what is running, what was decided |
//! | [`shortcuts`] | what is offered in the menu of a message |
//! | [`creation`] | windows in which something new can be asked for, opened from everywhere |
//!
//! *Architecture Invariant:* nothing here decides: what is pressed or sent here is the same click and the same request as in
//! a thread, and goes the same way.

pub mod creation;
pub mod home;
pub mod shortcuts;
