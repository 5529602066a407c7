//! Google's sign-in for programs: obtains access tokens, valid for an hour, with the key file of a service account or
//! with the refresh token of a person.
//!
//! [`grant`] is what is exchanged for a token: an assertion (RFC 7523), signed by [`key`], or a refresh token (RFC 6749,
//! 6). [`TokenSource`] does so once for all concurrent callers: some minutes before the current token expires, and when
//! a service refuses a token early. While the current token is valid, a failed renewal does no harm. Keys and tokens are
//! never printed or logged.

mod grant;
mod key;

use std::{
    collections::VecDeque,
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use countersign_core::clock::{Clock, Timestamp};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::sync::Mutex;
use url::Url;

use self::grant::Grant;
pub use self::{
    grant::{RefreshError, RefreshToken},
    key::KeyError,
};
use super::http::{self, Answer, Lost};

/// The time before its expiry at which a token is renewed, if its lifetime is long enough.
const RENEW_BEFORE: Duration = Duration::from_secs(5 * 60);
/// The time between attempts to renew a token that is still valid.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// The lifetime of a token if the endpoint states none.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(3600);
/// The maximum size of an answer, in bytes. A token has a few kB.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;
/// The maximum number of tokens that replace refused ones within [`REPLACEMENTS_WITHIN`]. Without a limit, a service that
/// accepts no token would have another one issued for each call.
const MAX_REPLACEMENTS: usize = 4;
/// The time in which replacements are counted.
const REPLACEMENTS_WITHIN: Duration = Duration::from_secs(60);

/// The reason why there is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The endpoint refuses to issue a token, and would refuse again.
    #[error("the sign-in was refused: {reason}")]
    Refused {
        /// The error of the endpoint, with a hint.
        reason: String,
    },
    /// There is no usable answer from the endpoint.
    #[error("no token from {endpoint}: {reason}")]
    Unreachable {
        /// The host of the endpoint.
        endpoint: String,
        /// The observed failure.
        reason: String,
    },
}

/// A source of access tokens, with the current token.
pub struct TokenSource {
    grant: Grant,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    /// The number of finished attempts, so that a caller that waited for one does not start another.
    ended: AtomicU64,
    /// True if a service accepted a token since one was replaced last.
    was_accepted: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    token: Option<Minted>,
    /// The last failure and the number of its attempt.
    failed: Option<(u64, Error)>,
    /// The times of the latest attempts to replace a refused token, oldest first.
    replaced: VecDeque<Timestamp>,
}

impl State {
    /// Notes an attempt to replace a refused token. Returns false if there were too many of them lately.
    fn may_replace(&mut self, now: Timestamp) -> bool {
        self.replaced.retain(|at| now.since(*at) < REPLACEMENTS_WITHIN);
        let may = self.replaced.len() < MAX_REPLACEMENTS;
        if may {
            self.replaced.push_back(now);
        }
        may
    }
}

/// An access token.
#[derive(Clone)]
struct Minted {
    token: SecretString,
    renew_at: Timestamp,
    expires_at: Timestamp,
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSource").field("grant", &self.grant).finish_non_exhaustive()
    }
}

impl TokenSource {
    /// Reads the key file of a service account, without sending a request. `token_uri` replaces the endpoint in the
    /// file.
    ///
    /// # Errors
    ///
    /// [`KeyError`], which describes the fault without the contents of the file.
    pub fn service_account(
        path: &Path,
        token_uri: Option<Url>,
        timeout: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, KeyError> {
        Ok(Self::new(Grant::read(path, token_uri)?, timeout, clock))
    }

    /// Uses the refresh token of a person, without sending a request.
    ///
    /// # Errors
    ///
    /// [`RefreshError`] if the endpoint cannot be used.
    pub fn refresh_token(
        refresh: RefreshToken,
        timeout: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RefreshError> {
        Ok(Self::new(Grant::refresh(refresh)?, timeout, clock))
    }

    /// Limits the tokens of a service account to these scopes, and lets it act for a person of its domain
    /// (“domain-wide delegation”). A refresh token always acts for its person, with the scopes that the person granted.
    #[must_use]
    pub fn acting_for(mut self, person: &str, scopes: &[&str]) -> Self {
        self.grant.act_for(person, scopes);
        self
    }

    fn new(grant: Grant, timeout: Duration, clock: Arc<dyn Clock>) -> Self {
        let (ended, was_accepted, state) = (AtomicU64::new(0), AtomicBool::new(false), Mutex::default());
        Self { grant, timeout, clock, ended, was_accepted, state }
    }

    /// Returns the name by which Google knows the holder of the credentials: the e-mail address of a service account,
    /// or the id of the OAuth client.
    pub fn account(&self) -> &str {
        self.grant.account()
    }

    /// Returns the host of the token endpoint.
    pub fn endpoint(&self) -> &str {
        self.grant.endpoint().host_str().unwrap_or_default()
    }

    /// Returns a valid token. It is renewed some minutes before it expires.
    ///
    /// # Errors
    ///
    /// [`Error`] if there is none and none can be obtained.
    pub async fn token(&self) -> Result<SecretString, Error> {
        let before = self.ended.load(Ordering::SeqCst);
        let mut state = self.state.lock().await;
        let now = self.clock.now();
        if let Some(minted) = state.token.as_mut().filter(|minted| now < minted.expires_at) {
            if now < minted.renew_at {
                return Ok(minted.token.clone());
            }
            minted.renew_at = now + RETRY_AFTER;
            let current = minted.token.clone();
            return Ok(match self.mint(&mut state).await {
                Ok(token) => token,
                Err(error) => {
                    tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot renew the access token yet");
                    current
                }
            });
        }
        match &state.failed {
            Some((number, error)) if *number > before => Err(error.clone()),
            _ => self.mint(&mut state).await,
        }
    }

    /// Notes that a service accepted a token, so that a later refusal is no reason to wait.
    pub fn note_accepted(&self) {
        self.was_accepted.store(true, Ordering::Relaxed);
    }

    /// Returns a replacement for a token that was refused early, at once; `None` if several were replaced within the last
    /// minute and none of them was accepted, so that another would not help.
    ///
    /// # Errors
    ///
    /// [`Error`] if no token can be obtained.
    pub async fn replacement_for(&self, refused: &SecretString) -> Result<Option<SecretString>, Error> {
        let mut state = self.state.lock().await;
        let is_other = |minted: &&Minted| minted.token.expose_secret() != refused.expose_secret();
        if let Some(newer) = state.token.as_ref().filter(is_other) {
            return Ok(Some(newer.token.clone()));
        }
        if self.was_accepted.swap(false, Ordering::Relaxed) {
            state.replaced.clear();
        }
        if !state.may_replace(self.clock.now()) {
            return Ok(None);
        }
        self.mint(&mut state).await.map(Some)
    }

    /// Obtains a new token, even if the current one is valid.
    async fn mint(&self, state: &mut State) -> Result<SecretString, Error> {
        let asked = tokio::time::timeout(self.timeout, self.ask()).await;
        let answer = asked.unwrap_or_else(|_| Err(self.unreachable("no answer in time")));
        let number = self.ended.fetch_add(1, Ordering::SeqCst) + 1;
        match answer {
            Ok((token, life)) => {
                let at = self.clock.now();
                let renew_at = at + life.saturating_sub(RENEW_BEFORE.min(life / 4));
                tracing::info!(life_s = life.as_secs(), "Signed in to Google");
                state.token = Some(Minted { token: token.clone(), renew_at, expires_at: at + life });
                state.failed = None;
                Ok(token)
            }
            Err(error) => {
                state.failed = Some((number, error.clone()));
                Err(error)
            }
        }
    }

    /// Exchanges the credentials for a token and its lifetime.
    async fn ask(&self) -> Result<(SecretString, Duration), Error> {
        // Tokens are fetched about once an hour, so the client and its connection are not kept.
        let client = http::client(self.grant.endpoint(), self.timeout);
        let client = client.map_err(|error| self.unreachable(&error.to_string()))?;
        let request = self.grant.request(&client).ok_or_else(|| self.unreachable("the assertion cannot be signed"))?;
        match http::send_unrecorded("google", request, MAX_ANSWER_BYTES).await {
            Ok(answer) => self.token_in(&answer),
            Err(Lost::NotSent { reason } | Lost::NoAnswer { reason, .. }) => Err(self.unreachable(&reason)),
            Err(Lost::TooLong { .. }) => Err(self.unreachable("its answer is too long")),
            Err(Lost::RunOut) => Err(self.unreachable("nothing was sent")),
        }
    }

    /// Returns the token in an answer and its lifetime.
    fn token_in(&self, answer: &Answer) -> Result<(SecretString, Duration), Error> {
        match serde_json::from_slice(&answer.body) {
            Ok(TokenAnswer { error: Some(code), error_description, .. }) => {
                let reason = self.refused(&code, error_description.as_deref().unwrap_or_default());
                // An internal error of the server says nothing about the account.
                Err(if answer.status.is_server_error() { self.unreachable(&reason) } else { Error::Refused { reason } })
            }
            Ok(TokenAnswer { token_type: Some(other), .. }) if !other.eq_ignore_ascii_case("bearer") => {
                Err(self.unreachable("its answer holds a token of another kind"))
            }
            Ok(TokenAnswer { access_token: Some(token), expires_in, .. }) if !token.trim().is_empty() => {
                let seconds = |left: i64| Duration::from_secs(u64::try_from(left).unwrap_or(0));
                Ok((SecretString::from(token), expires_in.map_or(DEFAULT_LIFETIME, seconds)))
            }
            Ok(TokenAnswer { access_token: Some(_), .. }) => Err(self.unreachable("its answer holds no token")),
            Ok(_) | Err(_) => Err(self.unreachable("that address isn't a token endpoint")),
        }
    }

    /// Describes a refusal, with a hint at the likely cause.
    fn refused(&self, code: &str, description: &str) -> String {
        let description: String = description.trim().trim_end_matches('.').chars().take(200).collect();
        let hint = self.grant.hint(code, &description);
        if description.is_empty() { format!("{code}{hint}") } else { format!("{description} ({code}){hint}") }
    }

    fn unreachable(&self, reason: &str) -> Error {
        Error::Unreachable { endpoint: self.endpoint().to_owned(), reason: reason.to_owned() }
    }
}

/// The answer of a token endpoint: a token (RFC 6749, 5.1), or an error (5.2).
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: Option<String>,
    token_type: Option<String>,
    expires_in: Option<i64>,
    error: Option<String>,
    error_description: Option<String>,
}
