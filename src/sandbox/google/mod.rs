//! The stand-in for Google's token endpoint: a real HTTP server that issues access tokens for one
//! service account and for one person.
//!
//! Like Google, it accepts an assertion that is signed with the account's key, has this endpoint as
//! its audience, names a scope, is neither expired nor from the future, and is valid for at most an
//! hour. The account may act for people of the sandbox's domain, with the scopes in [`SCOPES`]. It
//! also accepts the refresh token of the person with the secret of the OAuth client. Errors have
//! Google's messages. The key is in this folder; only the sandbox accepts it.
//!
//! Start at [`SandboxGoogle`]. Other stand-ins ask its [`Tokens`] which tokens are valid, and for
//! whom.

mod assertion;
mod refresh;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Form, Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::post,
};
use countersign_core::clock::{Clock, SystemClock, Timestamp};
use countersign_wire::this_machine;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::flood;

/// The only account.
pub const ACCOUNT: &str = "countersign@sandbox.iam.gserviceaccount.com";
/// The person whose mailbox and calendar are in the sandbox.
pub const PERSON: &str = "support@sandbox.example";
/// The id of the OAuth client.
pub const CLIENT_ID: &str = "1000-sandbox.apps.googleusercontent.com";
/// The secret of the OAuth client.
pub const CLIENT_SECRET: &str = "GOCSPX-sandbox";
/// The refresh token of [`PERSON`].
pub const REFRESH_TOKEN: &str = "1//sandbox-refresh-token";
/// The scopes that were granted: by the person to the client, and by the domain to the account.
pub const SCOPES: [&str; 4] = [
    "https://www.googleapis.com/auth/gmail.modify",
    "https://www.googleapis.com/auth/calendar.events",
    "https://www.googleapis.com/auth/calendar.freebusy",
    "https://www.googleapis.com/auth/pubsub",
];
/// The account's key, as PKCS #8.
const KEY: &[u8] = include_bytes!("key.der");
/// The grant type of a request with an assertion.
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// The rights of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The person for whom the token acts; `None` for the service account itself.
    pub person: Option<String>,
    /// The scopes.
    pub scopes: Vec<String>,
}

impl Holder {
    /// Returns true if the token has this scope.
    pub fn may(&self, scope: &str) -> bool {
        self.scopes.iter().any(|own| own == scope)
    }
}

/// The issued tokens, with their expiry and their rights.
#[derive(Debug)]
pub struct Tokens {
    clock: Arc<dyn Clock>,
    minted: Mutex<HashMap<String, (Timestamp, Holder)>>,
}

impl Tokens {
    /// Returns true if a token was issued here and has not expired.
    pub fn accepts(&self, token: &str) -> bool {
        self.holder(token).is_some()
    }

    /// Returns the rights of a token that was issued here and has not expired.
    pub fn holder(&self, token: &str) -> Option<Holder> {
        let minted = self.minted();
        let (end, holder) = minted.get(token)?;
        (self.clock.now() < *end).then(|| holder.clone())
    }

    /// Returns the number of tokens issued so far.
    pub fn count(&self) -> usize {
        self.minted().len()
    }

    /// Invalidates every token, as if the account's sessions had been ended.
    pub fn revoke(&self) {
        self.minted().values_mut().for_each(|(end, _)| *end = Timestamp(0));
    }

    fn mint(&self, life: Duration, holder: Holder) -> String {
        let token = format!("ya29.sandbox-{}", uuid::Uuid::new_v4().simple());
        self.minted().insert(token.clone(), (self.clock.now() + life, holder));
        token
    }

    fn minted(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Timestamp, Holder)>> {
        self.minted.lock().expect("no holder of the lock panics")
    }
}

/// The behaviour of the endpoint.
#[derive(Clone, Debug, Default)]
pub enum Mood {
    /// It checks assertions and issues tokens.
    #[default]
    Well,
    /// It refuses requests with this error and this description.
    Refuses(&'static str, &'static str),
    /// It fails with status 503. The body has the same format as a refusal.
    Fails,
    /// It accepts requests and never answers.
    Silent,
    /// A proxy in front of it answers with a web page.
    Away,
    /// The body of its answer does not end.
    Floods,
}

#[derive(Debug)]
struct Shared {
    tokens: Arc<Tokens>,
    endpoint: String,
    /// The lifetime of new tokens, and the behaviour of the endpoint.
    conduct: Mutex<(Duration, Mood)>,
    /// True if the person has withdrawn the consent.
    withdrawn: AtomicBool,
    stop: CancellationToken,
}

/// A running stand-in. Dropping it stops the server.
#[derive(Debug)]
pub struct SandboxGoogle {
    shared: Arc<Shared>,
}

impl SandboxGoogle {
    /// Starts a server on a free port.
    ///
    /// # Errors
    ///
    /// If there is no free port.
    pub async fn start() -> std::io::Result<Self> {
        Self::start_at(0, Arc::new(SystemClock)).await
    }

    /// Starts a server on a given port, with a clock.
    ///
    /// # Errors
    ///
    /// If the port is taken.
    pub async fn start_at(port: u16, clock: Arc<dyn Clock>) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        let address: SocketAddr = listener.local_addr()?;
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            tokens: Arc::new(Tokens { clock, minted: Mutex::default() }),
            endpoint: format!("http://{address}/token"),
            conduct: Mutex::new((Duration::from_secs(3599), Mood::Well)),
            withdrawn: AtomicBool::new(false),
            stop: stop.clone(),
        });
        let router = this_machine::only(Router::new().route("/token", post(token)).with_state(shared.clone()));
        tokio::spawn(async move {
            let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await;
            if let Err(error) = served {
                tracing::error!(%error, "the sandbox Google stopped");
            }
        });
        Ok(Self { shared })
    }

    /// Returns the URL of the endpoint.
    pub fn endpoint(&self) -> &str {
        &self.shared.endpoint
    }

    /// Returns the tokens issued here.
    pub fn tokens(&self) -> Arc<Tokens> {
        self.shared.tokens.clone()
    }

    /// Returns the account's key file, in the format in which it is downloaded.
    pub fn key_file(&self) -> Value {
        json!({
            "type": "service_account",
            "project_id": "sandbox",
            "private_key_id": "0123456789abcdef",
            "private_key": assertion::pem(KEY),
            "client_email": ACCOUNT,
            "client_id": "100000000000000000001",
            "token_uri": self.shared.endpoint,
        })
    }

    /// Sets the lifetime of tokens that are issued from now on.
    pub fn tokens_live(&self, life: Duration) {
        self.conduct().0 = life;
    }

    /// Sets the behaviour of the endpoint from now on.
    pub fn is(&self, mood: Mood) {
        self.conduct().1 = mood;
    }

    /// Withdraws the person's consent: the refresh token and the tokens issued for it are refused from now on.
    pub fn withdraws_consent(&self) {
        self.shared.withdrawn.store(true, Ordering::SeqCst);
        self.shared.tokens.revoke();
    }

    fn conduct(&self) -> std::sync::MutexGuard<'_, (Duration, Mood)> {
        self.shared.conduct.lock().expect("no holder of the lock panics")
    }
}

impl Drop for SandboxGoogle {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

async fn token(State(shared): State<Arc<Shared>>, Form(form): Form<HashMap<String, String>>) -> Response {
    let (life, mood) = shared.conduct.lock().expect("no holder of the lock panics").clone();
    let refuse = |error: &str, message: &str| {
        (StatusCode::BAD_REQUEST, Json(json!({ "error": error, "error_description": message }))).into_response()
    };
    match mood {
        Mood::Well => {}
        Mood::Refuses(error, message) => return refuse(error, message),
        Mood::Fails => {
            let body = json!({ "error": "internal_failure", "error_description": "Try again." });
            return (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
        }
        Mood::Silent => shared.stop.cancelled().await,
        Mood::Floods => {
            let flood = flood::body(Duration::from_millis(1), shared.stop.clone());
            return ([("content-type", "application/json")], flood).into_response();
        }
        Mood::Away => return (StatusCode::BAD_GATEWAY, "<html>Bad Gateway</html>").into_response(),
    }
    let granted = match form.get("grant_type").map(String::as_str) {
        Some(GRANT) => {
            let sent = form.get("assertion").map(String::as_str).unwrap_or_default();
            assertion::check(sent, &shared.endpoint, shared.tokens.clock.now().seconds())
        }
        Some("refresh_token") => match refresh::check(&form, shared.withdrawn.load(Ordering::SeqCst)) {
            Err(("invalid_client", message)) => {
                let body = json!({ "error": "invalid_client", "error_description": message });
                return (StatusCode::UNAUTHORIZED, Json(body)).into_response();
            }
            granted => granted,
        },
        _ => Err(("unsupported_grant_type", "Invalid grant_type")),
    };
    match granted {
        Err((error, message)) => refuse(error, message),
        Ok(holder) => {
            let scope = holder.scopes.join(" ");
            let token = shared.tokens.mint(life, holder);
            let issued = json!({
                "access_token": token, "expires_in": life.as_secs(), "scope": scope, "token_type": "Bearer",
            });
            Json(issued).into_response()
        }
    }
}
