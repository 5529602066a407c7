//! Last, what was not used of a message: it is reported, or asked about.

pub(crate) mod either;
pub(crate) mod languages;
pub(crate) mod left_out;
pub(crate) mod quotations;
pub(crate) mod rewordings;
pub(crate) mod suggestions;
