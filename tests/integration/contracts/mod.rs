//! The stand-in servers against the recordings, and our clients against the stand-ins.

mod bridge;
mod calendar;
mod context;
mod gmail;
mod hubspot;
mod imap;
mod mcp;
mod model;
mod model_providers;
mod sign_in;
mod slack;
mod slack_answers;
mod slack_client;
mod slack_ingress;
mod stand_ins;
pub(crate) mod upgrade;
