//! The errors of a call, distinguished by the caller's next step.

use countersign_services::google;

/// An error of a call to UpGrade.
///
/// An error answer does not prove that nothing changed: a refusal can come from a proxy in front of
/// the server, after the change was made. Only [`Error::SignIn`] and [`Error::Unavailable`] mean that
/// nothing changed.
///
/// No variant contains the request. The server echoes requests in its errors, and they name
/// participants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The server answers that the named thing does not exist.
    #[error("not found: {reason}")]
    NotFound {
        /// The server's message, shortened.
        reason: String,
    },
    /// The server does not accept our token, or requires one.
    #[error("UpGrade doesn't accept the credentials")]
    Auth,
    /// There is no token to sign in with. Nothing was sent.
    #[error("cannot sign in to UpGrade: {0}")]
    SignIn(google::Error),
    /// The server answers that the request is not valid.
    #[error("UpGrade says the request is invalid: {}", problems.join("; "))]
    Invalid {
        /// The problems, one by one.
        problems: Vec<String>,
    },
    /// The server refuses the request.
    #[error("UpGrade refused: {reason}")]
    Refused {
        /// The server's message, shortened.
        reason: String,
    },
    /// The server's code or its database failed on the request (status 500 with an error as JSON).
    ///
    /// Changes are made in transactions, so probably nothing changed. But not every call is a single
    /// transaction, so read back before reporting that. Nothing is in flight any more.
    #[error("UpGrade failed while handling this: {reason}")]
    Faulted {
        /// The server's message, shortened.
        reason: String,
    },
    /// The server is not available, and nothing changed: no connection was made, or the call was a read.
    #[error("UpGrade isn't answering: {reason}")]
    Unavailable {
        /// The observed error.
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
        /// The observed error.
        reason: String,
    },
    /// The answer has an unexpected form. Only for reads.
    #[error("cannot read UpGrade's answer: {reason}")]
    Decode {
        /// The problem with the answer.
        reason: String,
    },
}
