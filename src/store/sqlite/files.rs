//! The files of a store, watched by identity and not by name.
//!
//! A file that was deleted, moved or replaced is written on without an error, and the next start finds another one or
//! none. So before anything is answered, each name must still lead to the file that was opened. The index beside the
//! log is watched too: it carries the locks by which other programs know of this one.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

/// The mode of a file for its owner alone.
const PRIVATE_MODE: u32 = 0o600;

/// The identity of a file: its device and its number there.
type Identity = (u64, u64);

/// The files that were opened.
#[derive(Debug)]
pub(super) struct Files {
    watched: Vec<(PathBuf, Identity)>,
    /// True if the loss of a file was logged.
    told: AtomicBool,
}

/// The error that a name no longer leads to the file that was opened.
#[derive(Debug, thiserror::Error)]
#[error("{} was {how} while Countersign uses it; {right}", path.display())]
pub(super) struct FileLost {
    path: PathBuf,
    how: &'static str,
    /// The remedy, and the loss without it.
    right: &'static str,
}

impl Files {
    /// Watches the files of the open store at `path`, which people call `called`.
    pub(super) fn of(called: &Path, path: &Path) -> io::Result<Self> {
        let mut watched = Vec::new();
        for (name, must_exist) in [
            (std::path::absolute(called)?, true),
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
        Ok(Self { watched, told: AtomicBool::new(false) })
    }

    /// Checks that the next start would find the data that is written now.
    pub(super) fn check(&self) -> Result<(), FileLost> {
        let lost = self.watched.iter().find_map(|(path, identity)| {
            let how = match fs::metadata(path) {
                Ok(file) if (file.dev(), file.ino()) == *identity => return None,
                Ok(_) => "replaced",
                Err(error) if error.kind() == io::ErrorKind::NotFound => "deleted or moved",
                Err(_) => "made unreachable",
            };
            Some(FileLost { path: path.clone(), how, right: remedy(path, how) })
        });
        match lost {
            Some(lost) => {
                if !self.told.swap(true, Ordering::Relaxed) {
                    tracing::error!("Nothing is stored or acknowledged: {lost}");
                }
                Err(lost)
            }
            None => {
                if self.told.swap(false, Ordering::Relaxed) {
                    tracing::info!("The files of the store are back, and what arrives is stored again");
                }
                Ok(())
            }
        }
    }
}

/// Returns the remedy once a file is gone, and the effect of a new start.
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

/// Returns the name of a file that belongs to the one at `path`.
pub(super) fn companion_file(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Returns the one name of a file, whether it exists or not: without links and detours.
pub(super) fn canonical_path(path: &Path) -> io::Result<PathBuf> {
    if let Ok(name) = fs::canonicalize(path) {
        return Ok(name);
    }
    // A link to a file that does not exist yet.
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

/// Opens a file for its owner alone, and makes it if there is none. An existing file is closed to others.
pub(super) fn open_private(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).read(true).write(true).mode(PRIVATE_MODE).open(path)?;
    make_private(path)?;
    Ok(file)
}

/// Closes a file to all but its owner, and logs that. A missing file is fine, and so is one of another owner, which is
/// only logged.
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
        Ok(()) => tracing::warn!("{} was open to others (mode {mode:03o}) and is now closed to them", path.display()),
        Err(error) => tracing::warn!("{} is open to others (mode {mode:03o}): {error}", path.display()),
    }
    Ok(())
}
