//! The thread as people see it.

mod approvals;
mod scripted;
mod commands;
mod create;
mod delete;
mod lookups;
mod restarts;
mod status;
mod trouble;
mod update;
