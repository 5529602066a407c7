//! Calls of a service that answers in JSON: signing in, retries of reads, and the meaning of the answers.
//!
//! A read is tried three times. A change is sent once, on its own connection and under the permit of the action that it
//! belongs to ([`countersign_core::send_permit`]). Error messages of services are not passed on, since they may repeat
//! addresses; their error codes are.

use std::{sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable as _};
use countersign_core::send_permit;
use countersign_services::{
    changes::Changes,
    google::{self, TokenSource},
    http::{self, Answer, Lost},
};
use reqwest::{Client, Method, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::error::ContextError;

/// The maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// The number of attempts of a read.
const ATTEMPTS: usize = 3;

/// The longest wait that a service can ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(60);

/// The waits between the attempts of a read.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// The first wait. Each further one is twice as long.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self { first: Duration::from_secs(2), longest: Duration::from_secs(10) }
    }
}

/// The source of the token in `Authorization: Bearer`.
#[derive(Clone, Debug)]
pub(crate) enum Credentials {
    /// The same token for every call.
    Token(SecretString),
    /// Tokens of Google, renewed in time.
    Google(Arc<TokenSource>),
}

impl Credentials {
    async fn token(&self) -> Result<SecretString, google::Error> {
        match self {
            Self::Token(token) => Ok(token.clone()),
            Self::Google(source) => source.token().await,
        }
    }

    /// Returns a new token to replace one that was refused; `None` if there is no other.
    async fn replacement_for(&self, refused: &SecretString) -> Result<Option<SecretString>, google::Error> {
        match self {
            Self::Token(_) => Ok(None),
            Self::Google(source) => source.replacement_for(refused).await,
        }
    }
}

/// A request: the method, the path below the base address, the query and the body.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) query: &'a [(&'a str, String)],
    pub(crate) body: Option<&'a Value>,
}

impl<'a> Call<'a> {
    /// Creates a request without a query and a body.
    pub(crate) fn new(method: &'a Method, path: &'a str) -> Self {
        Self { method, path, query: &[], body: None }
    }
}

/// A client of a service.
#[derive(Debug)]
pub(crate) struct Service {
    what: &'static str,
    base: String,
    client: Client,
    changes: Changes,
    timeout: Duration,
    credentials: Credentials,
    waits: Waits,
}

/// The difference between a read and a change when there is no usable answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Change,
}

impl Service {
    /// Creates a client for the service at `base`, which is called `what` in errors. Makes no call yet.
    ///
    /// # Errors
    ///
    /// [`ContextError::Unavailable`] if TLS is not available on this machine.
    pub(crate) fn new(
        what: &'static str,
        base: &Url,
        credentials: Credentials,
        timeout: Duration,
        waits: Waits,
    ) -> Result<Self, ContextError> {
        let client = http::client(base, timeout).map_err(|error| ContextError::unavailable(what, error.to_string()))?;
        let changes = Changes::to(what, base, timeout, MAX_ANSWER_BYTES)
            .map_err(|error| ContextError::unavailable(what, error.to_string()))?;
        let base = base.as_str().trim_end_matches('/').to_owned();
        Ok(Self { what, base, client, changes, timeout, credentials, waits })
    }

    /// Makes a read, and repeats it if the service is not available.
    ///
    /// # Errors
    ///
    /// [`ContextError`], by the answer of the last attempt.
    pub(crate) async fn read<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, ContextError> {
        let waits = ExponentialBuilder::default()
            .with_min_delay(self.waits.first)
            .with_max_delay(self.waits.longest)
            .with_factor(2.0)
            .with_max_times(ATTEMPTS - 1);
        let attempt = || self.attempt(call);
        let attempts = attempt.retry(waits).when(|error| matches!(error, ContextError::Unavailable { .. }));
        attempts.adjust(|error, wait| wait.map(|wait| asked_wait(error).unwrap_or(wait))).await
    }

    /// Makes one attempt of a read. A token that is refused early is replaced once.
    async fn attempt<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, ContextError> {
        let token = self.token().await?;
        let answer = http::send(self.what, self.request(call, &token), MAX_ANSWER_BYTES).await;
        if !matches!(&answer, Ok(answer) if answer.status == StatusCode::UNAUTHORIZED) {
            return self.understand(Kind::Read, answer);
        }
        match self.credentials.replacement_for(&token).await.map_err(|error| self.not_signed_in(error))? {
            None => self.understand(Kind::Read, answer),
            Some(token) => {
                let answer = http::send(self.what, self.request(call, &token), MAX_ANSWER_BYTES).await;
                self.understand(Kind::Read, answer)
            }
        }
    }

    /// Sends a change, once, under the permit of the current action.
    ///
    /// # Errors
    ///
    /// [`ContextError::RunOut`] if there is no valid permit; [`ContextError::NoAnswer`] if the outcome is not known.
    pub(crate) async fn change<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, ContextError> {
        let permit = send_permit::current().ok_or(ContextError::RunOut)?;
        let token = self.token().await?;
        let answer = self.changes.send(self.request(call, &token), &permit).await;
        if matches!(&answer, Ok(answer) if answer.status == StatusCode::UNAUTHORIZED) {
            // The next call uses the new token. This one is not sent again.
            if let Err(error) = self.credentials.replacement_for(&token).await {
                tracing::warn!(%error, "Cannot replace a refused token");
            }
        }
        self.understand(Kind::Change, answer)
    }

    async fn token(&self) -> Result<SecretString, ContextError> {
        let token = tokio::time::timeout(self.timeout, self.credentials.token()).await;
        let late = |_| Err(ContextError::unavailable(self.what, "no token in time"));
        token.map_or_else(late, |token| token.map_err(|error| self.not_signed_in(error)))
    }

    fn not_signed_in(&self, error: google::Error) -> ContextError {
        match error {
            google::Error::Refused { .. } => ContextError::SignIn { what: self.what, reason: error.to_string() },
            google::Error::Unreachable { .. } => ContextError::unavailable(self.what, error.to_string()),
        }
    }

    fn request(&self, call: Call<'_>, token: &SecretString) -> reqwest::RequestBuilder {
        let Call { method, path, query, body } = call;
        let request = self.client.request(method.clone(), format!("{}{path}", self.base));
        let request = request.query(query).bearer_auth(token.expose_secret());
        match body {
            Some(body) => request.json(body),
            None => request,
        }
    }

    /// Returns the body of a successful answer, or the error.
    fn understand<T: DeserializeOwned>(&self, kind: Kind, answer: Result<Answer, Lost>) -> Result<T, ContextError> {
        let what = self.what;
        let unknown = |reason: String| match kind {
            Kind::Read => ContextError::unavailable(what, reason),
            Kind::Change => ContextError::NoAnswer { what, reason },
        };
        let answer = answer.map_err(|lost| match lost {
            Lost::NotSent { reason } => ContextError::unavailable(what, reason),
            Lost::NoAnswer { reason, .. } => unknown(reason),
            Lost::TooLong { reason } if kind == Kind::Read => ContextError::decode(what, reason),
            Lost::TooLong { reason } => unknown(reason),
            Lost::RunOut => ContextError::RunOut,
        })?;
        let status = answer.status;
        if status.is_success() {
            return serde_json::from_slice(&answer.body).map_err(|error| match kind {
                // The error of a body that is no JSON may repeat parts of it, the others only name fields.
                Kind::Read if error.is_data() => ContextError::decode(what, "a field is missing or has another type"),
                Kind::Read => ContextError::decode(what, "not JSON"),
                Kind::Change => unknown("its answer cannot be read".to_owned()),
            });
        }
        let code = error_code(&answer.body);
        let reason = match &code {
            Some(code) => format!("status {}, {code}", status.as_u16()),
            None => format!("status {}", status.as_u16()),
        };
        // Google also reports a limit with status 403.
        let says_limit = code.as_ref().is_some_and(|code| code.to_ascii_lowercase().ends_with("ratelimitexceeded"));
        let is_limit = status == StatusCode::TOO_MANY_REQUESTS || (status == StatusCode::FORBIDDEN && says_limit);
        Err(match status {
            StatusCode::UNAUTHORIZED => ContextError::SignIn { what, reason },
            _ if is_limit && kind == Kind::Read => {
                ContextError::Unavailable { what, reason, retry_after: answer.retry_after }
            }
            StatusCode::REQUEST_TIMEOUT => unknown(reason),
            _ if status.is_server_error() => unknown(reason),
            _ => ContextError::Refused { what, status: Some(status.as_u16()), reason },
        })
    }
}

/// Returns the wait that the service asked for, within limits.
fn asked_wait(error: &ContextError) -> Option<Duration> {
    match error {
        ContextError::Unavailable { retry_after, .. } => retry_after.map(|wait| wait.min(LONGEST_ASKED)),
        _ => None,
    }
}

/// Returns the error code in a body: Google's `error.errors[0].reason` or `error.status`, or HubSpot's `category`.
fn error_code(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let places = [&body["error"]["errors"][0]["reason"], &body["error"]["status"], &body["category"]];
    let code = places.into_iter().find_map(Value::as_str)?;
    let is_code = code.len() <= 64 && code.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_code.then(|| code.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(kind: Kind, status: u16, body: &str) -> ContextError {
        let base = Url::parse("http://127.0.0.1:1/").unwrap();
        let credentials = Credentials::Token("t".to_owned().into());
        let service = Service::new("X", &base, credentials, Duration::from_secs(1), Waits::default()).unwrap();
        let status = StatusCode::from_u16(status).unwrap();
        let answer = Answer { status, body: body.as_bytes().to_vec(), request_id: None, retry_after: None };
        service.understand::<Vec<u8>>(kind, Ok(answer)).unwrap_err()
    }

    #[test]
    fn only_what_may_pass_is_unavailable() {
        let limit = r#"{"error": {"errors": [{"reason": "userRateLimitExceeded"}], "message": "Ana is too fast"}}"#;
        for (status, body) in [(429, ""), (500, ""), (503, "<html>"), (403, limit), (408, "")] {
            let error = understood(Kind::Read, status, body);
            assert!(matches!(error, ContextError::Unavailable { .. }), "{status}: {error}");
            assert!(!error.to_string().contains("Ana"));
        }
        for (status, body) in
            [(400, ""), (403, r#"{"error": {"status": "PERMISSION_DENIED"}}"#), (404, "[]"), (409, "")]
        {
            let error = understood(Kind::Read, status, body);
            assert!(matches!(error, ContextError::Refused { status: Some(own), .. } if own == status), "{error}");
        }
        assert!(matches!(understood(Kind::Read, 401, ""), ContextError::SignIn { .. }));
        assert!(matches!(understood(Kind::Read, 200, "<html>"), ContextError::Decode { .. }));
    }

    #[test]
    fn the_outcome_of_a_change_is_unknown_after_a_failure_of_the_server() {
        for (status, body) in [(500, ""), (502, "<html>"), (200, "<html>")] {
            let error = understood(Kind::Change, status, body);
            assert!(matches!(error, ContextError::NoAnswer { .. }), "{status}: {error}");
        }
        assert!(matches!(understood(Kind::Change, 429, ""), ContextError::Refused { status: Some(429), .. }));
        assert!(matches!(understood(Kind::Change, 409, ""), ContextError::Refused { status: Some(409), .. }));
    }

    #[test]
    fn a_service_can_ask_for_a_wait_of_a_minute_at_most() {
        let asked =
            |retry_after| asked_wait(&ContextError::Unavailable { what: "X", reason: String::new(), retry_after });
        assert_eq!(asked(None), None);
        assert_eq!(asked(Some(Duration::from_secs(7))), Some(Duration::from_secs(7)));
        assert_eq!(asked(Some(Duration::from_secs(3600))), Some(Duration::from_secs(60)));
    }

    #[test]
    fn a_code_is_no_sentence() {
        assert_eq!(error_code(br#"{"category": "OBJECT_NOT_FOUND"}"#).as_deref(), Some("OBJECT_NOT_FOUND"));
        assert_eq!(error_code(br#"{"category": "ana@example.com is unknown"}"#), None);
        assert_eq!(error_code(b"<html>"), None);
    }
}
