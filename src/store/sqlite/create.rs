//! Creates the file of a new store: complete, or not at all.
//!
//! The database is made in memory, written to a file under another name, and renamed. That takes two syncs; SQLite would
//! need eight to create an empty file, change its journal mode and apply the migrations.

use std::{
    fs::{self, File},
    io::{self, ErrorKind::NotFound, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rusqlite::Connection;

use super::{
    files::{PRIVATE_MODE, companion_file},
    power, schema,
};

/// The ending of the file that is being written. It is no longer than that of the lock.
const UNFINISHED: &str = ".init";

/// The bytes of a database's header that name its journal mode, <https://www.sqlite.org/fileformat2.html>.
const JOURNAL_MODE: std::ops::Range<usize> = 18..20;
/// The value of these bytes for a write-ahead log.
const WAL: u8 = 2;

/// Creates the store at `path` if there is nothing under this name. Otherwise, or if files are left there that SQLite would
/// take for a part of the database, nothing is done.
///
/// # Errors
///
/// If the file cannot be written.
pub(super) fn if_missing(path: &Path) -> io::Result<()> {
    // Whatever cannot be looked at may be there.
    let exists = |path: &Path| !fs::symlink_metadata(path).is_err_and(|error| error.kind() == NotFound);
    if exists(path) || ["-wal", "-journal"].into_iter().any(|ending| exists(&companion_file(path, ending))) {
        return Ok(());
    }
    let database = empty().map_err(io::Error::other)?;
    let unfinished = companion_file(path, UNFINISHED);
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != NotFound => return Err(error),
        _ => {} // of an earlier attempt
    }
    let mut file = File::options().write(true).create_new(true).mode(PRIVATE_MODE).open(&unfinished)?;
    file.write_all(&database)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    // The first write to the log syncs the folder again, so a folder that cannot be synced is no error here either.
    if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Returns the contents of the file of a store without threads.
fn empty() -> rusqlite::Result<Vec<u8>> {
    let mut connection = Connection::open_in_memory()?;
    schema::migrate(&mut connection)?.expect("an empty database is not newer than this program");
    power::after_restart(&connection)?;
    let mut database = connection.serialize("main")?.to_vec();
    database[JOURNAL_MODE].fill(WAL);
    Ok(database)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_new_file_is_a_store_with_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("countersign.sqlite");
        fs::write(folder.path().join("other"), "kept").unwrap();
        symlink(folder.path().join("other"), companion_file(&path, UNFINISHED)).unwrap();
        if_missing(&path).unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, PRIVATE_MODE);
        assert_eq!(fs::read(folder.path().join("other")).unwrap(), b"kept");
        assert!(!companion_file(&path, UNFINISHED).exists());
        let connection = Connection::open(&path).unwrap();
        assert_eq!(schema::applied(&connection).unwrap(), schema::known());
        let text = |sql| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
        assert_eq!([text("PRAGMA journal_mode"), text("PRAGMA integrity_check")], ["wal", "ok"]);
    }

    #[test]
    fn what_is_there_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("countersign.sqlite");
        fs::write(&path, "").unwrap();
        if_missing(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        fs::remove_file(&path).unwrap();
        fs::write(companion_file(&path, "-wal"), "of another database").unwrap();
        if_missing(&path).unwrap();
        assert!(!path.exists(), "SQLite would add the log to it");
    }
}
