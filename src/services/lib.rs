//! The common basis of the clients for outside systems, which are in the capabilities.
//!
//! Each system has its own client, with its own error, a time-out on every call, and a configurable base URL. The
//! clients share [`http`], which sends a request and reports whether an unanswered one can have arrived; [`changes`],
//! which sends a request that changes something; [`event_stream`], which reads long streams of events with little
//! memory; [`shared_read`], which reads a large answer once for all concurrent callers; and [`jwt`], which signs tokens.
//!
//! This crate knows no platform, except for [`google`], the sign-in to Google. Start reading at [`http`].

pub mod changes;
mod connector;
pub mod event_stream;
pub mod google;
pub mod http;
pub mod jwt;
pub mod shared_read;
