//! (services/upgrade)
