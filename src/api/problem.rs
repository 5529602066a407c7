//! Answers that something is wrong, as RFC 9457 describes them.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use countersign_core::cause;
use countersign_graph::store::Error;
use serde_json::{Value, json};

use super::{settings::Scope, shape::Fault};

/// An answer that something is wrong.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    slug: &'static str,
    body: Value,
    retry_after: Option<u64>,
}

/// All problems, with their status.
pub const PROBLEMS: &[(&str, u16, &str)] = &[
    ("invalid-request", 400, "The request is not right."),
    ("idempotency-key-missing", 400, "The header Idempotency-Key is missing."),
    ("unauthorized", 401, "The key is missing or not valid."),
    ("missing-scope", 403, "The key may not do this."),
    ("policy-not-allowed", 403, "The key may not name this policy."),
    ("not-found", 404, "There is no such thing."),
    ("already-decided", 409, "It was decided before."),
    ("not-approved", 409, "It is not approved."),
    ("already-claimed", 409, "Its approval was claimed before."),
    ("not-claimed", 409, "Its approval was not claimed."),
    ("digest-mismatch", 409, "The payload is not the one that was approved."),
    ("too-large", 413, "The request is too large."),
    ("unsupported-media-type", 415, "Expected application/json."),
    ("idempotency-key-reused", 422, "The Idempotency-Key was used for another request."),
    ("requester-not-verified", 422, "The policy needs a known person who asks."),
    ("nobody-can-approve", 422, "Nobody can approve this."),
    ("rate-limited", 429, "There were too many requests."),
    ("too-many-open", 429, "Too many requests are open."),
    ("recently-rejected", 429, "The same was rejected a moment ago."),
    ("store-unavailable", 503, "Nothing was stored. Try again."),
];

impl Problem {
    /// Returns a problem of this name, with a sentence about it.
    pub fn new(slug: &'static str, detail: impl Into<String>) -> Self {
        let known = PROBLEMS.iter().find(|(known, ..)| *known == slug);
        let (_, status, title) = known.expect("every problem is in the table");
        let status = StatusCode::from_u16(*status).expect("the table has statuses of HTTP");
        let body = json!({
            "type": format!("urn:countersign:problem:{slug}"), "title": title, "status": status.as_u16(),
            "detail": detail.into(),
        });
        Self { status, slug, body, retry_after: None }
    }

    /// Returns the problem of a request that is not right.
    pub fn invalid(faults: &[Fault]) -> Self {
        let detail = match faults {
            [Fault { pointer, detail }] => format!("{pointer}: {detail}"),
            faults => format!("{} members are not right.", faults.len()),
        };
        let mut problem = Self::new("invalid-request", detail);
        problem.body["errors"] = json!(faults);
        problem
    }

    /// Returns the problem of a key that may not do this.
    pub fn missing_scope(scope: &str) -> Self {
        let mut problem = Self::new("missing-scope", format!("The key does not have the scope {scope}."));
        problem.body["scope"] = json!(scope);
        problem
    }

    /// Adds the state of the request.
    #[must_use]
    pub fn in_state(mut self, state: &str) -> Self {
        self.body["state"] = json!(state);
        self
    }

    /// Adds the seconds after which to try again.
    #[must_use]
    pub fn after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds.max(1));
        self
    }

    /// Returns the name.
    pub fn slug(&self) -> &'static str {
        self.slug
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        tracing::warn!(error = cause::chain(&error), "The API cannot use the store");
        Self::new("store-unavailable", "The store isn't answering. Nothing was stored; try again.").after(2)
    }
}

impl From<Scope> for Problem {
    fn from(scope: Scope) -> Self {
        Self::missing_scope(scope.name())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"countersign\""));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
