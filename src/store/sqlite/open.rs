//! Opens the file: takes the locks, applies settings and migrations, and opens the connections.

use std::{
    cmp::Ordering,
    fs::{File, TryLockError},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use countersign_core::clock::Clock;
use rusqlite::{Connection, OpenFlags, config::DbConfig};

use super::{
    SqliteStore, create,
    files::{self, Files, companion_file},
    power,
    readers::Readers,
    schema,
    writer::Writer,
    written::WrittenActions,
};

/// The time for which a connection waits while another tool locks the file.
const BUSY: Duration = Duration::from_secs(5);

/// The flags for read connections of the writing process. They include write access because the
/// connection may have to create the index of the log.
const READS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE;

/// The reason why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses the store.
    #[error("{} is the store of another process (it holds {}); stop that one, or give this one a file of its own", path.display(), lock.display())]
    InUse {
        /// The store.
        path: PathBuf,
        /// The file that is locked.
        lock: PathBuf,
    },
    /// The file has several names (hard links) in the file system.
    #[error("{} has {names} names (hard links). SQLite keeps its log under the name of the file, so under another name the newest changes would be missed: remove the other names", path.display())]
    Linked {
        /// The store.
        path: PathBuf,
        /// The number of names.
        names: u64,
    },
    /// There is no store to read.
    #[error("there is no store at {}; the setting store.path says where it is kept", path.display())]
    Missing {
        /// The path that was tried.
        path: PathBuf,
    },
    /// The store was opened read-only and was written by an earlier version of this program.
    #[error("{} has schema {found}, and this program reads {known}; `countersign serve` brings it up to date", path.display())]
    Older {
        /// The store.
        path: PathBuf,
        /// The schema of the file.
        found: u32,
        /// The newest schema that this program knows.
        known: u32,
    },
    /// The store was written by a later version of this program.
    #[error("{} has schema {found}, and this program knows only {known}; run the newer program", path.display())]
    Newer {
        /// The store.
        path: PathBuf,
        /// The schema of the file.
        found: u32,
        /// The newest schema that this program knows.
        known: u32,
    },
    /// The file was written by an earlier version of this program, and cannot be converted.
    #[error("cannot convert {} to the format of this version, and left it unchanged; that needs free space of four times its size, and a damaged file has to be repaired first (`sqlite3 FILE .recover`)", path.display())]
    NotConverted {
        /// The store.
        path: PathBuf,
        /// The error of SQLite.
        #[source]
        source: rusqlite::Error,
    },
    /// The files cannot be created or locked.
    #[error("cannot open {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// SQLite cannot open the file.
    #[error("cannot open {} as a database", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The error of SQLite.
        #[source]
        source: rusqlite::Error,
    },
}

impl SqliteStore {
    /// Opens the store in the file at `path`, and creates it if there is none. Leases and claims
    /// use `clock`.
    ///
    /// # Errors
    ///
    /// [`OpenError`], which names the remedy.
    pub fn open(path: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let given_path = path.as_ref();
        let failed = |source| OpenError::Io { path: given_path.to_owned(), source };
        let lock = lock(given_path)?;
        let path = &*files::canonical_path(given_path).map_err(failed)?;
        let refused = |source| OpenError::Sqlite { path: path.to_owned(), source };
        create::if_missing(path).map_err(failed)?;
        let held = lock_database(path, given_path)?;

        let mut connection = Connection::open(path).map_err(refused)?;
        set_up_writer(&connection).map_err(refused)?;
        let not_converted = |source| OpenError::NotConverted { path: path.to_owned(), source };
        schema::migrate(&mut connection).map_err(not_converted)?.map_err(|found| OpenError::Newer {
            path: path.to_owned(),
            found,
            known: schema::known(),
        })?;
        empty_log(&connection).map_err(refused)?;
        power::after_restart(&connection).map_err(refused)?;
        let reading = [reader(path, READS).map_err(refused)?, reader(path, READS).map_err(refused)?];
        for ending in ["-wal", "-shm"] {
            files::make_private(&companion_file(path, ending)).map_err(failed)?;
        }
        let files = Files::of(given_path, path).map_err(failed)?;
        Self::start(path, connection, reading, clock, Some((files, [lock, held])))
    }

    /// Opens the store in the file at `path` read-only, even while another process uses it. It does
    /// not create a store, and every write fails.
    ///
    /// # Errors
    ///
    /// [`OpenError`], which names the remedy.
    pub fn open_to_read(path: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        if !path.exists() {
            return Err(OpenError::Missing { path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()) });
        }
        let open = || reader(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
        let refused = |source| OpenError::Sqlite { path: path.to_owned(), source };

        let connection = open().map_err(refused)?;
        let (found, known) = (schema::applied(&connection).map_err(refused)?, schema::known());
        match found.cmp(&known) {
            Ordering::Less => return Err(OpenError::Older { path: path.to_owned(), found, known }),
            Ordering::Greater => return Err(OpenError::Newer { path: path.to_owned(), found, known }),
            Ordering::Equal => {}
        }
        let reading = [open().map_err(refused)?, open().map_err(refused)?];
        Self::start(path, connection, reading, clock, None)
    }

    fn start(
        path: &Path,
        writing: Connection,
        reading: [Connection; 2],
        clock: Arc<dyn Clock>,
        own: Option<(Files, [File; 2])>,
    ) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Io { path: path.to_owned(), source };
        let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let (files, locks) = own.unzip();
        Ok(Self {
            writer: Writer::start(writing, files).map_err(failed)?,
            readers: Readers::start(reading).map_err(failed)?,
            clock,
            name: format!("SQLite {} ({file})", rusqlite::version()),
            found: Arc::default(),
            written: WrittenActions::default(),
            _locks: locks,
        })
    }
}

/// Takes the lock that prevents a second process from using the store at `path`, and holds it until
/// the returned file is dropped. The system releases it when this process ends, however it ends.
/// Links that lead to the same file lead to the same lock.
///
/// # Errors
///
/// [`OpenError::InUse`] if another process uses the store, [`OpenError::Io`] if the lock cannot be
/// created.
pub fn lock(path: &Path) -> Result<File, OpenError> {
    let name = lock_of(path);
    let file = files::open_private(&name).map_err(|source| OpenError::Io { path: name.clone(), source })?;
    try_lock(file, path, &name)
}

/// Locks the database file itself. This lock belongs to the file and not to its name, so a second
/// process cannot open the file through a mount or under another name either. This lock (`flock`)
/// and those of SQLite (`fcntl`) are independent of each other on a local disk.
///
/// Closing any handle of the file releases SQLite's own locks in this process. This handle is
/// therefore opened after [`lock`], by the only store of the process on this file, and closed after
/// the connections of that store.
fn lock_database(path: &Path, given_path: &Path) -> Result<File, OpenError> {
    let file = files::open_private(path).map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
    let names = file.metadata().map_err(|source| OpenError::Io { path: path.to_owned(), source })?.nlink();
    if names > 1 {
        return Err(OpenError::Linked { path: given_path.to_owned(), names });
    }
    try_lock(file, given_path, path)
}

fn try_lock(file: File, path: &Path, name: &Path) -> Result<File, OpenError> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned(), lock: name.to_owned() }),
        Err(TryLockError::Error(source)) => Err(OpenError::Io { path: name.to_owned(), source }),
    }
}

/// Returns the path of the lock file of the store at `path`.
pub fn lock_of(path: &Path) -> PathBuf {
    file_beside(path, ".lock")
}

/// Returns the path of a companion file of the store at `path`: `-wal` is its log, `-shm` the index
/// of the log.
pub fn file_beside(path: &Path, ending: &str) -> PathBuf {
    companion_file(&files::canonical_path(path).unwrap_or_else(|_| path.to_owned()), ending)
}

/// Sets up the write connection. `synchronous=FULL` is needed because, in WAL mode, only this
/// setting syncs before a commit returns.
fn set_up_writer(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    plan_once(connection)?;
    connection.set_prepared_statement_cache_capacity(128);
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", -4_096)?; // KiB
    connection.pragma_update(None, "journal_size_limit", 64 << 20)
}

/// Has each statement planned only once, regardless of its parameters. Otherwise some would be compiled again for every
/// new value.
fn plan_once(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// Writes what an earlier process left in the log to the database, and syncs that. A sync that failed there is reported only
/// once, and later writes would not be safe behind a part of the log that is not on disk. If another process reads the log
/// at this moment, it stays.
fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

fn reader(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    plan_once(&connection)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "query_only", true)?;
    // A cache is emptied by each write of another connection, so that a large one is of no use.
    connection.pragma_update(None, "cache_size", -512)?; // KiB
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_core::clock::SystemClock;

    fn open(path: &Path) -> Result<SqliteStore, OpenError> {
        SqliteStore::open(path, Arc::new(SystemClock))
    }

    #[test]
    fn a_second_store_on_the_same_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("countersign.sqlite");
        let first = open(&path).unwrap();
        let refused = open(&path).unwrap_err();
        assert!(matches!(refused, OpenError::InUse { .. }));
        assert!(refused.to_string().contains("another process"), "{refused}");
        drop(first);
        open(&path).unwrap();
    }

    #[tokio::test]
    async fn a_store_can_be_read_while_another_process_has_it() {
        use countersign_graph::store::{Keep, Store as _};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("countersign.sqlite");
        let to_read = || SqliteStore::open_to_read(&path, Arc::new(SystemClock));
        assert!(matches!(to_read(), Err(OpenError::Missing { .. })));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was created");

        let writing = open(&path).unwrap();
        let hash = writing.put_blob(b"large", Keep::Permanently).await.unwrap();
        let reading = to_read().unwrap();
        assert_eq!(reading.get_blob(&hash).await.unwrap().as_deref(), Some(&b"large"[..]));
        assert!(reading.put_blob(b"more", Keep::Permanently).await.is_err(), "it only reads");
        drop((reading, writing));
        assert!(to_read().unwrap().get_blob(&hash).await.unwrap().is_some(), "no process uses it");
        open(&path).unwrap();
    }

    #[test]
    fn a_file_of_a_newer_version_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("countersign.sqlite");
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
        let is_newer = |opened: Result<SqliteStore, OpenError>| matches!(opened, Err(OpenError::Newer { found: 99, known, .. }) if known == schema::known());
        assert!(is_newer(open(&path)));
        assert!(is_newer(SqliteStore::open_to_read(&path, Arc::new(SystemClock))));
    }

    #[test]
    fn a_file_that_is_not_a_database_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.txt");
        std::fs::write(&path, "not a database, but long enough to be looked at by one".repeat(40)).unwrap();
        assert!(matches!(open(&path), Err(OpenError::Sqlite { .. })));
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("not a database"));
    }

    #[test]
    fn another_tool_can_read_the_open_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("countersign.sqlite");
        let _store = open(&path).unwrap();
        let tool = Connection::open(&path).unwrap();
        let threads: i64 = tool.query_row("SELECT count(*) FROM threads", [], |row| row.get(0)).unwrap();
        assert_eq!(threads, 0);
    }
}
