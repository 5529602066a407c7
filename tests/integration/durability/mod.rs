//! What survives what.
