//! Files that only their owner may read: conversations and keys.

use std::{
    fs::{File, Permissions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

/// Writes a file that only its owner may read, replacing any that is there.
///
/// # Errors
///
/// The error of the system.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?; // before there is anything in it
    file.write_all(bytes)
}

/// Opens a file that only its owner may read, for appending.
///
/// # Errors
///
/// The error of the system.
pub fn append(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).append(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}
