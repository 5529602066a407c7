//! Backups: a copy of a file while another process writes it, and a copy that takes its place.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    time::Duration,
};

use countersign_core::private_file;
use rusqlite::{Connection, OpenFlags, backup::Backup};
use serde_json::{Value, json};

use super::{
    files::{PRIVATE_MODE, companion_file},
    open::file_beside,
    power::MACHINE_START,
};

/// The register in a backup that describes it.
pub const ABOUT: &str = "backup";

/// The endings of the files of a database: itself, its log, and the index of the log.
pub const FILES: [&str; 3] = ["", "-wal", "-shm"];

/// The time for which a copy waits while another tool locks the file.
const BUSY: Duration = Duration::from_secs(5);

/// Copies the database at `from`, as it is at one moment, to a file that does not exist yet. It appears complete or not at
/// all, is synced, and only its owner can access it. Other processes can use the database meanwhile.
///
/// A store has a description: `about` becomes its register [`ABOUT`], with the schema. When the copy is opened, its waiting
/// messages count as tried, as after a restart of the machine, since they may have been sent.
///
/// # Errors
///
/// If there is a file at `to`, the database cannot be read, or the copy cannot be written.
pub fn back_up(from: &Path, to: &Path, about: Option<Value>) -> io::Result<()> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(io::Error::new(
            ErrorKind::AlreadyExists,
            "there is a file of this name; give the backup another one",
        ));
    }
    let unfinished = companion_file(to, ".partial");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {} // of an earlier attempt
    }
    let file = File::options().write(true).create_new(true).mode(PRIVATE_MODE).open(&unfinished)?;
    let copied = copy(from, &unfinished, about).map_err(io::Error::other);
    let written = copied.and_then(|()| file.sync_all()).and_then(|()| fs::rename(&unfinished, to));
    if written.is_err() {
        fs::remove_file(&unfinished).ok();
    }
    written.and_then(|()| private_file::sync_folder(to))
}

fn copy(from: &Path, to: &Path, about: Option<Value>) -> rusqlite::Result<()> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    source.busy_timeout(BUSY)?;
    let mut copy = Connection::open(to)?;
    // All pages in one step, which sees one moment. In several, it would begin anew with each write in between.
    Backup::new(&source, &mut copy)?.run_to_completion(i32::MAX, Duration::from_millis(50), None)?;
    copy.pragma_update(None, "journal_mode", "delete")?; // one file, also while it is read
    if let Some(mut about) = about {
        about["schema"] = json!(super::schema::applied(&copy)?);
        let set = "INSERT OR REPLACE INTO registers (key, revision, value) VALUES (?1, 1, ?2)";
        copy.execute(set, [ABOUT, &about.to_string()])?;
        copy.execute("DELETE FROM registers WHERE key = ?1", [MACHINE_START])?;
    }
    copy.close().map_err(|(_, error)| error)
}

/// Returns what SQLite finds wrong with a database. An intact one has no line.
///
/// # Errors
///
/// If it cannot be read at all.
pub fn faults(path: &Path) -> rusqlite::Result<Vec<String>> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut check = connection.prepare("PRAGMA integrity_check")?;
    let lines = check.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// Returns the keys of all registers of a store.
///
/// # Errors
///
/// If it cannot be read.
pub fn registers(path: &Path) -> rusqlite::Result<Vec<String>> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut select = connection.prepare("SELECT key FROM registers")?;
    select.query_map([], |row| row.get(0))?.collect()
}

/// Puts the database `copy` at `path`, and what is there, with its log, at `old`. No process may use either of them.
///
/// # Errors
///
/// If a file cannot be renamed. A database that was moved to `old` stays there.
pub fn put_in_place(copy: &Path, path: &Path, old: &Path) -> io::Result<()> {
    for ending in FILES {
        match fs::rename(file_beside(path, ending), companion_file(old, ending)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let path = file_beside(path, "");
    fs::rename(copy, &path)?;
    private_file::sync_folder(&path)
}
