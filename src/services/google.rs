//! Google's sign-in for programs: the key file of a service account becomes access tokens that live for an hour.
//!
//! `yup-oauth2` signs the assertion and exchanges it; [`ServiceAccount`] decides when: once for all who ask at the same
//! time, some minutes before the token at hand expires, and again when a service refuses a token before its time. While
//! the token at hand is good, a failed renewal hurts nobody. Neither keys nor tokens are ever printed or logged.
//!
//! The library's own cache is not used: it renews a minute before the end, and for each caller at once. Neither are its
//! connections: it reads an answer to its end, so it is given connections on which every answer has one
//! ([`crate::wire::capped`]).

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::pki_types::{PrivateKeyDer, pem::PemObject as _};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::sync::Mutex;
use url::Url;
use yup_oauth2::{
    CustomHyperClientBuilder, ServiceAccountAuthenticator, ServiceAccountKey, authenticator::Authenticator,
    error::AuthErrorCode,
};

use crate::{
    clock::{Clock, Timestamp},
    this_machine,
    wire::capped::{Capping, TooLong},
};

/// What the tokens may do: everything the account may, which is what a platform asks for.
const SCOPES: [&str; 1] = ["https://www.googleapis.com/auth/cloud-platform"];
/// How long before its end a token is renewed, if it lives long enough for that.
const AHEAD: Duration = Duration::from_secs(5 * 60);
/// How long after a failed renewal the next is tried, while the token at hand is good.
const AGAIN_AFTER: Duration = Duration::from_secs(30);
/// How long a token lives if its endpoint does not say.
const USUAL_LIFE: Duration = Duration::from_secs(3600);
/// No answer is longer, in bytes: a token is a few kB.
const LONGEST: usize = 1024 * 1024;
/// A token that is refused this soon after it replaced a refused one is not the reason.
const HARDLY_USED: Duration = Duration::from_secs(60);

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It cannot be read.
    #[error("cannot read the key file {}", path.display())]
    Unreadable {
        /// Where it should be.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It holds something else.
    #[error("{} is no key file of a Google service account: {reason}", path.display())]
    NotAKey {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it, without its contents.
        reason: String,
    },
}

/// Why there is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The endpoint says no; so it will say again.
    #[error("the sign-in was refused: {reason}")]
    Refused {
        /// Its words, and what they mean.
        reason: String,
    },
    /// The endpoint could not be asked.
    #[error("no token from {endpoint}: {reason}")]
    Unreachable {
        /// Its host.
        endpoint: String,
        /// What was seen.
        reason: String,
    },
}

/// A service account, and the token it has at the moment.
pub struct ServiceAccount {
    key: ServiceAccountKey,
    endpoint: Url,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    /// How many attempts ended, so that who waited for one does not make another.
    ended: AtomicU64,
    state: Mutex<State>,
}

type Connector = Capping<HttpsConnector<HttpConnector>>;
type SignsIn = Authenticator<Connector>;

#[derive(Default)]
struct State {
    authenticator: Option<SignsIn>,
    token: Option<Minted>,
    /// The last failure, and its number among the attempts.
    failed: Option<(u64, Error)>,
}

#[derive(Clone)]
struct Minted {
    token: SecretString,
    at: Timestamp,
    renew_at: Timestamp,
    expires_at: Timestamp,
    /// Whether it took the place of a token that was refused.
    after_refusal: bool,
}

impl fmt::Debug for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, endpoint, .. } = self;
        f.debug_struct("ServiceAccount")
            .field("account", &key.client_email)
            .field("endpoint", &endpoint.as_str())
            .finish_non_exhaustive()
    }
}

impl ServiceAccount {
    /// Reads a key file; asks nobody yet. `token_uri` takes the place of the endpoint that the file names.
    ///
    /// # Errors
    ///
    /// [`KeyError`], which says what is wrong with the file and never what is in it.
    pub fn read(
        path: &Path,
        token_uri: Option<Url>,
        timeout: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, KeyError> {
        let text = std::fs::read(path);
        let text = text.map_err(|source| KeyError::Unreadable { path: path.to_owned(), source })?;
        let wrong = |reason| KeyError::NotAKey { path: path.to_owned(), reason };
        let (key, endpoint) = understand(&text, token_uri).map_err(wrong)?;
        let (ended, state) = (AtomicU64::new(0), Mutex::default());
        Ok(Self { key, endpoint, timeout, clock, ended, state })
    }

    /// The account's e-mail address.
    pub fn account(&self) -> &str {
        &self.key.client_email
    }

    /// Where its tokens come from.
    pub fn endpoint(&self) -> &str {
        self.endpoint.host_str().unwrap_or_default()
    }

    /// A token that is good for some minutes at least.
    ///
    /// # Errors
    ///
    /// [`Error`], if there is none and none can be had.
    pub async fn token(&self) -> Result<SecretString, Error> {
        let before = self.ended.load(Ordering::SeqCst);
        let mut state = self.state.lock().await;
        let now = self.clock.now();
        if let Some(minted) = state.token.as_mut().filter(|minted| now < minted.expires_at) {
            if now < minted.renew_at {
                return Ok(minted.token.clone());
            }
            minted.renew_at = now + AGAIN_AFTER;
            let good = minted.token.clone();
            return Ok(match self.mint(&mut state, false).await {
                Ok(token) => token,
                Err(error) => {
                    tracing::warn!(error = crate::cause::chain(&error), "Cannot renew the access token yet");
                    good
                }
            });
        }
        match &state.failed {
            Some((number, error)) if *number > before => Err(error.clone()),
            _ => self.mint(&mut state, false).await,
        }
    }

    /// Another token in place of one that was refused before its time; none if that would be no better.
    ///
    /// # Errors
    ///
    /// [`Error`], if none can be had.
    pub async fn instead_of(&self, refused: &SecretString) -> Result<Option<SecretString>, Error> {
        let mut state = self.state.lock().await;
        let now = self.clock.now();
        match &state.token {
            Some(minted) if minted.token.expose_secret() != refused.expose_secret() => Ok(Some(minted.token.clone())),
            Some(minted) if minted.after_refusal && now.since(minted.at) < HARDLY_USED => Ok(None),
            _ => self.mint(&mut state, true).await.map(Some),
        }
    }

    /// Asks for a token, whatever is at hand.
    async fn mint(&self, state: &mut State, after_refusal: bool) -> Result<SecretString, Error> {
        let asked = tokio::time::timeout(self.timeout, self.ask(&mut state.authenticator)).await;
        let answer = asked.unwrap_or_else(|_| Err(self.unreachable("no answer in time")));
        let number = self.ended.fetch_add(1, Ordering::SeqCst) + 1;
        match answer {
            Ok((token, life)) => {
                let at = self.clock.now();
                let renew_at = at + life.saturating_sub(AHEAD.min(life / 4));
                tracing::info!(life_s = life.as_secs(), "Signed in as a service account");
                state.token = Some(Minted { token: token.clone(), at, renew_at, expires_at: at + life, after_refusal });
                state.failed = None;
                Ok(token)
            }
            Err(error) => {
                state.failed = Some((number, error.clone()));
                Err(error)
            }
        }
    }

    /// Signs an assertion and exchanges it for a token and how long it lives.
    async fn ask(&self, authenticator: &mut Option<SignsIn>) -> Result<(SecretString, Duration), Error> {
        if authenticator.is_none() {
            let client =
                CustomHyperClientBuilder::from(client().map_err(|error| self.unreachable(&error.to_string()))?);
            let built = ServiceAccountAuthenticator::with_client(self.key.clone(), client).build().await;
            *authenticator = Some(built.map_err(|error| self.unreachable(&error.to_string()))?);
        }
        let authenticator = authenticator.as_ref().expect("it was built just now");
        let answer = authenticator.force_refreshed_token(&SCOPES).await.map_err(|error| self.means(&error))?;
        let token = answer.token().filter(|token| !token.trim().is_empty());
        let token = token.ok_or_else(|| self.unreachable("its answer holds no token"))?;
        let now = crate::clock::SystemClock.now().seconds(); // the library's clock
        let left = |end: i64| Duration::from_secs(u64::try_from(end - now).unwrap_or(0));
        let life = answer.expiration_time().map_or(USUAL_LIFE, |end| left(end.unix_timestamp()));
        Ok((SecretString::from(token), life))
    }

    fn means(&self, error: &yup_oauth2::Error) -> Error {
        match error {
            yup_oauth2::Error::AuthError(refusal) => {
                let said = refusal.error_description.as_deref().unwrap_or_default();
                Error::Refused { reason: refused(&refusal.error, said) }
            }
            yup_oauth2::Error::JSONError(_) | yup_oauth2::Error::MissingAccessToken => {
                self.unreachable("what answers there is no token endpoint")
            }
            error if TooLong::in_chain(error).is_some() => self.unreachable("its answer is too long"),
            error => self.unreachable(&innermost(error)),
        }
    }

    fn unreachable(&self, reason: &str) -> Error {
        Error::Unreachable { endpoint: self.endpoint().to_owned(), reason: reason.to_owned() }
    }
}

/// A client that trusts what the machine trusts, keeps no connection, and reads no answer further than it should.
fn client() -> std::io::Result<Client<Connector, String>> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    let https = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(rustls::crypto::ring::default_provider())?
        .https_or_http()
        .enable_http1()
        .wrap_connector(http);
    let capped = Capping::new(https, LONGEST);
    Ok(Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(capped))
}

/// The key in a file, and its endpoint; or what is wrong, without a word of the contents.
fn understand(text: &[u8], token_uri: Option<Url>) -> Result<(ServiceAccountKey, Url), String> {
    let json: Value = serde_json::from_slice(text).map_err(|_| "it is not JSON".to_owned())?;
    match json["type"].as_str() {
        Some("service_account") => {}
        Some("authorized_user") => return Err("it is the sign-in of a person".to_owned()),
        _ => return Err("its `type` is not `service_account`".to_owned()),
    }
    for field in ["client_email", "private_key"] {
        if json[field].as_str().is_none_or(|text| text.trim().is_empty()) {
            return Err(format!("it has no `{field}`"));
        }
    }
    let named = || json["token_uri"].as_str().and_then(|uri| Url::parse(uri).ok());
    let endpoint = token_uri.or_else(named).filter(|uri| matches!(uri.scheme(), "https" | "http"));
    let endpoint = endpoint.ok_or("its `token_uri` is no address")?;
    if endpoint.scheme() == "http" && !this_machine::is_named_by(&endpoint) {
        return Err("its `token_uri` begins with http://; tokens are fetched over https:// only".to_owned());
    }
    let text = |field: &str| json[field].as_str().map(str::to_owned);
    let key = ServiceAccountKey {
        key_type: text("type"),
        project_id: text("project_id"),
        private_key_id: text("private_key_id"),
        private_key: text("private_key").unwrap_or_default(),
        client_email: text("client_email").unwrap_or_default(),
        client_id: text("client_id"),
        auth_uri: None,
        token_uri: endpoint.to_string(),
        auth_provider_x509_cert_url: None,
        client_x509_cert_url: None,
    };
    let der = PrivateKeyDer::from_pem_slice(key.private_key.as_bytes()).ok();
    let usable = der.is_some_and(|der| rustls::crypto::ring::sign::RsaSigningKey::new(&der).is_ok());
    if usable { Ok((key, endpoint)) } else { Err("its `private_key` is damaged".to_owned()) }
}

/// What a refusal says, and what to look at.
fn refused(code: &AuthErrorCode, said: &str) -> String {
    let said: String = said.trim().trim_end_matches('.').chars().take(200).collect();
    let clock = ["iat", "exp ", "timeframe"].iter().any(|word| said.contains(word));
    let look = match code {
        AuthErrorCode::InvalidGrant if clock => "; is this machine's clock right?",
        AuthErrorCode::InvalidGrant => "; was the key or the account deleted?",
        AuthErrorCode::InvalidScope | AuthErrorCode::UnauthorizedClient => "; may the account do this?",
        _ => "",
    };
    if said.is_empty() { format!("{}{look}", code.as_str()) } else { format!("{said} ({}){look}", code.as_str()) }
}

/// The last link of the chain: `Connection refused (os error 111)`.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}
