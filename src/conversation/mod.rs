//! (conversation)
