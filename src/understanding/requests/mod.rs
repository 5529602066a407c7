//! Then whole requests are read, by the lines and values of the capabilities, and talk.

pub mod dates;
pub(crate) mod doubts;
pub(crate) mod in_place;
pub mod intents;
pub mod lines;
pub(crate) mod own_terms;
pub mod slots;
pub(crate) mod talk;
