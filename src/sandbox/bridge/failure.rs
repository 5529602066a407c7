//! Error responses in the formats of the bridge: an envelope with a code, or the format of its
//! framework.

use serde_json::{Value, json};

/// An error response.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The code of the envelope.
    pub(crate) code: &'static str,
    /// The message of the envelope.
    pub(crate) message: String,
    field: Option<String>,
    hint: Option<String>,
    issue_code: Option<String>,
    /// The body of an error of the framework, which has no envelope.
    bare: Option<Value>,
}

impl Failure {
    /// An error with an envelope.
    pub(crate) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), field: None, hint: None, issue_code: None, bare: None }
    }

    /// An argument is invalid.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(400, "InvalidInput", message)
    }

    /// The requested item does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, "NotFound", message)
    }

    /// The item exists already.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, "Conflict", message)
    }

    /// The token is missing or invalid. The unexpected code is the bridge's.
    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, "InternalError", message)
    }

    /// The caller's role is not sufficient.
    pub(crate) fn forbidden() -> Self {
        Self::new(403, "Forbidden", "Insufficient permissions")
    }

    /// A critical call is not confirmed.
    pub(crate) fn unconfirmed(message: &str, hint: &str) -> Self {
        Self::new(428, "ConfirmationRequired", message).hint(hint)
    }

    /// Any other error.
    pub(crate) fn internal() -> Self {
        Self::new(500, "InternalError", "Internal server error")
    }

    /// An error of the framework, with a body without an envelope.
    pub(crate) fn bare(status: u16, body: Value) -> Self {
        Self { bare: Some(body), ..Self::new(status, "InvalidInput", "") }
    }

    /// Returns an error with this status and a matching body, for an injected fault.
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            400 => Self::input("Invalid request"),
            401 => Self::unauthorized("Invalid dev token: Signature verification failed."),
            403 => Self::forbidden(),
            404 => Self::not_found("Not found"),
            409 => Self::conflict("The resource is in use"),
            422 => {
                let problem = json!({ "type": "missing", "loc": ["body"], "msg": "Field required", "input": {} });
                Self::bare(422, json!({ "detail": [problem] }))
            }
            428 => Self::unconfirmed("Critical tool call requires explicit confirmation.", ""),
            429 => Self::new(429, "InternalError", "Rate limit exceeded"),
            502 => Self::new(502, "InteropError", "The model engine failed"),
            503 => Self::new(503, "EnvironmentMissing", "The run time of the model engine is absent"),
            504 => Self::new(504, "Timeout", "The model engine did not answer in time"),
            500 => Self::internal(),
            other => Self::new(other, "InternalError", "Internal server error"),
        }
    }

    /// Sets the field with the error.
    #[must_use]
    pub(crate) fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Sets the hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the code of the detail.
    #[must_use]
    pub(crate) fn kind(mut self, code: impl Into<String>) -> Self {
        self.issue_code = Some(code.into());
        self
    }

    /// Returns the details, if there are any.
    pub(crate) fn details(&self) -> Option<Value> {
        if self.field.is_none() && self.hint.is_none() && self.issue_code.is_none() {
            return None;
        }
        let mut detail = json!({ "issue": self.message });
        for (name, value) in [("field", &self.field), ("hint", &self.hint), ("code", &self.issue_code)] {
            if let Some(value) = value {
                detail[name] = json!(value);
            }
        }
        Some(json!([detail]))
    }

    /// Returns the body of the answer.
    pub(crate) fn body(&self, correlation: &str) -> Value {
        if let Some(bare) = &self.bare {
            return bare.clone();
        }
        let mut error = json!({
            "code": self.code, "message": self.message, "correlationId": correlation,
            "retryable": matches!(self.code, "InteropError" | "Timeout"),
        });
        if let Some(details) = self.details() {
            error["details"] = details;
        }
        json!({ "error": error })
    }
}
