//! The credentials of the client for the calls that manage experiments.

use std::sync::Arc;

use countersign_services::google::TokenSource;
use secrecy::SecretString;

use super::error::Error;

/// The source of the token in `Authorization: Bearer`.
#[derive(Clone, Debug)]
pub enum SignIn {
    /// No token, for a server that requires none.
    Nobody,
    /// The same token for every call.
    Token(SecretString),
    /// Tokens of a Google service account, renewed in time.
    ServiceAccount(Arc<TokenSource>),
}

impl SignIn {
    /// Returns the token for the next call.
    ///
    /// # Errors
    ///
    /// Returns [`Error::SignIn`] if there is none. In this case nothing was sent to the platform.
    pub async fn token(&self) -> Result<Option<SecretString>, Error> {
        match self {
            Self::Nobody => Ok(None),
            Self::Token(token) => Ok(Some(token.clone())),
            Self::ServiceAccount(account) => account.token().await.map(Some).map_err(Error::SignIn),
        }
    }

    /// Returns a new token to replace one that the platform refused; `None` if there is no other.
    ///
    /// # Errors
    ///
    /// The same as [`Self::token`].
    pub async fn replacement_for(&self, refused: Option<&SecretString>) -> Result<Option<SecretString>, Error> {
        match (self, refused) {
            (Self::ServiceAccount(account), Some(refused)) => {
                account.replacement_for(refused).await.map_err(Error::SignIn)
            }
            _ => Ok(None),
        }
    }
}
