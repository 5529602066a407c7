//! (sandbox/upgrade)
