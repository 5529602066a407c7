//! The calls to an API of Google: sign-in, retries of reads, and interpretation of the answers.
//!
//! A read is repeated after a transport failure, 429 and 5xx, and not after another refusal. A change is sent once, under
//! a permit; only its caller knows whether it may be repeated. A token that is refused before its time is replaced once.

use std::{fmt, io, sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable as _};
use countersign_core::{
    clock::Clock,
    send_permit::{self, SendPermit},
};
use countersign_services::{
    changes::Changes,
    google::{self, TokenSource},
    http::{self, Answer, Lost, MAX_ANSWER_BYTES},
};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::Semaphore;
use url::Url;

use super::{
    super::account::{MailError, SendError},
    GmailSettings,
    wire::ErrorAnswer,
};

/// The name of the API in spans and metrics.
const SYSTEM: &str = "gmail";
/// The maximum number of reads at a time.
const MAX_READS: usize = 10;
/// The maximum length of a reason that is passed on, in characters.
const MAX_REASON: usize = 300;
/// The reasons with which Google says 403 and means 429.
const RATE_LIMITS: [&str; 2] = ["rateLimitExceeded", "userRateLimitExceeded"];

/// The repetition of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The number of attempts in total.
    pub attempts: usize,
    /// The wait before the second attempt. It is doubled before each further one.
    pub first_wait: Duration,
    /// The maximum wait between attempts.
    pub longest_wait: Duration,
    /// The maximum wait if the server asks for one.
    pub longest_asked: Duration,
}

impl Default for Retry {
    /// Returns 3 attempts with waits from 2 to 10 seconds, or as long as the server asks for, up to a minute.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { attempts: 3, first_wait: seconds(2), longest_wait: seconds(10), longest_asked: seconds(60) }
    }
}

impl Retry {
    fn waits(self) -> ExponentialBuilder {
        ExponentialBuilder::default()
            .with_min_delay(self.first_wait)
            .with_max_delay(self.longest_wait)
            .with_factor(2.0)
            .with_max_times(self.attempts.saturating_sub(1))
    }

    /// Returns the wait after an error, of which the next regular wait is given; `None` after the last attempt.
    fn wait_after(self, error: &MailError, regular: Option<Duration>) -> Option<Duration> {
        match error {
            MailError::Unavailable { retry_after: Some(asked), .. } => {
                regular.map(|_| (*asked).min(self.longest_asked))
            }
            _ => regular,
        }
    }

    /// Returns the wait before a change that was certainly not made is repeated; `None` after the last attempt, or if the
    /// server asks for more time than there is before a person would rather hear of it.
    fn wait_before_change(self, error: &MailError, regular: Option<Duration>) -> Option<Duration> {
        match error {
            MailError::Unavailable { retry_after: Some(asked), .. } => {
                regular.filter(|_| *asked <= self.longest_wait).map(|_| *asked)
            }
            _ => regular,
        }
    }
}

/// The calls to one API.
pub(super) struct Calls {
    base: String,
    client: Client,
    changes: Changes,
    tokens: Arc<TokenSource>,
    timeout: Duration,
    retry: Retry,
    /// The clock.
    pub(super) clock: Arc<dyn Clock>,
    reads: Semaphore,
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").field("base", &self.base).field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

/// A request: the method, the path below the base, the query and the body.
struct Request<'a, B> {
    method: &'a Method,
    path: &'a str,
    query: &'a [(&'a str, &'a str)],
    body: Option<&'a B>,
}

// Derived, these would need a body that can be copied.
impl<B> Clone for Request<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Request<'_, B> {}

impl Calls {
    /// Creates the calls to the mailbox of the person to whom the tokens belong.
    pub(super) fn to_gmail(settings: &GmailSettings) -> io::Result<Self> {
        Self::new(&settings.api, "/gmail/v1/users/me", settings, settings.timeout)
    }

    /// Creates the calls to the API at `api`, below `path`.
    pub(super) fn new(api: &Url, path: &str, settings: &GmailSettings, timeout: Duration) -> io::Result<Self> {
        Ok(Self {
            base: format!("{}{path}", api.as_str().trim_end_matches('/')),
            client: http::client(api, timeout)?,
            changes: Changes::to(SYSTEM, api, timeout, MAX_ANSWER_BYTES)?,
            tokens: settings.tokens.clone(),
            timeout,
            retry: settings.retry,
            clock: settings.clock.clone(),
            reads: Semaphore::new(MAX_READS),
        })
    }

    /// Makes a read, and repeats it if the API cannot be reached or fails.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, MailError> {
        let answer = self.get_within(path, query, MAX_ANSWER_BYTES).await?;
        answer.ok_or_else(|| MailError::Decode { reason: "it is too long".to_owned() })
    }

    /// Makes a read like [`Self::get`]. Returns `None` if the item does not exist.
    pub(super) async fn find<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Option<T>, MailError> {
        match self.get(path, query).await {
            Err(MailError::Refused { status: Some(404), .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Makes a read like [`Self::get`]. Returns `None` if its answer is longer than `longest` bytes.
    pub(super) async fn get_within<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        longest: usize,
    ) -> Result<Option<T>, MailError> {
        let request = Request { method: &Method::GET, path, query, body: None::<&()> };
        let attempt = || self.read_once(request, longest);
        let is_transient = |error: &MailError| matches!(error, MailError::Unavailable { .. });
        let retried = attempt.retry(self.retry.waits()).when(is_transient);
        retried.adjust(|error, regular| self.retry.wait_after(error, regular)).await
    }

    /// Repeats changes that may be repeated: after a rate limit, a refused token or a failure of the server, with the
    /// waits of reads. `unmade` returns the cause of an error after which the whole attempt may be made again; each
    /// request still needs a valid permit.
    pub(super) async fn repeat<T, E, F>(
        &self,
        attempt: impl FnMut() -> F,
        unmade: impl Fn(&E) -> Option<&MailError> + Copy,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let may_pass = move |error: &E| {
            unmade(error).is_some_and(|error| matches!(error, MailError::Unavailable { .. } | MailError::SignIn { .. }))
        };
        let wait = move |error: &E, regular: Option<Duration>| {
            unmade(error).and_then(|error| self.retry.wait_before_change(error, regular))
        };
        attempt.retry(self.retry.waits()).when(may_pass).adjust(wait).await
    }

    /// Sends a request that reads although it is a POST, once.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, MailError> {
        let request = Request { method: &Method::POST, path, query: &[], body: Some(body) };
        let answer = self.read_once(request, MAX_ANSWER_BYTES).await?;
        answer.ok_or_else(|| MailError::Decode { reason: "it is too long".to_owned() })
    }

    /// Sends a change, once, under a permit.
    ///
    /// A refused token is replaced for the next call, and nothing is sent again; see [`Self::repeat`].
    pub(super) async fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &(impl Serialize + Sync),
        permit: &SendPermit,
    ) -> Result<T, SendError> {
        self.change_by(Request { method: &method, path, query: &[], body: Some(body) }, permit).await
    }

    /// Deletes something, once, under a permit.
    pub(super) async fn delete<T: DeserializeOwned>(&self, path: &str, permit: &SendPermit) -> Result<T, SendError> {
        self.change_by(Request { method: &Method::DELETE, path, query: &[], body: None::<&()> }, permit).await
    }

    async fn change_by<T: DeserializeOwned, B: Serialize + Sync>(
        &self,
        request: Request<'_, B>,
        permit: &SendPermit,
    ) -> Result<T, SendError> {
        let token = self.tokens.token().await.map_err(|error| SendError::NotSent(no_token(error)))?;
        let answer = match self.changes.send(self.request(request, &token), permit).await {
            Ok(answer) => answer,
            Err(Lost::NotSent { reason }) => return Err(SendError::NotSent(unavailable(reason))),
            Err(Lost::RunOut) => return Err(SendError::NotSent(MailError::RunOut)),
            Err(Lost::NoAnswer { reason, .. } | Lost::TooLong { reason }) => {
                return Err(SendError::Unknown { detail: reason });
            }
        };
        if answer.status == StatusCode::UNAUTHORIZED
            && let Err(error) = self.tokens.replacement_for(&token).await
        {
            tracing::warn!(%error, "Cannot replace a refused token");
        }
        if answer.status.is_success() {
            self.tokens.note_accepted();
        }
        changed(&answer)
    }

    /// Returns the permit of the current work, or one for a single call. Only for changes that may be made twice.
    pub(super) fn any_permit(&self) -> SendPermit {
        send_permit::current().unwrap_or_else(|| SendPermit::new(self.clock.clone(), self.timeout))
    }

    async fn read_once<T: DeserializeOwned, B: Serialize + Sync>(
        &self,
        request: Request<'_, B>,
        longest: usize,
    ) -> Result<Option<T>, MailError> {
        let _seat = self.reads.acquire().await.map_err(|_| unavailable("it is closed"))?;
        let token = self.tokens.token().await.map_err(no_token)?;
        match self.read_with(request, &token, longest).await {
            Err(MailError::SignIn { reason }) => match self.tokens.replacement_for(&token).await.map_err(no_token)? {
                Some(token) => self.read_with(request, &token, longest).await,
                None => Err(MailError::SignIn { reason }),
            },
            answer => answer,
        }
    }

    async fn read_with<T: DeserializeOwned, B: Serialize + Sync>(
        &self,
        request: Request<'_, B>,
        token: &SecretString,
        longest: usize,
    ) -> Result<Option<T>, MailError> {
        match http::send(SYSTEM, self.request(request, token), longest).await {
            Ok(answer) if answer.status.is_success() => {
                self.tokens.note_accepted();
                parsed(&answer).map(Some)
            }
            Ok(answer) => Err(refused(&answer)),
            Err(Lost::TooLong { .. }) => Ok(None),
            Err(Lost::NotSent { reason } | Lost::NoAnswer { reason, .. }) => Err(unavailable(reason)),
            Err(Lost::RunOut) => Err(MailError::RunOut),
        }
    }

    fn request<B: Serialize + Sync>(&self, request: Request<'_, B>, token: &SecretString) -> RequestBuilder {
        let Request { method, path, query, body } = request;
        let mut built = self.client.request(method.clone(), format!("{}{path}", self.base));
        if !query.is_empty() {
            built = built.query(query);
        }
        if let Some(body) = body {
            built = built.json(body);
        }
        built.bearer_auth(token.expose_secret())
    }
}

/// Returns the error for a call without an answer.
pub(super) fn unavailable(reason: impl Into<String>) -> MailError {
    MailError::Unavailable { reason: reason.into(), retry_after: None }
}

/// Returns the error of a failed change, where it does not matter whether it was made.
pub(super) fn either_way(error: SendError) -> MailError {
    match error {
        SendError::NotSent(error) | SendError::Refused(error) => error,
        SendError::Unknown { detail } => unavailable(detail),
    }
}

fn no_token(error: google::Error) -> MailError {
    match error {
        google::Error::Refused { reason } => MailError::SignIn { reason },
        error @ google::Error::Unreachable { .. } => unavailable(error.to_string()),
    }
}

fn parsed<T: DeserializeOwned>(answer: &Answer) -> Result<T, MailError> {
    // The error of the parser may quote the answer.
    serde_json::from_slice(&answer.body).map_err(|error| MailError::Decode {
        reason: match error.is_data() {
            true => "a field is missing or has another type".to_owned(),
            false => "it is not JSON".to_owned(),
        },
    })
}

/// Returns the result of a change.
fn changed<T: DeserializeOwned>(answer: &Answer) -> Result<T, SendError> {
    if answer.status.is_success() {
        // A deletion has no body.
        let parsed = if answer.body.is_empty() { from_empty() } else { parsed(answer) };
        return parsed.map_err(|error| SendError::Unknown { detail: error.to_string() });
    }
    match refused(answer) {
        error @ MailError::Refused { .. } => Err(SendError::Refused(error)),
        error @ MailError::SignIn { .. } => Err(SendError::NotSent(error)),
        error if is_rate_limit(answer) => Err(SendError::NotSent(error)),
        MailError::Unavailable { reason, .. } => Err(SendError::Unknown { detail: reason }),
        error @ (MailError::Decode { .. } | MailError::RunOut) => Err(SendError::Unknown { detail: error.to_string() }),
    }
}

fn from_empty<T: DeserializeOwned>() -> Result<T, MailError> {
    serde_json::from_str("{}").map_err(|_| MailError::Decode { reason: "it is empty".to_owned() })
}

/// Returns the error that an answer reports.
fn refused(answer: &Answer) -> MailError {
    let status = answer.status;
    tracing::info!(http.status = status.as_u16(), "Gmail answered with an error");
    let reason = reason(answer);
    if is_rate_limit(answer) {
        return MailError::Unavailable { reason, retry_after: answer.retry_after };
    }
    match status {
        StatusCode::UNAUTHORIZED => MailError::SignIn { reason },
        StatusCode::REQUEST_TIMEOUT => unavailable(reason),
        _ if status.is_server_error() => MailError::Unavailable { reason, retry_after: answer.retry_after },
        _ => MailError::Refused { status: Some(status.as_u16()), reason },
    }
}

fn is_rate_limit(answer: &Answer) -> bool {
    match answer.status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::FORBIDDEN => {
            let error = serde_json::from_slice::<ErrorAnswer>(&answer.body).unwrap_or_default().error;
            error.errors.iter().any(|detail| RATE_LIMITS.contains(&detail.reason.as_str()))
        }
        _ => false,
    }
}

/// Returns the message of an error on one line, without addresses, which some messages contain.
fn reason(answer: &Answer) -> String {
    let error = serde_json::from_slice::<ErrorAnswer>(&answer.body).unwrap_or_default().error;
    let words = error.message.split_whitespace().map(|word| if word.contains('@') { "…" } else { word });
    let message: String = words.collect::<Vec<_>>().join(" ").chars().take(MAX_REASON).collect();
    let status = answer.status.as_u16();
    if message.is_empty() { format!("it answered {status}") } else { format!("{message} ({status})") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answer(status: u16, body: &Value) -> Answer {
        let retry_after = (status == 429).then_some(Duration::from_secs(7));
        let status = StatusCode::from_u16(status).unwrap();
        Answer { status, body: body.to_string().into(), request_id: None, retry_after }
    }

    fn error(message: &str, reason: &str) -> Value {
        json!({ "error": { "code": 0, "message": message, "errors": [{ "reason": reason }], "status": "X" } })
    }

    #[test]
    fn a_refusal_is_told_apart_from_what_may_pass() {
        let read = |status, body: &Value| refused(&answer(status, body));
        let gone = read(404, &error("Requested entity was not found.", "notFound"));
        assert_eq!(gone.to_string(), "the mail server refused: Requested entity was not found. (404)");
        assert!(matches!(read(503, &json!("…")), MailError::Unavailable { retry_after: None, .. }));
        let limited = read(429, &error("User-rate limit exceeded.", "rateLimitExceeded"));
        assert!(matches!(limited, MailError::Unavailable { retry_after: Some(_), .. }));
        let disguised = read(403, &error("Rate Limit Exceeded", "userRateLimitExceeded"));
        assert!(matches!(disguised, MailError::Unavailable { .. }));
        let scope = read(403, &error("Request had insufficient authentication scopes.", "insufficientPermissions"));
        assert!(matches!(scope, MailError::Refused { status: Some(403), .. }));
    }

    #[test]
    fn a_change_is_unknown_only_if_it_may_have_been_made() {
        let change = |status| changed::<Value>(&answer(status, &error("No", "x"))).unwrap_err();
        assert!(matches!(change(500), SendError::Unknown { .. }));
        assert!(matches!(change(504), SendError::Unknown { .. }));
        assert!(matches!(change(408), SendError::Unknown { .. }));
        assert!(matches!(change(429), SendError::NotSent(MailError::Unavailable { .. })));
        assert!(matches!(change(401), SendError::NotSent(MailError::SignIn { .. })));
        assert!(matches!(change(400), SendError::Refused(MailError::Refused { status: Some(400), .. })));
        let unreadable = Answer { body: b"<html>".to_vec(), ..answer(200, &json!({})) };
        assert!(matches!(changed::<Value>(&unreadable), Err(SendError::Unknown { .. })));
    }

    #[test]
    fn addresses_in_messages_are_left_out() {
        let denied = answer(403, &error("Delegation denied for ana@example.com", "forbidden"));
        assert_eq!(reason(&denied), "Delegation denied for … (403)");
    }

    #[test]
    fn the_server_may_ask_for_a_wait_of_a_minute_at_most() {
        let (retry, regular) = (Retry::default(), Some(Duration::from_secs(2)));
        let asked =
            |seconds| MailError::Unavailable { reason: String::new(), retry_after: Some(Duration::from_secs(seconds)) };
        assert_eq!(retry.wait_after(&asked(7), regular), Some(Duration::from_secs(7)));
        assert_eq!(retry.wait_after(&asked(3600), regular), Some(Duration::from_secs(60)));
        assert_eq!(retry.wait_after(&unavailable("x"), regular), regular);
        assert_eq!(retry.wait_after(&asked(7), None), None, "that was the last attempt");
    }
}
