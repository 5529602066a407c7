//! Drives one thread through its graph.
