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
mod home;
mod knowledge;
mod lookups;
mod notebook;
mod presence;
mod rails;
mod restarts;
pub(crate) mod scripted;
mod search;
mod several;
mod shortcuts;
mod status;
mod steps;
mod stopping;
mod testing;
mod trouble;
mod update;
mod whole_design;
