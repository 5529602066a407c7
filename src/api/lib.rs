//! The HTTP API with which programs ask for approvals.
//!
//! A program names a *policy* of the settings and gives one exact *payload*; people decide on a card in Slack; the program then
//! *claims* the approval, once, with the digest of what it is about to use, and reports how it went. There is no way to decide
//! over the API.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`server`] | the routes, signing in, limits, waiting |
//! | [`asked`], [`shape`] | what programs send, and how it is checked and documented |
//! | [`register`], [`poster`] | the requests as they are stored, and how each gets its thread |
//! | [`graph`], [`outside_change`], `card` | the thread of a request, its kind of action, and its card |
//! | [`callback`] | signed messages about changes of state |
//! | [`mcp`] | the tools of agents |
//! | [`token`] | tokens for whoever carries a change out |
//! | [`keys`], [`settings`] | the keys of programs, and everything that operators set |
//! | [`client`] | the commands that use the API |
//!
//! To the engine, a request is an action like any other, under the same rules for who decides. It is asked for by a key
//! ([`UserId::of_key`](countersign_core::ids::UserId::of_key)), which no person can be, and it waits until it is claimed
//! ([`ActionKind::claimed_within`](countersign_graph::action::ActionKind::claimed_within)).

pub mod asked;
pub mod callback;
mod card;
pub mod client;
pub mod graph;
pub mod keys;
mod mcp;
pub mod outside_change;
pub mod poster;
pub mod problem;
pub mod register;
pub mod server;
pub mod settings;
pub mod shape;
pub mod token;
pub mod view;
