//! What a command tells whoever started it.

use std::{
    fmt::Display,
    io::{self, ErrorKind, Write as _},
};

/// Writes a line. A reader that has gone away, as `head` does, is no reason to end: the rest is told to nobody.
///
/// # Errors
///
/// If it cannot be written for another reason, such as a full disk.
pub fn say(line: impl Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        told => told,
    }
}
