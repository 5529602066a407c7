//! (assistant)
