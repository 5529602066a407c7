//! The errors of a call, distinguished by the caller's next step.

/// The reason why a call to the bridge failed.
///
/// An answer may be misleading: a refusal can come from a proxy in front of the bridge, after the change was made. Only
/// after [`Error::Unavailable`], [`Error::Busy`] and [`Error::NoToken`] is it certain that nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bridge cannot be reached or its engine does not answer; nothing changed.
    #[error("the bridge isn't answering: {reason}")]
    Unavailable {
        /// The observed error.
        reason: String,
    },
    /// The bridge limits the rate of calls (429); nothing changed.
    #[error("the bridge is getting too many calls")]
    Busy,
    /// No token can be made; nothing was sent.
    #[error("there is no token for the bridge: set BRIDGE_TOKEN or BRIDGE_JWT_SECRET")]
    NoToken,
    /// The bridge does not accept the token (401).
    #[error("the bridge does not accept the token: {reason}")]
    Auth {
        /// The bridge's words, shortened.
        reason: String,
    },
    /// The role of the token does not allow the call (403).
    #[error("the role of the token does not allow this")]
    Forbidden,
    /// A simulation, parameter, job or result does not exist (404).
    #[error("not found: {reason}")]
    NotFound {
        /// The bridge's words, shortened.
        reason: String,
    },
    /// The name is taken, or the idempotency key was used for something else (409).
    #[error("conflict: {reason}")]
    Conflict {
        /// The bridge's words, shortened.
        reason: String,
    },
    /// The bridge saw no confirmation (428): a fault of this program, or of a proxy that drops headers.
    #[error("the bridge saw no confirmation of this call")]
    NotConfirmed,
    /// The bridge finds an argument invalid (400, 422).
    #[error("the bridge says this is invalid: {}", problems.join("; "))]
    Invalid {
        /// The problems, one by one.
        problems: Vec<String>,
    },
    /// The model engine behind the bridge failed; the bridge itself works.
    #[error("the model engine failed: {reason}")]
    Engine {
        /// The engine's words, shortened.
        reason: String,
    },
    /// The bridge failed on the request (500).
    #[error("the bridge failed on this request: {reason}")]
    Faulted {
        /// The bridge's words, shortened.
        reason: String,
    },
    /// A change was sent and its outcome is unknown. It may still be in flight.
    #[error("no answer from the bridge ({reason}); the change may or may not have happened")]
    NoAnswer {
        /// The observed error.
        reason: String,
    },
    /// The answer has an unexpected form.
    #[error("cannot read the bridge's answer: {reason}")]
    Decode {
        /// The problem with the answer.
        reason: String,
    },
}

impl Error {
    /// Returns true if the same read may succeed shortly afterwards.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Busy)
    }

    /// Returns true if the error says that this simulation is not loaded.
    pub fn forgot(&self, simulation: &str) -> bool {
        matches!(self, Self::NotFound { reason } if reason.contains("Simulation") && reason.contains(simulation))
    }
}
