//! Errors with their causes, for the log.

use std::error::Error;

/// Returns an error and its causes in one line. A cause whose text already appears is left out, since many errors
/// repeat theirs.
pub fn chain<E: Error + ?Sized>(error: &E) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
        next = cause.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the store isn't answering")]
    struct Top(#[source] Middle);

    #[derive(Debug, thiserror::Error)]
    #[error("cannot write: {0}")]
    struct Middle(#[source] std::io::Error);

    #[test]
    fn every_cause_is_said_once() {
        let error = Top(Middle(std::io::Error::other("disk full")));
        assert_eq!(chain(&error), "the store isn't answering: cannot write: disk full");
        assert_eq!(chain(&&error), chain(&error));
    }
}
