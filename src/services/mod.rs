//! One client per outside system. Each has its own error, a time-out on every call, and its base URL as the only seam.
//!
//! What they share is in [`http`]: how a call is sent, and whether a call without an answer can have arrived.

pub mod google;
pub mod http;
pub mod upgrade;
