//! The sign-in of an operator to a server by OAuth 2.1, based on the library `rmcp`: discovery, registration, the
//! authorization code with PKCE, and refreshed tokens, which are kept in a private file.

use std::{
    fmt,
    fs::File,
    io::{self, ErrorKind},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use countersign_core::private_file;
use countersign_services::http;
use hyper::Response;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, CredentialRefreshGuard,
    CredentialStore, OAuthClientConfig, OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
    StoredCredentials,
};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Mutex,
    time::timeout,
};
use url::Url;

use crate::http::HttpError;

/// The time for which an operator is waited for.
const MAX_WAIT: Duration = Duration::from_secs(300);

/// The maximum size of an answer of an authorization server, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// The maximum size of the browser's request that ends a sign-in, in bytes.
const MAX_CALLBACK_BYTES: usize = 16 << 10;

/// The settings of a sign-in.
#[derive(Clone, Debug)]
pub struct OAuth {
    /// The id of a client that is registered with the authorization server. Without it, one is registered.
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<SecretString>,
    /// The scopes to ask for. Without any, those that the server names.
    pub scopes: Vec<String>,
    /// The port on 127.0.0.1 that the browser returns to; 0 for any.
    pub port: u16,
    /// The file for the tokens.
    pub tokens: PathBuf,
}

/// A sign-in to one server.
pub struct SignIn {
    url: Url,
    oauth: OAuth,
    timeout: Duration,
    manager: Mutex<Option<AuthorizationManager>>,
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn").field("oauth", &self.oauth).finish_non_exhaustive()
    }
}

impl SignIn {
    pub(crate) fn new(url: Url, oauth: OAuth, timeout: Duration) -> Self {
        Self { url, oauth, timeout, manager: Mutex::default() }
    }

    /// Returns true if there is a token that is valid, or was refreshed now.
    pub async fn is_done(&self) -> bool {
        self.token().await.is_ok()
    }

    /// Returns a valid token. It is refreshed shortly before it expires.
    pub(crate) async fn token(&self) -> Result<SecretString, HttpError> {
        self.with_manager(false).await
    }

    /// Returns a new token, for when the server has refused a valid one.
    pub(crate) async fn new_token(&self) -> Result<SecretString, HttpError> {
        self.with_manager(true).await
    }

    async fn with_manager(&self, anew: bool) -> Result<SecretString, HttpError> {
        let mut current = self.manager.lock().await;
        let found = async {
            if current.is_none() {
                *current = Some(self.stored().await?);
            }
            let manager = current.as_ref().ok_or(AuthError::AuthorizationRequired)?;
            if anew {
                manager.refresh_token().await.map(drop)?;
            }
            manager.get_access_token().await
        };
        let found = found.await;
        if found.is_err() {
            *current = None; // an operator may sign in meanwhile, as another client
        }
        found.map(SecretString::from).map_err(|error| HttpError::NotSignedIn(in_words(&error)))
    }

    /// Returns a manager with the stored tokens.
    async fn stored(&self) -> Result<AuthorizationManager, AuthError> {
        let mut manager = self.new_manager().await?;
        if !manager.initialize_from_store().await? {
            return Err(AuthError::AuthorizationRequired);
        }
        if let (Some(id), Some(secret)) = (&self.oauth.client_id, &self.oauth.client_secret) {
            let config = OAuthClientConfig::new(id, self.url.as_str());
            manager.configure_client(config.with_client_secret(secret.expose_secret()))?;
        }
        Ok(manager)
    }

    async fn new_manager(&self) -> Result<AuthorizationManager, AuthError> {
        let client = Arc::new(Client { timeout: self.timeout });
        let mut manager = AuthorizationManager::new_with_oauth_http_client(self.url.as_str(), client).await?;
        manager.set_credential_store(TokenFile(self.oauth.tokens.clone()));
        Ok(manager)
    }

    /// Lets an operator sign in with a browser on this machine; `tell` shows the address to open.
    ///
    /// # Errors
    ///
    /// The reason why nobody is signed in, in words for an operator.
    pub async fn authorize(&self, tell: &(dyn Fn(&str) + Sync)) -> Result<(), String> {
        let cannot_listen = |error| format!("cannot listen on 127.0.0.1:{}: {error}", self.oauth.port);
        let listener = TcpListener::bind(("127.0.0.1", self.oauth.port)).await.map_err(cannot_listen)?;
        let address = listener.local_addr().map_err(cannot_listen)?;
        let redirect = format!("http://127.0.0.1:{}/callback", address.port());
        let mut manager = self.new_manager().await.map_err(|error| in_words(&error))?;
        let resolved = manager.resolve_metadata().await.map_err(|error| in_words(&error))?;
        manager.set_metadata(resolved.metadata);
        let mut request = AuthorizationRequest::new(redirect.as_str())
            .with_client_name("Countersign")
            .with_initial_scope_selection()
            .with_scopes(self.oauth.scopes.iter().cloned());
        if let Some(id) = &self.oauth.client_id {
            request = request.with_preregistered_client(id);
        }
        if let Some(secret) = &self.oauth.client_secret {
            request = request.with_client_secret(secret.expose_secret());
        }
        let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| in_words(&error))?;
        tell(&format!(
            "to sign in, open this address in a browser on this machine: {}",
            session.get_authorization_url()
        ));
        let came_back = timeout(MAX_WAIT, callback(&listener)).await;
        let query = came_back.map_err(|_| format!("nobody signed in within {} minutes", MAX_WAIT.as_secs() / 60))??;
        let signed_in = session.handle_callback_url(&format!("{redirect}?{query}")).await;
        signed_in.map_err(|error| in_words(&error))?;
        *self.manager.lock().await = None;
        Ok(())
    }
}

/// Describes an error for an operator.
fn in_words(error: &AuthError) -> String {
    match error {
        AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_) => {
            "nobody is signed in; sign in with `countersign accept`".to_owned()
        }
        error => {
            let text: String = error.to_string().chars().filter(|c| !c.is_control()).take(300).collect();
            format!("the sign-in failed: {text}")
        }
    }
}

/// Waits for the browser to return, and answers it. Returns the query with the code.
async fn callback(listener: &TcpListener) -> Result<String, String> {
    loop {
        let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
        let Ok(Some(query)) = timeout(Duration::from_secs(5), asked(stream)).await else { continue };
        let find = |wanted: &str| {
            url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == wanted).map(|(_, value)| value)
        };
        if let Some(error) = find("error_description").or_else(|| find("error")) {
            let text: String = error.chars().filter(|c| !c.is_control()).take(200).collect();
            return Err(format!("the sign-in was refused: {text}"));
        }
        if find("code").is_some() {
            return Ok(query);
        }
    }
}

/// Reads a browser's request, and answers it. Returns the query, if the request is one that ends a sign-in.
async fn asked(mut stream: TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") && head.len() < MAX_CALLBACK_BYTES {
        let mut piece = [0; 1024];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => head.extend_from_slice(&piece[..read]),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let place = head.lines().next()?.strip_prefix("GET ")?.split(' ').next()?;
    let query = place.strip_prefix("/callback?").map(str::to_owned);
    let (status, text) = match query {
        Some(_) => {
            ("200 OK", "Countersign got the answer. You can close this window; the terminal says what came of it.")
        }
        None => ("404 Not Found", "There is nothing here."),
    };
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    query
}

/// The tokens in a file that only its owner can access.
struct TokenFile(PathBuf);

impl TokenFile {
    fn failed(&self, error: &dyn fmt::Display) -> AuthError {
        AuthError::CredentialStoreError(format!("{}: {error}", self.0.display()))
    }
}

#[async_trait]
impl CredentialStore for TokenFile {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        match std::fs::read(&self.0) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| self.failed(&error)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let write = || {
            let new = self.0.with_extension("new");
            private_file::write(&new, &serde_json::to_vec_pretty(&credentials).map_err(io::Error::other)?)?;
            std::fs::rename(&new, &self.0)
        };
        write().map_err(|error| self.failed(&error))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed(&error)),
            _ => Ok(()),
        }
    }

    /// Locks a file beside the tokens: a token is refreshed by one process at a time, since a refresh token may be used
    /// only once.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let path = self.0.with_extension("lock");
        let lock = move || {
            let file = File::options().create(true).append(true).open(path)?;
            file.lock()?;
            Ok::<_, io::Error>(file)
        };
        let locked = tokio::task::spawn_blocking(lock).await.map_err(|error| self.failed(&error))?;
        Ok(Some(CredentialRefreshGuard::new(locked.map_err(|error| self.failed(&error))?)))
    }
}

/// The HTTP client of the sign-in. It follows no redirects; the library follows those that are safe.
struct Client {
    timeout: Duration,
}

impl OAuthHttpClient for Client {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let (head, body) = request.request.into_parts();
            let url: Url = head.uri.to_string().parse()?;
            let client = http::client(&url, self.timeout)?;
            let mut answer = client.request(head.method, url).headers(head.headers).body(body).send().await?;
            let mut whole = Vec::new();
            while let Some(piece) = answer.chunk().await? {
                whole.extend_from_slice(&piece);
                if whole.len() > MAX_ANSWER_BYTES {
                    return Err(OAuthHttpClientError::from("the answer is too long"));
                }
            }
            let mut response = Response::new(whole);
            *response.status_mut() = answer.status();
            std::mem::swap(response.headers_mut(), answer.headers_mut());
            Ok(response)
        })
    }
}
