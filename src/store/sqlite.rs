//! (sqlite)
