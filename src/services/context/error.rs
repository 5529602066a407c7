//! The errors of this crate, distinguished by the caller's next step.

use std::time::Duration;

/// The reason why a store or a service did not do what was asked.
///
/// No variant contains a text, a name or an address of a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// There is no answer, or a temporary failure. Nothing was changed.
    #[error("{what} is not available: {reason}")]
    Unavailable {
        /// The store or the service.
        what: &'static str,
        /// The observed failure.
        reason: String,
        /// The time for which the service asks to wait.
        retry_after: Option<Duration>,
    },
    /// There are no valid credentials.
    #[error("cannot sign in to {what}: {reason}")]
    SignIn {
        /// The service.
        what: &'static str,
        /// The observed failure.
        reason: String,
    },
    /// The store or the service refuses the request, and would refuse it again.
    #[error("{what} refused: {reason}")]
    Refused {
        /// The store or the service.
        what: &'static str,
        /// The HTTP status, if it is a service.
        status: Option<u16>,
        /// The message, shortened.
        reason: String,
    },
    /// The answer has an unexpected form.
    #[error("cannot read the answer from {what}: {reason}")]
    Decode {
        /// The store or the service.
        what: &'static str,
        /// The fault in the answer.
        reason: String,
    },
    /// A change was sent, and its outcome is not known.
    #[error("no answer from {what} ({reason}); the change may or may not have happened")]
    NoAnswer {
        /// The service.
        what: &'static str,
        /// The observed failure.
        reason: String,
    },
    /// The caller passed a value that cannot be used. Nothing was sent.
    #[error("{reason}")]
    Invalid {
        /// The value that was found, and the rule.
        reason: String,
    },
    /// There was no valid permit for a change. Nothing was sent.
    #[error("the deadline for sending this has passed")]
    RunOut,
}

impl ContextError {
    /// Creates the error for a store or a service that does not answer.
    pub(crate) fn unavailable(what: &'static str, reason: impl Into<String>) -> Self {
        Self::Unavailable { what, reason: reason.into(), retry_after: None }
    }

    /// Creates the error for a value that cannot be used.
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid { reason: reason.into() }
    }

    /// Creates the error for an answer that cannot be read.
    pub(crate) fn decode(what: &'static str, reason: impl Into<String>) -> Self {
        Self::Decode { what, reason: reason.into() }
    }
}
