//! Reads that need no lease: checkpoints, steps, threads, blobs and files.

use countersign_core::{
    clock::Timestamp,
    ids::{GraphName, ThreadId},
};
use countersign_graph::{
    json::Json,
    store::{Backlog, Error, Saved, StepRecord, ThreadSummary, Version},
};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    failure::Failure,
    keys::{self, bytes, json, key, parse, seq, uint},
    thread_row::ThreadRow,
};
use crate::{aside, packed};

/// Packs a step: its difference, which is read alone when a thread is loaded, and the rest of its record, each on a line.
pub(super) fn pack_step(step: &StepRecord) -> Vec<u8> {
    let StepRecord { format, run, node, input, delta, next, at, duration_ms, usage, error } = step;
    let without_delta = StepRecord {
        format: *format,
        run: run.clone(),
        node: node.clone(),
        input: input.clone(),
        delta: Json::null(),
        next: next.clone(),
        at: *at,
        duration_ms: *duration_ms,
        usage: usage.clone(),
        error: error.clone(),
    };
    packed::pack([delta.text(), &json(&without_delta)].join("\n").into_bytes())
}

/// Calls `read` with the two lines of a packed step.
fn unpack_step<T>(step: &[u8], read: impl FnOnce(&[u8], &[u8]) -> Result<T, Error>) -> Result<T, Error> {
    let text = aside::unpack("a step", step)?;
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    read(&text[..end], text.get(end + 1..).unwrap_or_default())
}

/// A saved checkpoint, still packed.
#[derive(Debug)]
pub(super) struct StoredSaved {
    version: Version,
    snapshot: Option<Vec<u8>>,
    steps: Vec<Vec<u8>>,
}

impl StoredSaved {
    /// Parses the contents. Unreadable data is reported, and the returned value then cannot be
    /// restored as a checkpoint.
    pub(super) fn read(self, unreadable: impl FnOnce(Error)) -> Saved {
        let Self { version, snapshot, steps } = self;
        let read = || -> Result<Saved, Error> {
            let snapshot = snapshot.map(|snapshot| parse(&snapshot, "a snapshot")).transpose()?;
            let delta = |step: &Vec<u8>| unpack_step(step, |delta, _| parse(delta, "a step"));
            let deltas = steps.iter().map(delta).collect::<Result<_, _>>()?;
            Ok(Saved { version, snapshot, deltas })
        };
        read().unwrap_or_else(|error| {
            unreadable(error);
            Saved { version, snapshot: Some(Json::of("unreadable")), deltas: Vec::new() }
        })
    }
}

/// Returns the last full checkpoint of a thread and the differences since.
pub(super) fn saved(connection: &Connection, row: &ThreadRow) -> Result<StoredSaved, Failure> {
    let snapshot = connection
        .prepare_cached("SELECT version, snapshot FROM snapshots WHERE thread = ?1")?
        .query_row([row.id], |row| Ok((uint(row.get(0)?), bytes(row, 1)?)))
        .optional()?;
    let (snapshot_version, snapshot) = snapshot.map_or((0, None), |(version, snapshot)| (version, Some(snapshot)));
    let mut steps = Vec::new();
    if row.version > snapshot_version {
        let mut select = connection.prepare_cached("SELECT step FROM steps WHERE id > ?1 AND id <= ?2 ORDER BY id")?;
        let rows = select.query_map([key(row.id, snapshot_version), key(row.id, row.version)], |row| bytes(row, 0))?;
        steps = rows.collect::<Result<_, _>>()?;
    }
    Ok(StoredSaved { version: row.version, snapshot, steps })
}

/// Returns the saved checkpoint of a thread; `None` if the bot has no such thread.
pub(super) fn load(connection: &Connection, thread: &ThreadId) -> Result<Option<StoredSaved>, Failure> {
    let row = ThreadRow::find(connection, thread)?.filter(|row| row.known);
    row.map(|row| saved(connection, &row)).transpose()
}

/// A step: its version, and its record, still packed.
pub(super) type StoredStep = (Version, Vec<u8>);

/// Returns the steps after a version.
pub(super) fn steps(
    connection: &Connection,
    thread: &ThreadId,
    after: Version,
    limit: usize,
) -> Result<Vec<StoredStep>, Failure> {
    let Some(row) = ThreadRow::find(connection, thread)? else { return Ok(Vec::new()) };
    const SQL: &str = "SELECT id, step FROM steps WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = connection.prepare_cached(SQL)?;
    let read = |row: &rusqlite::Row<'_>| Ok((seq(row.get(0)?), bytes(row, 1)?));
    let rows = select.query_map(params![key(row.id, after), row.keys()[1], limit], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Parses steps, and reports those that cannot be read.
pub(super) fn read_steps(
    steps: Vec<StoredStep>,
    mut unreadable: impl FnMut(Version, Error),
) -> Vec<(Version, StepRecord)> {
    let read = |delta: &[u8], record: &[u8]| -> Result<StepRecord, Error> {
        let delta: Json = parse(delta, "a step")?;
        Ok(StepRecord { delta, ..aside::parse_versioned("a step", record, StepRecord::FORMAT)? })
    };
    let read = |(version, step): StoredStep| match unpack_step(&step, read) {
        Ok(step) => Some((version, step)),
        Err(error) => {
            unreadable(version, error);
            None
        }
    };
    steps.into_iter().filter_map(read).collect()
}

/// Returns the amount of pending work.
pub(super) fn backlog(connection: &Connection) -> Result<Backlog, Failure> {
    const SQL: &str = "SELECT (SELECT count(*) FROM threads WHERE ready_at IS NOT NULL), (SELECT count(*) FROM desk), \
                              (SELECT count(DISTINCT id >> 32) FROM outbox)";
    Ok(connection.prepare_cached(SQL)?.query_row([], |row| {
        Ok(Backlog { threads: uint(row.get(0)?), inbox: uint(row.get(1)?), outbox: uint(row.get(2)?) })
    })?)
}

/// Returns the bot's threads, the most recently changed first.
pub(super) fn threads(connection: &Connection, limit: usize, clock: Timestamp) -> Result<Vec<ThreadSummary>, Failure> {
    const SQL: &str = "SELECT team, channel, root, version, updated_at, \
                       lease_until > ?1 OR coalesce(ready_at <= ?1, FALSE), graph \
                       FROM threads WHERE known ORDER BY updated_at DESC, id DESC LIMIT ?2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = connection.prepare_cached(SQL)?;
    let rows = select.query_map([clock.0, limit], |row| {
        let thread = keys::thread(row)?;
        let (version, updated_at) = (uint(row.get(3)?), Timestamp(row.get(4)?));
        let graph = GraphName::new(row.get::<_, String>(6)?);
        Ok(ThreadSummary { thread, graph, version, updated_at, busy: row.get(5)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Stores bytes under their hash, until a given time or permanently.
pub(super) fn put_blob(
    connection: &Connection,
    hash: &str,
    bytes: &[u8],
    until: Option<Timestamp>,
) -> Result<(), Failure> {
    // The later time wins: `max` of any value and NULL, which means permanently, is NULL.
    const SQL: &str = "INSERT INTO blobs (hash, bytes, until) VALUES (?1, ?2, ?3) \
            ON CONFLICT (hash) DO UPDATE SET until = max(until, excluded.until)";
    connection.prepare_cached(SQL)?.execute(params![hash, bytes, until.map(Timestamp::millis)])?;
    Ok(())
}

/// Stores a file that a thread shows.
pub(super) fn put_file(connection: &Connection, thread: &ThreadId, hash: &str, bytes: &[u8]) -> Result<(), Failure> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO files (hash, bytes) VALUES (?1, ?2)")?
        .execute(params![hash, bytes])?;
    connection
        .prepare_cached("INSERT OR IGNORE INTO shown_files (thread, hash) VALUES (?1, ?2)")?
        .execute([&thread.to_string(), hash])?;
    Ok(())
}

/// Returns the blob or file stored under a hash.
pub(super) fn get_blob(connection: &Connection, hash: &str) -> Result<Option<Vec<u8>>, Failure> {
    const SQL: &str =
        "SELECT bytes FROM blobs WHERE hash = ?1 UNION ALL SELECT bytes FROM files WHERE hash = ?1 LIMIT 1";
    let mut select = connection.prepare_cached(SQL)?;
    Ok(select.query_row([hash], |row| row.get(0)).optional()?)
}
