//! Error responses in Google's format: `{error: {code, message, errors, status}}`.

use serde_json::{Value, json};

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The HTTP status.
    pub(crate) status: u16,
    message: String,
    reason: &'static str,
    domain: &'static str,
    /// The name of the status in Google's APIs.
    name: &'static str,
    /// The value of the header `Retry-After`, in seconds.
    pub(crate) retry_after: Option<u64>,
}

impl Failure {
    fn new(status: u16, name: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), reason, domain: "global", name, retry_after: None }
    }

    /// A value is invalid.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "INVALID_ARGUMENT", "invalidArgument", message)
    }

    /// The account is not in a state in which this is possible.
    pub(crate) fn precondition() -> Self {
        Self::new(400, "FAILED_PRECONDITION", "failedPrecondition", "Precondition check failed.")
    }

    /// The token is missing or invalid.
    pub(crate) fn unauthenticated() -> Self {
        let message = "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or \
                       other valid authentication credential.";
        Self::new(401, "UNAUTHENTICATED", "authError", message)
    }

    /// The token does not have the scope.
    pub(crate) fn scope() -> Self {
        let message = "Request had insufficient authentication scopes.";
        Self::new(403, "PERMISSION_DENIED", "insufficientPermissions", message)
    }

    /// The token is for another mailbox.
    pub(crate) fn denied(address: &str) -> Self {
        Self::new(403, "PERMISSION_DENIED", "forbidden", format!("Delegation denied for {address}"))
    }

    /// The requested item does not exist.
    pub(crate) fn not_found() -> Self {
        Self::new(404, "NOT_FOUND", "notFound", "Requested entity was not found.")
    }

    /// The item exists already.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, "ABORTED", "aborted", message)
    }

    /// There were too many requests.
    pub(crate) fn too_many(retry_after: Option<u64>) -> Self {
        let message = "User-rate limit exceeded.";
        let failure = Self::new(429, "RESOURCE_EXHAUSTED", "rateLimitExceeded", message);
        Self { retry_after, domain: "usageLimits", ..failure }
    }

    /// Returns an error with this status and a matching body, for an injected fault.
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            400 => Self::invalid("Invalid request"),
            401 => Self::unauthenticated(),
            403 => Self {
                domain: "usageLimits",
                ..Self::new(403, "PERMISSION_DENIED", "rateLimitExceeded", "Rate Limit Exceeded")
            },
            404 => Self::not_found(),
            409 => Self::conflict("Conflict"),
            429 => Self::too_many(None),
            503 => Self::new(503, "UNAVAILABLE", "backendError", "The service is currently unavailable."),
            other => Self::new(other, "INTERNAL", "backendError", "Internal error encountered."),
        }
    }

    /// Returns the body of the answer.
    pub(crate) fn body(&self) -> Value {
        let mut first = json!({ "message": self.message, "domain": self.domain, "reason": self.reason });
        if self.status == 401 {
            first["location"] = json!("Authorization");
            first["locationType"] = json!("header");
        }
        json!({ "error": { "code": self.status, "message": self.message, "errors": [first], "status": self.name } })
    }
}
