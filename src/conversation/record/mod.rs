//! What is kept of the past, and who may see how much of it.
//!
//! | room | does |
//! | --- | --- |
//! | [`notebook`] | exports what happened in a thread, so that it can be read and checked elsewhere |
//! | [`trace`] | tells it step by step |
//! | [`retention`] | forgets it when its time is over |
//! | [`rating`] | keeps whether an answer helped |
//! | [`undelivered`] | what is said of messages that Slack refused and that are kept |
//! | [`sight`] | which actions somebody may be shown |
//! | [`status`] | how an action stands, in words |
//!
//! *Architecture Invariant:* nothing here decides an action, sends a message or moves a thread on. What happened is read
//! from the store, never from the memory of whoever did it.

pub mod notebook;
pub mod rating;
pub mod retention;
pub mod sight;
pub mod status;
pub mod trace;
pub mod undelivered;
