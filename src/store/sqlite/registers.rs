//! Registers: small values that belong to no thread, set by compare-and-set.

use countersign_graph::store::{Error, Register};
use rusqlite::{OptionalExtension as _, params};

use super::{
    connection::Connection,
    failure::Failure,
    keys::{int, parse, uint},
};

/// The revision of a register and its value, still serialized.
pub(super) type StoredRegister = Option<(u64, String)>;

/// Returns a register.
pub(super) fn get(connection: &Connection<'_>, key: &str) -> Result<StoredRegister, Failure> {
    let mut select = connection.statement("SELECT revision, value FROM registers WHERE key = ?1")?;
    Ok(select.query_row([key], |row| Ok((uint(row.get(0)?), row.get(1)?))).optional()?)
}

/// Sets a register, if it has been set exactly `expected` times.
pub(super) fn set(connection: &Connection<'_>, key: &str, expected: u64, value: &str) -> Result<bool, Failure> {
    const FIRST: &str = "INSERT INTO registers (key, revision, value) VALUES (?1, 1, ?2) ON CONFLICT (key) DO NOTHING";
    const NEXT: &str = "UPDATE registers SET revision = revision + 1, value = ?2 WHERE key = ?1 AND revision = ?3";
    let set = match expected {
        0 => connection.statement(FIRST)?.execute(params![key, value])?,
        expected => connection.statement(NEXT)?.execute(params![key, value, int(expected)])?,
    };
    Ok(set == 1)
}

/// Parses a register.
pub(super) fn read(stored: StoredRegister) -> Result<Register, Error> {
    match stored {
        Some((revision, value)) => Ok(Register { revision, value: parse(&value, "a register")? }),
        None => Ok(Register::default()),
    }
}
