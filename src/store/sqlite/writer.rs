//! The thread that does all writes.
//!
//! It takes up to [`MAX_BATCH`] waiting operations, in order, and runs them in one transaction,
//! with a single `fsync`. An operation that fails rolls back only its own changes. No caller is
//! answered before the commit. If nothing was changed, SQLite's commit costs nothing, so polling
//! for work is free.
//!
//! An operation whose loss does no harm ([`Durable::Later`]) does not wait for the disk: if a batch has only such
//! operations, its commit is not synced. The log is one sequence, so the next synced commit covers it, and
//! after a power failure everything before the last synced commit is there. Nothing that follows from an operation leaves
//! the process before a synced commit. A process that is killed loses nothing, because the system has the writes.
//!
//! If a sync fails, the system may have dropped what was not yet on disk of earlier commits as well, and does not write it
//! again. A later commit would then be synced behind a gap in the log, and be lost with it in a power failure. So before the
//! next batch, everything in the log is written to the database ([`write_log_again`]).
//!
//! Before a batch is run, and again before its callers are answered, the files are checked to be
//! still where a restarted process would look for them ([`super::files`]).
//!
//! Operations rarely fail, and a savepoint for each of them costs a copy of every page that it
//! changes. A batch therefore runs without savepoints at first. If an operation in it fails, the
//! batch is rolled back and run again with savepoints.

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    thread::JoinHandle,
};

use countersign_graph::store::Error;
use rusqlite::{ErrorCode, hooks::Wal};
use tokio::sync::{mpsc, oneshot};

use super::{connection::Connection, failure::Failure, files::Files};

/// The maximum number of operations that share a commit.
const MAX_BATCH: usize = 256;

/// The maximum number of queued operations; beyond it, callers wait to enqueue theirs.
const MAX_WAITING: usize = 1024;

/// The number of pages in SQLite's log from which on they are written to the database.
const MAX_LOG: i32 = 1000;

/// The time at which the writes of an operation have to be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durable {
    /// Before the caller is answered.
    Now,
    /// With the next operation that has to be on disk at once.
    Later,
}

/// The channel to the writing thread.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

impl Writer {
    /// Starts the thread. `files` are watched; `None` if the store is read-only.
    pub(super) fn start(mut connection: rusqlite::Connection, files: Option<Files>) -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel(MAX_WAITING);
        let log = Log::of(&mut connection)?;
        let thread = std::thread::Builder::new().name("sqlite-writer".to_owned()).spawn(move || {
            serve(&Connection::that_writes(&connection), log, files.as_ref(), waiting);
        })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs an operation. When this returns, either all of its writes are on disk or none of them.
    /// The operation may be run more than once; the writes of earlier runs are rolled back.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Fn(&Connection<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Error> {
        self.run_with(Durable::Now, work).await
    }

    /// Runs an operation as [`Self::run`] does, but with [`Durable::Later`] its writes may still be lost if the power fails.
    pub(super) async fn run_with<T: Send + 'static>(
        &self,
        sync: Durable,
        work: impl Fn(&Connection<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Task { work, sync, result: None, reply });
        let jobs = self.jobs.as_ref().expect("taken only when the store is dropped");
        jobs.send(job).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn stopped() -> Error {
    Error::Unavailable("the writing thread is gone".into())
}

/// The result of a batch: committed to disk, or the error.
type Committed = Result<(), Arc<dyn std::error::Error + Send + Sync>>;

/// A queued operation.
trait Job: Send {
    /// Runs the operation. Returns false if its writes must be rolled back.
    fn run(&mut self, connection: &Connection<'_>) -> bool;

    /// Returns the time at which its writes have to be on disk.
    fn sync(&self) -> Durable;

    /// Answers the caller, after the commit.
    fn answer(self: Box<Self>, committed: &Committed);
}

struct Task<W, T> {
    work: W,
    sync: Durable,
    result: Option<Result<T, Failure>>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<W, T> Job for Task<W, T>
where
    W: Fn(&Connection<'_>) -> Result<T, Failure> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection<'_>) -> bool {
        self.result.insert((self.work)(connection)).is_ok()
    }

    fn sync(&self) -> Durable {
        self.sync
    }

    fn answer(self: Box<Self>, committed: &Committed) {
        let result = match committed {
            Ok(()) => self.result.map_or_else(|| Err(stopped()), |result| result.map_err(Error::from)),
            Err(error) => Err(Error::Unavailable(Box::new(Arc::clone(error)))),
        };
        let _ = self.reply.send(result); // fails if the caller was dropped
    }
}

fn serve(connection: &Connection<'_>, mut log: Log, files: Option<&Files>, mut waiting: mpsc::Receiver<Box<dyn Job>>) {
    let check = || files.map_or(Ok(()), Files::check);
    let mut batch = Vec::with_capacity(MAX_BATCH);
    while waiting.blocking_recv_many(&mut batch, MAX_BATCH) > 0 {
        let committed = match check() {
            Ok(()) => {
                commit(connection, &mut log, &mut batch).and_then(|()| check().map_err(|lost| Arc::new(lost) as _))
            }
            Err(lost) => Err(Arc::new(lost) as _),
        };
        for job in batch.drain(..) {
            job.answer(&committed);
        }
    }
}

/// What is known of SQLite's log.
#[derive(Debug)]
struct Log {
    /// What the connection is set to.
    setting: Option<Durable>,
    /// The number of pages in it after the last commit; 0 if that wrote none.
    pages: Arc<AtomicI32>,
    /// True if a part of it may never get to the disk.
    in_doubt: bool,
}

impl Log {
    /// Takes over from SQLite to write the log to the database.
    fn of(connection: &mut rusqlite::Connection) -> io::Result<Self> {
        let pages = Arc::<AtomicI32>::default();
        let noted = Arc::clone(&pages);
        let note = move |_: &mut Wal, pages| {
            noted.store(pages, Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(note)).map_err(io::Error::other)?;
        Ok(Self { setting: None, pages, in_doubt: false })
    }
}

fn commit(connection: &Connection<'_>, log: &mut Log, batch: &mut [Box<dyn Job>]) -> Committed {
    let written = if log.in_doubt { write_log_again(connection) } else { Ok(()) };
    let committed = written.and_then(|()| {
        log.in_doubt = false;
        transact(connection, log, batch).inspect_err(|error| log.in_doubt = is_of_the_disk(error))
    });
    committed.map_err(|error| {
        tracing::error!(
            operations = batch.len(),
            "Cannot write to the store: {}",
            countersign_core::cause::chain(&error)
        );
        connection.clear_cache();
        if !connection.is_autocommit() {
            let _ = connection.execute_batch("ROLLBACK"); // fails if SQLite has already rolled back
        }
        Arc::new(error) as _
    })
}

/// Returns true if an error may come from a sync that failed. A full disk is noticed earlier.
fn is_of_the_disk(error: &rusqlite::Error) -> bool {
    let known = [ErrorCode::DiskFull, ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked, ErrorCode::ReadOnly];
    error.sqlite_error_code().is_none_or(|code| !known.contains(&code))
}

/// Writes everything that is in the log to the database, syncs that, and begins a new log.
fn write_log_again(connection: &Connection<'_>) -> rusqlite::Result<()> {
    let is_read: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    match is_read {
        false => Ok(()),
        true => {
            let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
            Err(rusqlite::Error::SqliteFailure(busy, Some("the log is being read".to_owned())))
        }
    }
}

/// Runs a batch in one transaction.
fn transact(connection: &Connection<'_>, log: &mut Log, batch: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
    let durable = match batch.iter().any(|job| job.sync() == Durable::Now) {
        true => Durable::Now,
        false => Durable::Later,
    };
    if log.setting != Some(durable) {
        log.setting = None; // until it is set
        connection.execute_batch(match durable {
            Durable::Now => "PRAGMA synchronous = FULL",
            Durable::Later => "PRAGMA synchronous = NORMAL",
        })?;
        log.setting = Some(durable);
    }
    let changes_before = connection.total_changes();
    begin(connection)?;
    if batch.iter_mut().all(|job| job.run(connection)) {
        return end(connection, changes_before, durable, log);
    }
    connection.clear_cache();
    run(connection, "ROLLBACK")?;
    match batch {
        [_] => Ok(()), // the single operation was rolled back
        several => transact_each(connection, several, durable, log),
    }
}

/// Runs each operation in a savepoint of its own, in one transaction.
fn transact_each(
    connection: &Connection<'_>,
    batch: &mut [Box<dyn Job>],
    durable: Durable,
    log: &mut Log,
) -> rusqlite::Result<()> {
    let changes_before = connection.total_changes();
    begin(connection)?;
    for job in batch {
        run(connection, "SAVEPOINT operation")?;
        if !job.run(connection) {
            connection.clear_cache();
            run(connection, "ROLLBACK TO operation")?;
        }
        run(connection, "RELEASE operation")?;
    }
    end(connection, changes_before, durable, log)
}

/// Begins a transaction. The cache is cleared if others have written to the file.
fn begin(connection: &Connection<'_>) -> rusqlite::Result<()> {
    run(connection, "BEGIN IMMEDIATE")?;
    if let Some(cache) = connection.cache() {
        cache.check(connection.statement("PRAGMA data_version")?.query_row([], |row| row.get(0))?);
    }
    Ok(())
}

/// Commits, and counts the commit if it wrote something and was synced.
///
/// To write its log to the database, SQLite syncs the log first. If that fails, the log is in doubt as well. After a synced
/// commit there is nothing left to sync, so the log is written to the database only then.
fn end(connection: &Connection<'_>, changes_before: u64, durable: Durable, log: &mut Log) -> rusqlite::Result<()> {
    log.pages.store(0, Ordering::Relaxed);
    run(connection, "COMMIT")?;
    if durable == Durable::Now {
        if connection.total_changes() > changes_before {
            metrics::counter!("countersign_store_synced_writes_total").increment(1);
        }
        if log.pages.load(Ordering::Relaxed) >= MAX_LOG {
            // What is still being read is written after another commit.
            let written = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            log.in_doubt = written.is_err_and(|error| is_of_the_disk(&error));
        }
    }
    Ok(())
}

fn run(connection: &Connection<'_>, sql: &'static str) -> rusqlite::Result<()> {
    connection.statement(sql)?.execute([]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn insert(writer: &Writer, n: i64, fail: bool) -> Result<(), Error> {
        writer
            .run(move |connection| {
                connection.execute("INSERT INTO t VALUES (?1)", [n])?;
                if fail { Err(Error::Corrupt { what: "on purpose".to_owned() }.into()) } else { Ok(()) }
            })
            .await
    }

    #[tokio::test]
    async fn an_operation_that_fails_rolls_back_only_its_own_changes() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)").unwrap();
        let writer = Writer::start(connection, None).unwrap();
        let (one, two, three, again) = tokio::join!(
            insert(&writer, 1, false),
            insert(&writer, 2, true),
            insert(&writer, 3, false),
            insert(&writer, 1, false),
        );
        assert!(one.is_ok() && three.is_ok());
        assert!(matches!(two, Err(Error::Corrupt { .. })));
        assert!(matches!(again, Err(Error::Unavailable(_))), "the row exists already");
        let sum: i64 = writer.run(|c| Ok(c.query_row("SELECT sum(n) FROM t", [], |row| row.get(0))?)).await.unwrap();
        assert_eq!(sum, 4);
    }

    #[tokio::test]
    async fn the_log_is_written_to_the_database_only_after_a_synced_commit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        connection.execute_batch("CREATE TABLE t (n); PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let writer = Writer::start(connection, None).unwrap();
        let length = || std::fs::metadata(&path).unwrap().len();
        let before = length();
        let add = |c: &Connection<'_>| Ok(c.execute("INSERT INTO t VALUES (zeroblob(5000000))", [])?);
        writer.run_with(Durable::Later, add).await.unwrap();
        writer.run(|_| Ok(())).await.unwrap(); // a commit without changes syncs nothing
        assert_eq!(length(), before);
        insert(&writer, 1, false).await.unwrap();
        assert!(length() > before + 5_000_000);
    }

    #[tokio::test]
    async fn what_was_not_synced_is_written_again_after_a_commit_that_failed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        let tables = "PRAGMA foreign_keys = ON; CREATE TABLE t (n INTEGER PRIMARY KEY); \
                      CREATE TABLE later (n REFERENCES t DEFERRABLE INITIALLY DEFERRED)";
        connection.execute_batch(tables).unwrap();
        let writer = Writer::start(connection, None).unwrap();
        let add = |c: &Connection<'_>| Ok(c.execute("INSERT INTO t VALUES (1)", [])?);
        writer.run_with(Durable::Later, add).await.unwrap();

        // The commit itself fails, as it does if the disk cannot sync.
        let fails = writer.run(|c| Ok(c.execute("INSERT INTO later VALUES (7)", [])?)).await;
        assert!(matches!(fails, Err(Error::Unavailable(_))));
        insert(&writer, 2, false).await.unwrap();

        std::fs::copy(&path, dir.path().join("without-log")).unwrap();
        let on_disk = rusqlite::Connection::open(dir.path().join("without-log")).unwrap();
        let sum: i64 = on_disk.query_row("SELECT sum(n) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(sum, 1, "the first is in the database, and the log has only what came later");
        let sum: i64 = writer.run(|c| Ok(c.query_row("SELECT sum(n) FROM t", [], |row| row.get(0))?)).await.unwrap();
        assert_eq!(sum, 3);
    }
}
