//! The stand-in servers against the recordings, and our clients against the stand-ins.

mod model;
mod sign_in;
mod slack;
mod slack_client;
mod slack_ingress;
pub(crate) mod upgrade;
