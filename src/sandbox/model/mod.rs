//! (sandbox/model)
