//! Conversion of records to stored strings, and of answers to typed values.
//!
//! Records are serialized and parsed only here; the server stores them unchanged.

use std::time::Duration;

use countersign_graph::{
    action::ActionRecord,
    store::{Error, read_versioned},
};
use redis::{FromRedisValue, Value};
use serde::{Serialize, de::DeserializeOwned};

use crate::aside;

/// Returns the string to store.
pub(super) fn write<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("stored values are plain data with text keys")
}

/// Parses a stored value; `what` names it in an error.
pub(super) fn read<T: DeserializeOwned>(what: &str, stored: &(impl AsRef<[u8]> + ?Sized)) -> Result<T, Error> {
    aside::parse(what, stored.as_ref())
}

/// Parses a stored action.
pub(super) fn read_record(stored: &[u8]) -> Result<ActionRecord, Error> {
    read_versioned("an action", stored, ActionRecord::FORMAT)
}

/// Creates the error for an answer or a stored value of an unexpected form.
pub(super) fn corrupt(what: impl Into<String>) -> Error {
    Error::Corrupt { what: what.into() }
}

/// Returns the argument of a script for a truth value.
pub(super) fn flag(value: bool) -> &'static str {
    if value { "1" } else { "" }
}

/// Converts a duration to microseconds, the unit of the scripts.
pub(super) fn micros(duration: Duration) -> u64 {
    // Lua represents integers exactly up to 2⁵³. Half of that is 142 years, and leaves room for the time to which it is
    // added.
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).min(1 << 52)
}

/// Converts one answer of a pipeline or script to the expected type.
pub(super) fn answer<T: FromRedisValue>(answer: Value) -> Result<T, Error> {
    redis::from_redis_value(answer).map_err(|error| corrupt(error.to_string()))
}

/// Returns the server's clock in microseconds, from its answer to `TIME`.
pub(super) fn server_time(time: Option<Value>) -> Result<i64, Error> {
    let (seconds, micros): (i64, i64) = answer(time.unwrap_or(Value::Nil))?;
    Ok(seconds * 1_000_000 + micros)
}
