//! The record of the past, and access to it.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`notebook`] | exports a thread's record, so that it can be read and checked elsewhere |
//! | [`stream`] | sends each entry of the record to another system |
//! | [`trace`] | lists a thread's steps |
//! | [`retention`] | deletes the content of finished threads after a configured time |
//! | [`rating`] | stores people's ratings of answers |
//! | [`integrity`] | checks that a record is the one that the bot wrote |
//! | [`spending`] | what language models cost, and its limits |
//! | [`undelivered`] | lists messages that Slack refused |
//! | [`sight`] | the actions that a person may see, and their status as text |
//!
//! *Architecture Invariant:* nothing here decides an action, sends a message or advances a thread.
//! The past is always read from the store, never from the memory of the code that acted.

pub mod integrity;
pub mod notebook;
pub mod rating;
pub mod retention;
pub mod sight;
pub mod spending;
pub mod stream;
pub mod trace;
pub mod undelivered;
