//! The key file of a service account, and assertions signed with its key.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use countersign_core::clock::Timestamp;
use countersign_wire::this_machine;
use serde_json::{Value, json};
use url::Url;

use crate::jwt::JwtKey;

/// The scope of tokens without a delegation: everything that the account may do, which is what platforms require.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// The lifetime of an assertion in seconds: a little less than the maximum of one hour.
const LIFETIME: i64 = 3600 - 5;

/// The reason why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("cannot read the key file {}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file is not the key of a service account.
    #[error("{} isn't a key file of a Google service account: {reason}", path.display())]
    NotAKey {
        /// The path of the file.
        path: PathBuf,
        /// The fault, without the contents.
        reason: String,
    },
}

/// The key of a service account.
pub(super) struct Key {
    /// The account's e-mail address.
    pub(super) account: String,
    /// The endpoint that exchanges its assertions for tokens.
    pub(super) endpoint: Url,
    id: Option<String>,
    key: JwtKey,
    /// The person for whom the account acts.
    person: Option<String>,
    /// The scopes of the tokens, separated by spaces.
    scopes: String,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, endpoint, .. } = self;
        f.debug_struct("Key").field("account", account).field("endpoint", &endpoint.as_str()).finish_non_exhaustive()
    }
}

impl Key {
    /// Reads a key file. `token_uri` replaces the endpoint in the file.
    pub(super) fn read(path: &Path, token_uri: Option<Url>) -> Result<Self, KeyError> {
        let text = std::fs::read(path);
        let text = text.map_err(|source| KeyError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text, token_uri).map_err(|reason| KeyError::NotAKey { path: path.to_owned(), reason })
    }

    /// Parses a key file. The error describes the fault without the contents.
    fn parse(text: &[u8], token_uri: Option<Url>) -> Result<Self, String> {
        let json: Value = serde_json::from_slice(text).map_err(|_| "it is not JSON".to_owned())?;
        match json["type"].as_str() {
            Some("service_account") => {}
            Some("authorized_user") => return Err("it holds a person's sign-in".to_owned()),
            _ => return Err("its `type` is not `service_account`".to_owned()),
        }
        let needed = |field: &str| {
            let text = json[field].as_str().filter(|text| !text.trim().is_empty());
            text.ok_or_else(|| format!("it has no `{field}`"))
        };
        let (account, pem) = (needed("client_email")?, needed("private_key")?);
        let named = || json["token_uri"].as_str().and_then(|uri| Url::parse(uri).ok());
        let endpoint = token_uri.or_else(named).filter(|uri| matches!(uri.scheme(), "https" | "http"));
        let endpoint = endpoint.ok_or("its `token_uri` isn't a valid URL")?;
        if !is_private(&endpoint) {
            return Err("its `token_uri` begins with http://; tokens are fetched over https:// only".to_owned());
        }
        let key = JwtKey::rsa(pem).ok_or("its `private_key` is damaged")?;
        let id = json["private_key_id"].as_str().map(str::to_owned);
        Ok(Self { account: account.to_owned(), endpoint, id, key, person: None, scopes: SCOPE.to_owned() })
    }

    /// Lets the account act for a person of its domain, with these scopes.
    pub(super) fn act_for(&mut self, person: &str, scopes: &[&str]) {
        self.person = Some(person.to_owned());
        self.scopes = scopes.join(" ");
    }

    /// Returns a JSON Web Token (RFC 7523) of the account, issued at `now`; `None` if it cannot be signed.
    pub(super) fn assertion(&self, now: Timestamp) -> Option<String> {
        let (iat, exp) = (now.seconds(), now.seconds() + LIFETIME);
        let (scopes, audience) = (&self.scopes, self.endpoint.as_str());
        let mut claims = json!({ "iss": self.account, "scope": scopes, "aud": audience, "iat": iat, "exp": exp });
        if let Some(person) = &self.person {
            claims["sub"] = json!(person);
        }
        self.key.token(self.id.as_deref(), &claims)
    }
}

/// Returns true if nobody can read what is sent to the endpoint.
pub(super) fn is_private(endpoint: &Url) -> bool {
    endpoint.scheme() == "https" || endpoint.scheme() == "http" && this_machine::is_named_by(endpoint)
}
