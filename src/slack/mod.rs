//! (slack)
