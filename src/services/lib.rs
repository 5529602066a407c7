//! One client per outside system, each with its own error, a time-out on every call, and a configurable base URL.
//!
//! The clients share [`http`], which sends a call and reports whether an unanswered one can have arrived; [`changes`],
//! which sends a call that changes something; and [`shared_read`], which reads a large answer once for all who ask at
//! the same time.
//!
//! It knows no platform; the clients themselves are in the capabilities. Start reading at [`http`].

pub mod changes;
pub mod google;
pub mod http;
pub mod shared_read;
