//! The load bench.

fn main() {}
