//! What became of a call that did not simply succeed, by what the caller does next.

use crate::services::google;

/// Why a call to UpGrade has no plain answer.
///
/// No variant carries what was sent: the server echoes requests in its errors, and they name participants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// What was named does not exist. Nothing changed.
    #[error("not found: {reason}")]
    NotFound {
        /// The server's words, shortened.
        reason: String,
    },
    /// Our token, or the lack of one, is not accepted. Nothing changed.
    #[error("UpGrade does not accept our credentials")]
    Auth,
    /// There is no token to sign in with. Nothing was sent.
    #[error("cannot sign in to UpGrade: {0}")]
    SignIn(google::Error),
    /// What was sent is not valid. Nothing changed.
    #[error("UpGrade finds the request invalid: {}", problems.join("; "))]
    Invalid {
        /// One by one what is wrong with it.
        problems: Vec<String>,
    },
    /// The server understood and said no. Nothing changed.
    #[error("UpGrade refused: {reason}")]
    Refused {
        /// The server's words, shortened.
        reason: String,
    },
    /// The server's code or its database threw while it worked on the request (500 with an error as JSON).
    ///
    /// Changes are made in transactions, so most likely nothing changed; but not every call is one transaction, so read
    /// back before saying so. Nothing is in flight any more.
    #[error("UpGrade failed while it worked on this: {reason}")]
    Faulted {
        /// The server's words, shortened.
        reason: String,
    },
    /// It cannot be asked at the moment, and nothing changed: no connection came about, or only a read was asked.
    #[error("UpGrade does not answer: {reason}")]
    Unavailable {
        /// What was seen.
        reason: String,
    },
    /// A change was sent and its outcome is not known. It may still be in flight.
    #[error("no answer from UpGrade ({reason}); the change may or may not have happened")]
    NoAnswer {
        /// What was seen.
        reason: String,
    },
    /// It answered something that is not what this call answers. Only for reads.
    #[error("cannot read UpGrade's answer: {reason}")]
    Decode {
        /// What is wrong with it.
        reason: String,
    },
}
