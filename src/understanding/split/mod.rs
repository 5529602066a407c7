//! First, a message is split: into requests, and each request into words. What is said beside it is left out.

pub(crate) mod asides;
pub mod conditions;
pub mod id_lists;
pub(crate) mod phrase_list;
pub(crate) mod steps;
pub mod words;
