//! The mail graph: from a mail in the team's inbox to an answer that was sent, or to a card that a person decides.
//!
//! ```text
//! start ─┬─► end                              a program sent it, or the account itself
//!        ├─► classify ─┬─► end                 sure spam
//!        │             └─► retrieve ─► decide ─┬─► execute_tools ─┐
//!        │                                     └──────────────────┴─► generate ─► review ═ a person, or the
//!        │                                                                ▲         │     operator's setting
//!        ├─► talk ─► end      someone in the thread asks something        │         ▼
//!        │     └──────────────── another draft ───────────────────────────┘   (the engine sends) ─► close ─► end
//!        ├─► review           a request from a button or a form, or a newer mail in the conversation
//!        └─► answered ─► end  a person answered with a mail program: the card closes
//! ```
//!
//! Start reading at [`graph::mail_graph`], then [`state::MailState`] and [`rules`], which hold every decision that needs
//! no model. Each node is one file in [`nodes`]; the action that sends is [`send`], and the operator's decision that an
//! answer may be sent without a person is [`automatic`]. [`sync`] brings mails into threads, and [`register`] lists them.
//!
//! *Architecture Invariant:* nothing here sends a mail but [`send::SendAnswer`], which the engine carries out after a
//! decision. *Architecture Invariant:* an answer goes to the sender of its mail, or to the address in its `Reply-To` if
//! a person chose that in the form: both are read from the mail again each time. *Architecture Invariant:* the text of a
//! mail is data for models, never an instruction; no answer of a model chooses a recipient, a tool outside the rules, or a
//! decision.

pub mod ask_model;
pub mod automatic;
pub mod card;
pub mod deps;
pub mod drafts;
pub mod figures;
pub mod graph;
mod greeting;
pub mod heading;
pub mod keywords;
pub mod labels;
mod listener;
pub mod lookup;
mod nodes;
pub mod register;
mod replies;
pub mod rules;
pub mod send;
pub mod spam;
pub mod state;
pub mod sync;
mod talk;
pub mod template;
pub mod why;

pub use self::nodes::classify::{Classified, classify};

#[cfg(test)]
mod tests;

/// The name of the mail graph.
pub const MAIL: &str = "mail";

/// The name of the system whose events are mails.
pub const SOURCE: &str = "mail";
