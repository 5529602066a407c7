//! The conversion of keys and values from and to SQLite's types.
//!
//! Tables whose rows have a position in a thread use a single integer key: the thread in the upper
//! bits, the position in the lower ones. All rows of a thread are therefore adjacent and in order,
//! and no second index is needed.

use countersign_core::ids::{ChannelId, MessageTs, TeamId, ThreadId};
use countersign_graph::store::Error;
use rusqlite::Row;
use serde::{Serialize, de::DeserializeOwned};

use crate::aside;

/// The number of bits of the position.
const BITS: u32 = 32;

/// Returns the key of position `seq` in a thread.
pub(super) fn key(thread: i64, seq: u64) -> i64 {
    (thread << BITS) | int(seq)
}

/// Returns the position in a key.
pub(super) fn seq(key: i64) -> u64 {
    uint(key & ((1 << BITS) - 1))
}

/// Returns the last key of a thread.
pub(super) fn last(thread: i64) -> i64 {
    key(thread + 1, 0) - 1
}

/// Converts an unsigned number to SQLite's type.
pub(super) fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Converts an unsigned number from SQLite's type.
pub(super) fn uint(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// Serializes a value for storage.
pub(super) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("stored values are plain data with text keys")
}

/// Parses a stored value; `what` names its place in an error.
pub(super) fn parse<T: DeserializeOwned>(stored: &(impl AsRef<[u8]> + ?Sized), what: &str) -> Result<T, Error> {
    aside::parse(what, stored.as_ref())
}

/// Returns the thread whose team, channel and root are in the first three columns.
pub(super) fn thread(row: &Row<'_>) -> rusqlite::Result<ThreadId> {
    Ok(ThreadId {
        team: TeamId::new(name(row, 0)?),
        channel: ChannelId::new(name(row, 1)?),
        root: MessageTs::new(name(row, 2)?),
    })
}

/// Returns the bytes of a text column, even if they are not valid UTF-8.
pub(super) fn bytes(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<u8>> {
    Ok(row.get_ref(column)?.as_bytes()?.to_vec())
}

/// Returns a name in a text column. Invalid UTF-8 is replaced, so it matches no existing name.
pub(super) fn name(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_thread_are_adjacent() {
        assert!(key(7, 0) < key(7, 1) && key(7, 1) < last(7) && last(7) < key(8, 0));
        assert_eq!(seq(key(7, 12)), 12);
        assert_eq!(seq(last(7)), u64::from(u32::MAX));
    }
}
