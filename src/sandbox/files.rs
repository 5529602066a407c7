//! The files in which stand-ins keep their state: each is replaced as a whole.

use std::{
    io,
    path::{Path, PathBuf},
};

use countersign_core::private_file;

/// Returns the content of a file; `None` if there is no such file.
///
/// # Errors
///
/// If the file cannot be read.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the content of a file.
///
/// # Errors
///
/// If the file cannot be written.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    private_file::write(&temporary, bytes)?;
    std::fs::rename(temporary, path)
}
