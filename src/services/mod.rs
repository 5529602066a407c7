//! One client per outside system. Each has its own error, a time-out on every call, and its base URL as the only seam.

pub mod upgrade;
