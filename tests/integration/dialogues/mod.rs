//! The thread as people see it.

mod approvals;
mod scripted;
