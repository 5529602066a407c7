//! (rules)
