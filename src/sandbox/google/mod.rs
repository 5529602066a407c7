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
    sync::{Arc, Mutex},
    time::Duration,
};

use countersign_core::clock::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};

use self::assertion::Refusal;
use crate::{
    call::{Call, Reply, Service},
    faults::Fault,
    stand_in::{self, Place, StandIn},
};

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

/// The state of the endpoint.
struct World {
    tokens: Arc<Tokens>,
    endpoint: String,
    /// The lifetime of new tokens.
    life: Duration,
    /// True if the person has withdrawn the consent.
    withdrawn: bool,
}

impl World {
    fn granted(&self, form: &HashMap<String, String>, now: Timestamp) -> Result<Holder, Refusal> {
        match form.get("grant_type").map(String::as_str) {
            Some(GRANT) => {
                let sent = form.get("assertion").map(String::as_str).unwrap_or_default();
                assertion::check(sent, &self.endpoint, now.seconds())
            }
            Some("refresh_token") => refresh::check(form, self.withdrawn),
            _ => Err(("unsupported_grant_type", "Invalid grant_type")),
        }
    }
}

impl Service for World {
    fn reply(&mut self, call: &Call, now: Timestamp) -> Reply {
        if (call.method.as_str(), call.path.as_str()) != ("POST", "/token") {
            return Reply { status: 404, ..Reply::ok(Value::Null) };
        }
        let form: HashMap<String, String> = url::form_urlencoded::parse(&call.body).into_owned().collect();
        match self.granted(&form, now) {
            Err((error, message)) => {
                let status = if error == "invalid_client" { 401 } else { 400 };
                Reply { status, ..Reply::ok(json!({ "error": error, "error_description": message })) }
            }
            Ok(holder) => {
                let scope = holder.scopes.join(" ");
                let token = self.tokens.mint(self.life, holder);
                Reply::ok(json!({
                    "access_token": token, "expires_in": self.life.as_secs(), "scope": scope, "token_type": "Bearer",
                }))
            }
        }
    }

    fn failure(_status: u16) -> Value {
        json!({ "error": "internal_failure", "error_description": "Try again." })
    }
}

/// A running stand-in. Dropping it stops the server.
#[derive(Debug)]
pub struct SandboxGoogle {
    server: StandIn<World>,
    tokens: Arc<Tokens>,
    endpoint: String,
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
        let tokens = Arc::new(Tokens { clock: clock.clone(), minted: Mutex::default() });
        let life = Duration::from_secs(3599);
        let world = World { tokens: tokens.clone(), endpoint: String::new(), life, withdrawn: false };
        let server = StandIn::start(world, (), Place::new(port, clock), stand_in::routes).await?;
        let endpoint = format!("{}/token", server.url());
        server.world().endpoint.clone_from(&endpoint);
        Ok(Self { server, tokens, endpoint })
    }

    /// Returns the URL of the endpoint.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the tokens issued here.
    pub fn tokens(&self) -> Arc<Tokens> {
        self.tokens.clone()
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
            "token_uri": self.endpoint,
        })
    }

    /// Sets the lifetime of tokens that are issued from now on.
    pub fn tokens_live(&self, life: Duration) {
        self.server.world().life = life;
    }

    /// Answers every request with this fault from now on; with `None`, checks requests and issues tokens again.
    pub fn is(&self, fault: Option<Fault>) {
        self.server.faults.clear();
        if let Some(fault) = fault {
            self.server.faults.every(1, "", fault);
        }
    }

    /// Withdraws the person's consent: the refresh token and the tokens issued for it are refused from now on.
    pub fn withdraws_consent(&self) {
        self.server.world().withdrawn = true;
        self.tokens.revoke();
    }
}
