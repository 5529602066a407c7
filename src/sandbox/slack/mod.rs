//! (sandbox/slack)
