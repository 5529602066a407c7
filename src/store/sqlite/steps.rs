//! The steps of a thread. Those that were written together are one row, which is packed as a whole: steps that follow each
//! other have much in common.
//!
//! The key of a row is the version after its last step, and the row has the id of the write, by which a repeat is recognized.
//! A step is two lines: its difference, which is read alone when a thread is loaded, and the rest of its record.

use countersign_core::ids::{CommitId, ThreadId};
use countersign_graph::{
    json::Json,
    store::{Error, StepRecord, Version},
};
use rusqlite::{Row, params};

use super::{
    connection::Connection,
    failure::Failure,
    keys::{bytes, key, parse, seq},
    thread_row::ThreadRow,
};
use crate::{aside, packed};

/// Packs the steps of one write.
pub(super) fn pack(steps: &[StepRecord]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(2 * steps.len());
    for step in steps {
        debug_assert!(!step.delta.text().contains('\n'), "JSON is written without line ends");
        lines.extend([step.delta.text().to_owned(), step.without_delta()]);
    }
    packed::pack(lines.join("\n").into_bytes())
}

/// Writes steps that were packed, after which the thread has the version of the row.
pub(super) fn insert(
    connection: &Connection<'_>,
    row: &ThreadRow,
    steps: &[u8],
    commit: &CommitId,
) -> Result<(), Failure> {
    let mut insert = connection.statement("INSERT INTO steps (id, step, commit_id) VALUES (?1, ?2, ?3)")?;
    insert.execute(params![key(row.id, row.version), steps, commit.as_str()])?;
    Ok(())
}

/// Returns true if a write with this id added the steps after which the thread had this version.
pub(super) fn are_of(
    connection: &Connection<'_>,
    row: &ThreadRow,
    version: Version,
    commit: &CommitId,
) -> Result<bool, Failure> {
    let mut select = connection.statement("SELECT 1 FROM steps WHERE id = ?1 AND commit_id = ?2")?;
    Ok(select.exists(params![key(row.id, version), commit.as_str()])?)
}

/// Steps that were written together, still packed.
#[derive(Debug)]
pub(super) struct StoredSteps {
    /// The version after the last of them.
    last: Version,
    steps: Vec<u8>,
}

impl StoredSteps {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { last: seq(row.get(0)?), steps: bytes(row, 1)? })
    }

    /// Calls `read` with the two lines of each step after a version, and with the version after it.
    fn each(
        &self,
        after: Version,
        mut read: impl FnMut(Version, &[u8], &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let text = aside::unpack("a step", &self.steps)?;
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let steps = lines.chunks(2);
        let before = self.last.saturating_sub(steps.len() as u64);
        for (step, version) in steps.zip(before + 1..).filter(|(_, version)| *version > after) {
            read(version, step[0], step.get(1).copied().unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Returns the steps after a version, up to that of the row.
pub(super) fn after(
    connection: &Connection<'_>,
    row: &ThreadRow,
    version: Version,
) -> Result<Vec<StoredSteps>, Failure> {
    let mut select = connection.statement("SELECT id, step FROM steps WHERE id > ?1 AND id <= ?2 ORDER BY id")?;
    let rows = select.query_map([key(row.id, version), key(row.id, row.version)], StoredSteps::read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the differences of the steps after a version.
pub(super) fn deltas(steps: &[StoredSteps], after: Version) -> Result<Vec<Json>, Error> {
    let mut deltas = Vec::with_capacity(steps.len());
    for stored in steps {
        stored.each(after, |_, delta, _| {
            deltas.push(parse(delta, "a step")?);
            Ok(())
        })?;
    }
    Ok(deltas)
}

/// Returns the steps after a version: at least `limit` of them, if there are as many.
pub(super) fn list(
    connection: &Connection<'_>,
    thread: &ThreadId,
    after: Version,
    limit: usize,
) -> Result<Vec<StoredSteps>, Failure> {
    let Some(row) = ThreadRow::find(connection, thread)? else { return Ok(Vec::new()) };
    const SQL: &str = "SELECT id, step FROM steps WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = connection.statement(SQL)?;
    let rows = select.query_map(params![key(row.id, after), row.keys()[1], limit], StoredSteps::read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Parses at most `limit` steps after a version, and reports those that cannot be read: a whole row by the version of its
/// last step.
pub(super) fn read(
    stored: &[StoredSteps],
    after: Version,
    limit: usize,
    mut unreadable: impl FnMut(Version, Error),
) -> Vec<(Version, StepRecord)> {
    let mut steps = Vec::new();
    for together in stored {
        let read = together.each(after, |version, delta, record| {
            match read_step(delta, record) {
                Ok(step) if steps.len() < limit => steps.push((version, step)),
                Ok(_) => {}
                Err(error) => unreadable(version, error),
            }
            Ok(())
        });
        if let Err(error) = read {
            unreadable(together.last, error);
        }
    }
    steps
}

fn read_step(delta: &[u8], record: &[u8]) -> Result<StepRecord, Error> {
    let delta = parse(delta, "a step")?;
    Ok(StepRecord { delta, ..aside::parse_versioned("a step", record, StepRecord::FORMAT)? })
}
