//! The thread as people see it.

mod approvals;
mod cautions;
mod commands;
mod consistency;
mod create;
mod delete;
mod designs;
mod details;
mod flows;
mod knowledge;
mod lookups;
mod restarts;
pub(crate) mod scripted;
mod search;
mod several;
mod status;
mod steps;
mod testing;
mod trouble;
mod update;
mod whole_design;
