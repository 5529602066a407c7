//! The credentials that are exchanged for an access token.

use std::{fmt, path::Path};

use countersign_core::clock::{Clock as _, SystemClock};
use reqwest::{Client, RequestBuilder};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::key::{Key, KeyError, is_private};

/// The grant type of a request with an assertion.
const ASSERTION: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// The grant type of a request with a refresh token.
const REFRESH: &str = "refresh_token";

/// A refresh token: the permission of a person for a program to act in their name, until they withdraw it.
#[derive(Clone)]
pub struct RefreshToken {
    /// The endpoint that exchanges it for access tokens.
    pub endpoint: Url,
    /// The id of the OAuth client.
    pub client_id: String,
    /// The secret of the OAuth client.
    pub client_secret: SecretString,
    /// The refresh token.
    pub token: SecretString,
}

impl fmt::Debug for RefreshToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoint, client_id, .. } = self;
        let mut shown = f.debug_struct("RefreshToken");
        shown.field("endpoint", &endpoint.as_str()).field("client_id", client_id).finish_non_exhaustive()
    }
}

/// The reason why a refresh token cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RefreshError {
    /// Others could read the token on its way.
    #[error("{0} begins with http://; tokens are fetched over https:// only")]
    NotPrivate(Url),
}

/// The credentials that are exchanged for an access token.
#[derive(Debug)]
pub(super) enum Grant {
    /// The key of a service account.
    Key(Box<Key>),
    /// The refresh token of a person.
    Refresh(RefreshToken),
}

impl Grant {
    /// Reads the key file of a service account. `token_uri` replaces the endpoint in the file.
    pub(super) fn read(path: &Path, token_uri: Option<Url>) -> Result<Self, KeyError> {
        Key::read(path, token_uri).map(|key| Self::Key(Box::new(key)))
    }

    /// Checks that a refresh token can be sent to its endpoint.
    pub(super) fn refresh(refresh: RefreshToken) -> Result<Self, RefreshError> {
        match is_private(&refresh.endpoint) {
            true => Ok(Self::Refresh(refresh)),
            false => Err(RefreshError::NotPrivate(refresh.endpoint)),
        }
    }

    /// Lets a service account act for a person, with these scopes.
    pub(super) fn act_for(&mut self, person: &str, scopes: &[&str]) {
        match self {
            Self::Key(key) => key.act_for(person, scopes),
            Self::Refresh(_) => {}
        }
    }

    /// Returns the name by which Google knows the holder of the credentials.
    pub(super) fn account(&self) -> &str {
        match self {
            Self::Key(key) => &key.account,
            Self::Refresh(refresh) => &refresh.client_id,
        }
    }

    /// Returns the endpoint that exchanges the credentials for tokens.
    pub(super) fn endpoint(&self) -> &Url {
        match self {
            Self::Key(key) => &key.endpoint,
            Self::Refresh(refresh) => &refresh.endpoint,
        }
    }

    /// Returns the request for a token; `None` if an assertion cannot be signed.
    pub(super) fn request(&self, client: &Client) -> Option<RequestBuilder> {
        let request = client.post(self.endpoint().clone());
        Some(match self {
            // The system's clock is used, since the server compares the time with its own.
            Self::Key(key) => {
                request.form(&[("grant_type", ASSERTION), ("assertion", &key.assertion(SystemClock.now())?)])
            }
            Self::Refresh(RefreshToken { client_id, client_secret, token, .. }) => request.form(&[
                ("grant_type", REFRESH),
                ("client_id", client_id),
                ("client_secret", client_secret.expose_secret()),
                ("refresh_token", token.expose_secret()),
            ]),
        })
    }

    /// Returns a hint at the likely cause of a refusal with this error code and description.
    pub(super) fn hint(&self, code: &str, description: &str) -> &'static str {
        let is_about_time = ["iat", "exp ", "timeframe"].iter().any(|word| description.contains(word));
        match (self, code) {
            (Self::Key(_), "invalid_grant") if is_about_time => "; is this machine's clock right?",
            (Self::Key(_), "invalid_grant") => "; was the key or the account deleted?",
            (Self::Refresh(_), "invalid_grant") => "; did the refresh token expire, or was its access removed?",
            (Self::Refresh(_), "invalid_client") => "; are the client's id and secret right?",
            (_, "invalid_scope" | "unauthorized_client") => "; may the account do this?",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refresh(endpoint: &str) -> RefreshToken {
        RefreshToken {
            endpoint: endpoint.parse().unwrap(),
            client_id: "client-1".to_owned(),
            client_secret: "s3cret".into(),
            token: "1//t0ken".into(),
        }
    }

    #[test]
    fn a_refresh_token_is_sent_to_private_endpoints_only() {
        assert!(Grant::refresh(refresh("https://oauth2.example/token")).is_ok());
        assert!(Grant::refresh(refresh("http://127.0.0.1:1/token")).is_ok());
        let refused = Grant::refresh(refresh("http://oauth2.example/token")).unwrap_err().to_string();
        assert_eq!(refused, "http://oauth2.example/token begins with http://; tokens are fetched over https:// only");
    }

    #[test]
    fn neither_secret_nor_refresh_token_is_printed() {
        let printed = format!("{:?}", Grant::refresh(refresh("https://oauth2.example/token")).unwrap());
        assert!(printed.contains("client-1"), "{printed}");
        assert!(!printed.contains("s3cret") && !printed.contains("t0ken"), "{printed}");
    }

    #[test]
    fn a_refresh_token_is_exchanged_as_a_form() {
        let grant = Grant::refresh(refresh("https://oauth2.example/token")).unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().tls_certs_only([]).build().unwrap();
        let request = grant.request(&client).unwrap().build().unwrap();
        let body = request.body().and_then(|body| body.as_bytes()).unwrap();
        let sent = "grant_type=refresh_token&client_id=client-1&client_secret=s3cret&refresh_token=1%2F%2Ft0ken";
        assert_eq!(std::str::from_utf8(body).unwrap(), sent);
    }
}
