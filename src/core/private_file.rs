//! Files that only their owner can access, for conversations and keys.

use std::{
    fs::{File, Permissions},
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
