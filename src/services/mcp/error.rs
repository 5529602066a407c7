//! The errors of a call, distinguished by whether the call can have had an effect.

use countersign_services::http::Lost;
use countersign_wire::capped::size;
use rmcp::{
    model::ErrorCode,
    service::{ClientInitializeError, ServiceError},
    transport::streamable_http_client::StreamableHttpError,
};

use crate::http::HttpError;

/// The reason why a call has no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing arrived, since there was no connection.
    #[error("{reason}")]
    NotSent {
        /// The observed failure.
        reason: String,
    },
    /// Nothing was sent, since the permit had run out.
    #[error("the deadline for sending this had passed")]
    RunOut,
    /// The server does not know the session any more, and so did nothing.
    #[error("the server has forgotten the session")]
    SessionLost,
    /// Nobody is signed in to the server, or the sign-in is over.
    #[error("{reason}")]
    NotSignedIn {
        /// The reason, for an operator.
        reason: String,
    },
    /// The server does not accept the token.
    #[error("the server does not accept the token (HTTP {status})")]
    Auth {
        /// The HTTP status.
        status: u16,
    },
    /// The server refused the call before it did anything.
    #[error("the server refused it: {reason}")]
    Refused {
        /// The reason, in the server's words.
        reason: String,
    },
    /// The call was sent, and the answer is too long to be read.
    #[error("its answer is longer than the limit of {}", size(*.most))]
    TooLong {
        /// The limit, in bytes.
        most: usize,
    },
    /// The call was sent, and there is no answer, or none that can be read.
    #[error("{reason}")]
    NoAnswer {
        /// The observed failure.
        reason: String,
    },
}

impl Error {
    /// Returns true if the call certainly had no effect.
    pub fn had_no_effect(&self) -> bool {
        !matches!(self, Self::NoAnswer { .. } | Self::TooLong { .. })
    }

    /// Returns true if the session must not be used any more.
    pub(crate) fn ends_session(&self) -> bool {
        !matches!(self, Self::RunOut | Self::Refused { .. })
    }

    fn no_answer(reason: impl Into<String>) -> Self {
        Self::NoAnswer { reason: reason.into() }
    }

    fn of_http(error: &StreamableHttpError<HttpError>) -> Self {
        match error {
            StreamableHttpError::SessionExpired => Self::SessionLost,
            StreamableHttpError::Client(HttpError::Lost(lost)) => match lost {
                Lost::NotSent { reason } => Self::NotSent { reason: reason.clone() },
                Lost::RunOut => Self::RunOut,
                Lost::NoAnswer { reason, .. } => Self::no_answer(reason.as_str()),
                Lost::TooLong { reason } => Self::no_answer(reason.as_str()),
            },
            StreamableHttpError::Client(HttpError::TooLong { most }) => Self::TooLong { most: *most },
            StreamableHttpError::Client(HttpError::NotSignedIn(reason)) => Self::NotSignedIn { reason: reason.clone() },
            StreamableHttpError::Client(error @ HttpError::Redirects { .. }) => {
                Self::NotSent { reason: error.to_string() }
            }
            StreamableHttpError::Client(HttpError::Status { status: status @ (401 | 403), .. }) => {
                Self::Auth { status: *status }
            }
            StreamableHttpError::Client(HttpError::Status { status, said }) if (400..500).contains(status) => {
                Self::Refused { reason: if said.is_empty() { format!("HTTP {status}") } else { said.clone() } }
            }
            StreamableHttpError::Client(error) => Self::no_answer(error.to_string()),
            other => Self::no_answer(other.to_string()),
        }
    }

    fn in_chain(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        http_error(error).map(Self::of_http)
    }
}

/// Returns the error of the HTTP transport that another one was caused by.
fn http_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a StreamableHttpError<HttpError>> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(http) = error.downcast_ref() {
            return Some(http);
        }
        next = error.source();
    }
    None
}

/// Returns the HTTP status with which a server refused a connection.
pub(crate) fn status_of(error: &ClientInitializeError) -> Option<u16> {
    let ClientInitializeError::TransportError { error, .. } = error else { return None };
    match http_error(&*error.error)? {
        StreamableHttpError::Client(HttpError::Status { status, .. }) => Some(*status),
        _ => None,
    }
}

/// Returns the error for an answer that cannot be read.
pub(crate) fn unreadable() -> Error {
    Error::NoAnswer { reason: "its answer can't be read".to_owned() }
}

/// Returns true for codes which mean that a request was not executed: it could not be parsed, its parameters are wrong,
/// or there is no such method or resource. Other codes are also used for failures during the execution.
fn refuses(code: ErrorCode) -> bool {
    matches!(code.0, -32700 | -32602..=-32600 | -32002)
}

impl From<ServiceError> for Error {
    fn from(error: ServiceError) -> Self {
        match &error {
            ServiceError::McpError(said) if refuses(said.code) => Self::Refused { reason: said.message.to_string() },
            ServiceError::McpError(said) => Self::no_answer(format!("the server answered with “{}”", said.message)),
            ServiceError::TransportSend(sent) => {
                Self::in_chain(&*sent.error).unwrap_or_else(|| Self::no_answer("the connection was lost"))
            }
            ServiceError::Timeout { .. } => Self::no_answer("no answer in time"),
            ServiceError::TransportClosed => Self::no_answer("the connection was lost"),
            _ => unreadable(),
        }
    }
}

impl From<ClientInitializeError> for Error {
    /// Converts an error of establishing a connection. The call itself was not sent yet.
    fn from(error: ClientInitializeError) -> Self {
        let known = match &error {
            ClientInitializeError::TransportError { error, .. } => Self::in_chain(&*error.error),
            ClientInitializeError::JsonRpcError(said) => Some(Self::Refused { reason: said.message.to_string() }),
            ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
                let versions: Vec<_> = server_supported.iter().map(ToString::to_string).collect();
                let reason = format!("it speaks only the protocol versions {}", versions.join(", "));
                Some(Self::NotSent { reason })
            }
            _ => None,
        };
        match known {
            Some(error @ (Self::NoAnswer { .. } | Self::TooLong { .. })) => Self::NotSent { reason: error.to_string() },
            Some(known) => known,
            None => Self::NotSent { reason: "the server's handshake did not follow the protocol".to_owned() },
        }
    }
}
