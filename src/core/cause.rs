//! The cause of a failure, for the log: an error with everything below it.

use std::error::Error;

/// Returns an error and its causes in one line, each once: many errors repeat their own cause.
pub fn chain<E: Error + ?Sized>(error: &E) -> String {
    let mut said = error.to_string();
    let mut below = error.source();
    while let Some(cause) = below {
        let words = cause.to_string();
        if !said.contains(&words) {
            said = format!("{said}: {words}");
        }
        below = cause.source();
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the store does not answer")]
    struct Top(#[source] Middle);

    #[derive(Debug, thiserror::Error)]
    #[error("cannot write: {0}")]
    struct Middle(#[source] std::io::Error);

    #[test]
    fn every_cause_is_said_once() {
        let error = Top(Middle(std::io::Error::other("disk full")));
        assert_eq!(chain(&error), "the store does not answer: cannot write: disk full");
        assert_eq!(chain(&&error), chain(&error));
    }
}
