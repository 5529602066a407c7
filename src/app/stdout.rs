//! The output of a command for the person who started it.

use std::{
    fmt::Display,
    io::{self, ErrorKind, Write as _},
};

/// Writes a line. A reader that has gone away, as `head` does, is no error: the rest is dropped.
///
/// # Errors
///
/// If it cannot be written for another reason, such as a full disk.
pub fn write_line(line: impl Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        told => told,
    }
}

/// Returns an error with its causes, each said once: many of them repeat their own.
pub fn describe_error(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |said, cause| {
        let cause = cause.to_string();
        match said.as_str() {
            "" => cause,
            before if before.contains(&cause) => said,
            before => format!("{before}: {cause}"),
        }
    })
}
