//! The files of a store, which are watched by their identity rather than their name.
//!
//! If an open file is deleted, moved or replaced, writes to it still succeed, but after a restart a
//! different file or none is found. So before anything is answered, each name must still lead to
//! the file that was opened. The index next to the log is watched as well, since it carries the
//! locks by which other programs notice this one.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

/// The mode of a file that only its owner may access.
pub(super) const PRIVATE_MODE: u32 = 0o600;

/// The identity of a file: its device and its inode.
type Identity = (u64, u64);

/// The files of an open store.
#[derive(Debug)]
pub(super) struct Files {
    watched: Vec<(PathBuf, Identity)>,
    /// True if the loss of a file has been logged.
    reported: AtomicBool,
}

/// The error for a name that no longer leads to the file that was opened.
#[derive(Debug, thiserror::Error)]
#[error("{} was {how} while Countersign uses it; {remedy}", path.display())]
pub(super) struct FileLost {
    path: PathBuf,
    how: &'static str,
    /// The remedy, and the consequence of restarting without it.
    remedy: &'static str,
}

impl Files {
    /// Watches the files of the open store at `path`. `given_path` is the path as configured, which
    /// may contain links.
    pub(super) fn of(given_path: &Path, path: &Path) -> io::Result<Self> {
        let mut watched = Vec::new();
        for (name, must_exist) in [
            (std::path::absolute(given_path)?, true),
            (path.to_owned(), true),
            (companion_file(path, "-wal"), false),
            (companion_file(path, "-shm"), false),
        ] {
            match fs::metadata(&name) {
                Ok(file) => watched.push((name, (file.dev(), file.ino()))),
                Err(error) if !must_exist && error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        watched.dedup();
        Ok(Self { watched, reported: AtomicBool::new(false) })
    }

    /// Checks that the data written now would be found after a restart.
    pub(super) fn check(&self) -> Result<(), FileLost> {
        let lost = self.watched.iter().find_map(|(path, identity)| {
            let how = match fs::metadata(path) {
                Ok(file) if (file.dev(), file.ino()) == *identity => return None,
                Ok(_) => "replaced",
                Err(error) if error.kind() == io::ErrorKind::NotFound => "deleted or moved",
                Err(_) => "made unreachable",
            };
            Some(FileLost { path: path.clone(), how, remedy: remedy(path, how) })
        });
        match lost {
            Some(lost) => {
                if !self.reported.swap(true, Ordering::Relaxed) {
                    tracing::error!("Nothing is stored or acknowledged: {lost}");
                }
                Err(lost)
            }
            None => {
                if self.reported.swap(false, Ordering::Relaxed) {
                    tracing::info!("The files of the store are back; deliveries are stored again");
                }
                Ok(())
            }
        }
    }
}

/// Returns the remedy for a lost file, and the effect of a restart without it.
fn remedy(path: &Path, how: &str) -> &'static str {
    let is = |ending: &str| path.to_string_lossy().ends_with(ending);
    if is("-shm") {
        "put it back, or start Countersign again"
    } else if is("-wal") {
        "put it back, since a new start would miss the newest changes"
    } else if how == "replaced" {
        "put it back, since a new start would use the file that is there now, without the threads and open cards of this one"
    } else if how == "made unreachable" {
        "make it reachable again"
    } else {
        "put it back, since a new start would make an empty store, without any of its threads and open cards"
    }
}

/// Returns the path of a companion file of the one at `path`, which has the same name with `ending`
/// appended.
pub(super) fn companion_file(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Returns the canonical path of a file, without links and relative parts, whether or not the file
/// exists.
pub(super) fn canonical_path(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found_or_failed => return found_or_failed, // such as links that lead to each other
    }
    // A link may lead to a file that does not exist yet.
    if let Ok(to) = fs::read_link(path) {
        let folder = path.parent().unwrap_or(Path::new(""));
        return canonical_path(&folder.join(to));
    }
    let path = std::path::absolute(path)?;
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok(fs::canonicalize(folder)?.join(name)),
        _ => Ok(path),
    }
}

/// Opens a file with access for its owner only, and creates it if there is none. An existing file
/// is made private.
pub(super) fn open_private(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).read(true).write(true).mode(PRIVATE_MODE).open(path)?;
    make_private(path)?;
    Ok(file)
}

/// Removes access for everyone but the owner, and logs the change. A missing file is not an error,
/// and neither is a file of another owner, which is only logged.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    let mode = match fs::metadata(path) {
        Ok(file) => file.permissions().mode() & 0o777,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if mode & 0o077 == 0 {
        return Ok(());
    }
    match fs::set_permissions(path, Permissions::from_mode(PRIVATE_MODE)) {
        Ok(()) => tracing::warn!("{} was accessible to others (mode {mode:03o}) and is now private", path.display()),
        Err(error) => tracing::warn!(
            "{} is accessible to others (mode {mode:03o}) and cannot be made private: {error}",
            path.display()
        ),
    }
    Ok(())
}
