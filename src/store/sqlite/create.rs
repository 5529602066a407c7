//! Creates the file of a new store: complete, or not at all.
//!
//! The database is made in memory, written to a file under another name, and renamed. That takes two syncs; SQLite would
//! need eight to create an empty file, change its journal mode and apply the migrations.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use rusqlite::Connection;

use super::{
    files::{self, companion_file},
    power, schema,
};

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
    let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
    if exists(path) || ["-wal", "-journal"].into_iter().any(|ending| exists(&companion_file(path, ending))) {
        return Ok(());
    }
    let database = empty().map_err(io::Error::other)?;
    let unfinished = companion_file(path, "-new");
    let mut file = files::open_private(&unfinished)?;
    file.set_len(0)?; // of an earlier attempt
    file.write_all(&database)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
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
    use super::*;

    #[test]
    fn a_new_file_is_a_store_with_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("countersign.sqlite");
        fs::write(companion_file(&path, "-new"), vec![7; 1 << 20]).unwrap(); // a machine that stopped here
        if_missing(&path).unwrap();
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["countersign.sqlite"]);
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
