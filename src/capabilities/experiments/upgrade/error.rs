//! The errors of a call, distinguished by what the caller does next.

use countersign_services::google;

/// The reason why a call to UpGrade did not simply succeed.
///
/// An answer may be wrong: a refusal can come from a proxy in front of the server, after the change was made. Only
/// [`Error::SignIn`] and [`Error::Unavailable`] are known to have changed nothing.
///
/// No variant carries the request: the server echoes requests in its errors, and they name participants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The server answers that the named thing does not exist.
    #[error("not found: {reason}")]
    NotFound {
        /// The server's words, shortened.
        reason: String,
    },
    /// The server does not accept our token, or requires one.
    #[error("UpGrade does not accept our credentials")]
    Auth,
    /// There is no token to sign in with. Nothing was sent.
    #[error("cannot sign in to UpGrade: {0}")]
    SignIn(google::Error),
    /// The server answers that the request is not valid.
    #[error("UpGrade finds the request invalid: {}", problems.join("; "))]
    Invalid {
        /// The problems, one by one.
        problems: Vec<String>,
    },
    /// The server refuses.
    #[error("UpGrade refused: {reason}")]
    Refused {
        /// The server's words, shortened.
        reason: String,
    },
    /// The server's code or its database failed on the request (500 with an error as JSON).
    ///
    /// Changes are made in transactions, so most likely nothing changed; but not every call is one transaction, so
    /// read back before saying so. Nothing is in flight any more.
    #[error("UpGrade failed while it worked on this: {reason}")]
    Faulted {
        /// The server's words, shortened.
        reason: String,
    },
    /// The server is not available, and nothing changed: no connection was made, or the call was a read.
    #[error("UpGrade does not answer: {reason}")]
    Unavailable {
        /// The error seen.
        reason: String,
    },
    /// The server confirms a change, but its answer is unreadable or about something else.
    ///
    /// Nothing is in flight any more, so reading back shows the outcome.
    #[error("UpGrade's answer does not say that the change was made ({reason})")]
    Unclear {
        /// The problem with the answer.
        reason: String,
    },
    /// A change was sent and its outcome is not known. It may still be in flight.
    #[error("no answer from UpGrade ({reason}); the change may or may not have happened")]
    NoAnswer {
        /// The error seen.
        reason: String,
    },
    /// The answer has an unexpected form. Only for reads.
    #[error("cannot read UpGrade's answer: {reason}")]
    Decode {
        /// The problem with the answer.
        reason: String,
    },
}
