//! The code shared with the tests, apart from the harness: ports, a Redis server, and the lines of a stream.

#![allow(dead_code, reason = "the tests use more of it")]

#[path = "../../tests/integration/support/ports.rs"]
pub(crate) mod ports;
#[path = "../../tests/integration/support/redis.rs"]
pub(crate) mod redis;
#[path = "../../tests/integration/support/stream.rs"]
pub(crate) mod stream;
