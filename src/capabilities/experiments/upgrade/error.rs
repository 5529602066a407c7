//! What became of a call that did not simply succeed, by what the caller does next.

use countersign_services::google;

/// Why a call to UpGrade has no plain answer.
///
/// An answer is what somebody said, and not always what is so: a refusal can come from something in front of the server,
/// after the change was made. Only [`Error::SignIn`] and [`Error::Unavailable`] are known not to have changed anything.
///
/// No variant carries what was sent: the server echoes requests in its errors, and they name participants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It answers that what was named does not exist.
    #[error("not found: {reason}")]
    NotFound {
        /// The server's words, shortened.
        reason: String,
    },
    /// It answers that our token, or the lack of one, is not accepted.
    #[error("UpGrade does not accept our credentials")]
    Auth,
    /// There is no token to sign in with. Nothing was sent.
    #[error("cannot sign in to UpGrade: {0}")]
    SignIn(google::Error),
    /// It answers that what was sent is not valid.
    #[error("UpGrade finds the request invalid: {}", problems.join("; "))]
    Invalid {
        /// One by one what is wrong with it.
        problems: Vec<String>,
    },
    /// It answers no.
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
    /// A change was answered as made, but its answer does not say so: it cannot be read, or tells of something else.
    ///
    /// Nothing is in flight any more, so reading back shows what there is.
    #[error("UpGrade's answer does not say that the change was made ({reason})")]
    Unclear {
        /// What it says instead.
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
