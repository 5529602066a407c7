//! The record of the past, and who may see how much of it.
//!
//! | room | does |
//! | --- | --- |
//! | [`notebook`] | exports a thread's record, so that it can be read and checked elsewhere |
//! | [`trace`] | lists a thread's steps |
//! | [`retention`] | deletes it when its time is over |
//! | [`rating`] | keeps people's ratings of answers |
//! | [`undelivered`] | reports messages that Slack refused and that are kept |
//! | [`sight`] | which actions a person may be shown |
//! | [`status`] | the status of an action, in words |
//!
//! *Architecture Invariant:* nothing here decides an action, sends a message or moves a thread on. The past is read
//! from the store, never from the memory of the code that acted.

pub mod notebook;
pub mod rating;
pub mod retention;
pub mod sight;
pub mod status;
pub mod trace;
pub mod undelivered;
