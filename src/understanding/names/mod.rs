//! Then the things are found in it: by their names, and by their places in the last list.

pub mod lexicon;
pub(crate) mod references;
