//! Everything that is tested from outside: one binary, so that it is linked once.

#![allow(clippy::unwrap_used, clippy::print_stdout, unreachable_pub, reason = "all of it is test code")]

mod actions;
mod api;
mod approvals;
mod contracts;
mod deploy;
mod dialogues;
mod durability;
mod engine;
mod evaluation;
mod manners;
mod messages;
mod nemesis;
mod notebook;
mod parsers;
mod performance;
mod stores;
mod support;
mod tidy;
