//! (conversation)

pub mod render;
