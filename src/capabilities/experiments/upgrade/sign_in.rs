//! How the client proves who it is to those parts of the platform that run experiments.

use std::sync::Arc;

use countersign_services::google::ServiceAccount;
use secrecy::SecretString;

use super::error::Error;

/// What goes into `Authorization: Bearer`.
#[derive(Clone, Debug)]
pub enum SignIn {
    /// Nothing, for a server that asks for nothing.
    Nobody,
    /// The same token at all times.
    Token(SecretString),
    /// Tokens of a Google service account, renewed in time.
    ServiceAccount(Arc<ServiceAccount>),
}

impl SignIn {
    /// The token for the next call.
    ///
    /// # Errors
    ///
    /// [`Error::SignIn`], if there is none; nothing was sent to the platform then.
    pub async fn token(&self) -> Result<Option<SecretString>, Error> {
        match self {
            Self::Nobody => Ok(None),
            Self::Token(token) => Ok(Some(token.clone())),
            Self::ServiceAccount(account) => account.token().await.map(Some).map_err(Error::SignIn),
        }
    }

    /// Another token in place of one that the platform refused; none if there is none to be had.
    ///
    /// # Errors
    ///
    /// As [`Self::token`].
    pub async fn instead_of(&self, refused: Option<&SecretString>) -> Result<Option<SecretString>, Error> {
        match (self, refused) {
            (Self::ServiceAccount(account), Some(refused)) => account.instead_of(refused).await.map_err(Error::SignIn),
            _ => Ok(None),
        }
    }
}
