//! Records as the strings that are stored, and answers as the values they must be.
//!
//! Records are made and read here and nowhere else; the server only keeps them.

use std::time::Duration;

use countersign_graph::{
    action::ActionRecord,
    store::{Error, read_versioned},
};
use redis::{FromRedisValue, Value};
use serde::{Serialize, de::DeserializeOwned};

use crate::aside;

/// The string to store.
pub(super) fn write<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("what we store is plain data with text for keys")
}

/// The value that was stored; `what` names it if it cannot be read.
pub(super) fn read<T: DeserializeOwned>(what: &str, stored: &(impl AsRef<[u8]> + ?Sized)) -> Result<T, Error> {
    aside::parse(what, stored.as_ref())
}

/// The action that was stored.
pub(super) fn read_record(stored: &[u8]) -> Result<ActionRecord, Error> {
    read_versioned("an action", stored, ActionRecord::FORMAT)
}

/// What every part of the store says of an answer that makes no sense.
pub(super) fn corrupt(what: impl Into<String>) -> Error {
    Error::Corrupt { what: what.into() }
}

/// A duration as scripts take it.
pub(super) fn micros(duration: Duration) -> u64 {
    // Lua counts exactly up to 2⁵³; half of that is 142 years, and leaves room for the time it is added to.
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).min(1 << 52)
}

/// One answer of a pipeline or script, as what it has to be.
pub(super) fn answer<T: FromRedisValue>(answer: Value) -> Result<T, Error> {
    redis::from_redis_value(answer).map_err(|error| corrupt(error.to_string()))
}

/// The server's clock in microseconds, from its answer to `TIME`.
pub(super) fn server_time(time: Option<Value>) -> Result<i64, Error> {
    let (seconds, micros): (i64, i64) = answer(time.unwrap_or(Value::Nil))?;
    Ok(seconds * 1_000_000 + micros)
}
