//! Reads that need no lease: checkpoints, threads, blobs and files.

use countersign_core::{
    clock::Timestamp,
    ids::{GraphName, ThreadId},
};
use countersign_graph::{
    json::Json,
    store::{Backlog, Error, Saved, ThreadFilter, ThreadSummary, UNFINISHED, Version},
};
use rusqlite::{OptionalExtension as _, params};

use super::{
    connection::Connection,
    failure::Failure,
    forget::FINISHED,
    keys::{self, bytes, json, parse, uint},
    steps::{self, StoredSteps},
    thread_row::ThreadRow,
};

/// A saved checkpoint, still packed.
#[derive(Debug)]
pub(super) struct StoredSaved {
    version: Version,
    snapshot: Option<Vec<u8>>,
    /// The version of the snapshot; 0 if there is none.
    snapshot_version: Version,
    steps: Vec<StoredSteps>,
}

impl StoredSaved {
    /// Parses the contents. Unreadable data is reported, and the returned value then cannot be
    /// restored as a checkpoint.
    pub(super) fn read(self, unreadable: impl FnOnce(Error)) -> Saved {
        let Self { version, snapshot, snapshot_version, steps } = self;
        let read = || -> Result<Saved, Error> {
            let snapshot = snapshot.map(|snapshot| parse(&snapshot, "a snapshot")).transpose()?;
            Ok(Saved { version, snapshot, deltas: steps::deltas(&steps, snapshot_version)? })
        };
        read().unwrap_or_else(|error| {
            unreadable(error);
            Saved { version, snapshot: Some(Json::of("unreadable")), deltas: Vec::new() }
        })
    }
}

/// Returns the last full checkpoint of a thread and the differences since.
pub(super) fn saved(connection: &Connection<'_>, row: &ThreadRow) -> Result<StoredSaved, Failure> {
    let snapshot = connection
        .statement("SELECT version, snapshot FROM snapshots WHERE thread = ?1")?
        .query_row([row.id], |row| Ok((uint(row.get(0)?), bytes(row, 1)?)))
        .optional()?;
    let (snapshot_version, snapshot) = snapshot.map_or((0, None), |(version, snapshot)| (version, Some(snapshot)));
    let steps = match row.version > snapshot_version {
        true => steps::after(connection, row, snapshot_version)?,
        false => Vec::new(),
    };
    Ok(StoredSaved { version: row.version, snapshot, snapshot_version, steps })
}

/// Returns the saved checkpoint of a thread; `None` if the bot has no such thread.
pub(super) fn load(connection: &Connection<'_>, thread: &ThreadId) -> Result<Option<StoredSaved>, Failure> {
    let row = ThreadRow::find(connection, thread)?.filter(|row| row.known);
    row.map(|row| saved(connection, &row)).transpose()
}

/// Returns the amount of pending work.
pub(super) fn backlog(connection: &Connection<'_>) -> Result<Backlog, Failure> {
    const SQL: &str = "SELECT (SELECT count(*) FROM threads WHERE ready_at IS NOT NULL), (SELECT count(*) FROM desk), \
                              (SELECT count(DISTINCT id >> 32) FROM outbox)";
    Ok(connection.statement(SQL)?.query_row([], |row| {
        Ok(Backlog { threads: uint(row.get(0)?), inbox: uint(row.get(1)?), outbox: uint(row.get(2)?) })
    })?)
}

/// Returns the threads selected by a filter.
pub(super) fn threads(
    connection: &Connection<'_>,
    filter: ThreadFilter,
    limit: usize,
    clock: Timestamp,
) -> Result<Vec<ThreadSummary>, Failure> {
    let before = match filter {
        ThreadFilter::All => Timestamp(0),
        ThreadFilter::FinishedBefore(before) => before,
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = connection.prepare_cached(&select_threads(filter))?;
    let rows = select.query_map(params![before.0, clock.0, json(&UNFINISHED), limit], |row| {
        let thread = keys::thread(row)?;
        let (version, updated_at) = (uint(row.get(3)?), Timestamp(row.get(4)?));
        let graph = GraphName::new(row.get::<_, String>(6)?);
        Ok(ThreadSummary { thread, graph, version, updated_at, busy: row.get(5)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Both orders are those of `threads_by_change`: nothing is sorted, and no more rows are read than are returned or looked at.
fn select_threads(filter: ThreadFilter) -> String {
    let condition = match filter {
        ThreadFilter::All => "known = 1 ORDER BY updated_at DESC, id DESC".to_owned(),
        ThreadFilter::FinishedBefore(_) => format!("{FINISHED} ORDER BY updated_at"),
    };
    format!(
        "SELECT team, channel, root, version, updated_at, lease_until > ?2 OR coalesce(ready_at <= ?2, FALSE), graph \
         FROM threads AS t WHERE {condition} LIMIT ?4"
    )
}

/// Stores bytes under their hash, until a given time or permanently.
pub(super) fn put_blob(
    connection: &Connection<'_>,
    hash: &str,
    bytes: &[u8],
    until: Option<Timestamp>,
) -> Result<(), Failure> {
    // The later time wins: `max` of any value and NULL, which means permanently, is NULL.
    const SQL: &str = "INSERT INTO blobs (hash, bytes, until) VALUES (?1, ?2, ?3) \
            ON CONFLICT (hash) DO UPDATE SET until = max(until, excluded.until)";
    connection.statement(SQL)?.execute(params![hash, bytes, until.map(Timestamp::millis)])?;
    Ok(())
}

/// Stores a file that a thread shows.
pub(super) fn put_file(
    connection: &Connection<'_>,
    thread: &ThreadId,
    hash: &str,
    bytes: &[u8],
) -> Result<(), Failure> {
    connection.statement("INSERT OR IGNORE INTO files (hash, bytes) VALUES (?1, ?2)")?.execute(params![hash, bytes])?;
    connection
        .statement("INSERT OR IGNORE INTO shown_files (thread, hash) VALUES (?1, ?2)")?
        .execute([&thread.to_string(), hash])?;
    Ok(())
}

/// Returns the blob or file stored under a hash.
pub(super) fn get_blob(connection: &Connection<'_>, hash: &str) -> Result<Option<Vec<u8>>, Failure> {
    const SQL: &str =
        "SELECT bytes FROM blobs WHERE hash = ?1 UNION ALL SELECT bytes FROM files WHERE hash = ?1 LIMIT 1";
    let mut select = connection.statement(SQL)?;
    Ok(select.query_row([hash], |row| row.get(0)).optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema;

    #[test]
    fn threads_are_found_by_the_time_of_their_last_change() {
        let mut connection = rusqlite::Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap().unwrap();
        for filter in [ThreadFilter::All, ThreadFilter::FinishedBefore(Timestamp(1))] {
            let sql = format!("EXPLAIN QUERY PLAN {}", select_threads(filter));
            let mut explain = connection.prepare(&sql).unwrap();
            let plan = explain.query_map(params![1, 1, "[]", 1], |row| row.get::<_, String>(3)).unwrap();
            let plan: Vec<_> = plan.map(Result::unwrap).collect();
            assert!(plan[0].starts_with("SEARCH t USING INDEX threads_by_change (known=?"), "{plan:?}");
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
        }
    }
}
