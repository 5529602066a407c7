//! The output of a command to standard output.

use std::{
    fmt::Display,
    io::{self, ErrorKind, Write as _},
};

/// Writes a line. It is not an error if the reader has closed the pipe, as `head` does; the output is then dropped.
///
/// # Errors
///
/// If the line cannot be written for another reason, such as a full disk.
pub fn write_line(line: impl Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Returns an error with its causes. A cause whose text already appears is left out, since many errors repeat theirs.
pub fn describe_error(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |description, cause| {
        let cause = cause.to_string();
        match description.as_str() {
            "" => cause,
            before if before.contains(&cause) => description,
            before => format!("{before}: {cause}"),
        }
    })
}
