//! (redis)
