//! Files that only their owner can access, for conversations and keys.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

/// Writes a file that only its owner can access. An existing file is overwritten.
///
/// # Errors
///
/// The error of the system.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?; // before anything is written
    file.write_all(bytes)
}

/// Opens a file for appending that only its owner can access, and creates it if necessary.
///
/// # Errors
///
/// The error of the system.
pub fn append(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).append(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Writes a file that only its owner can access, complete or not at all, and syncs it. An existing file is replaced.
///
/// # Errors
///
/// The error of the system.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = Path::new(&unfinished);
    write(unfinished, bytes)?;
    File::open(unfinished)?.sync_all()?;
    fs::rename(unfinished, path)?;
    sync_folder(path)
}

/// Syncs the folder of a file, so that its name survives a power failure. A folder that cannot be opened is no error.
///
/// # Errors
///
/// The error of the system.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).map_or(Ok(()), |folder| folder.sync_all())
}
