//! One client per outside system. Each has its own error, a time-out on every call, and its base URL as the only seam.
//!
//! What they share is in [`http`]: how a call is sent, and whether a call without an answer can have arrived; in
//! [`changes`]: how a call that changes something leaves, or does not; and in [`shared_read`]: how a large answer is read
//! once for all who ask for it at the same time.

pub mod changes;
pub mod google;
pub mod http;
pub mod shared_read;
