//! The tokens that the bridge accepts: a given one, or a new one for each call.
//!
//! A new token is valid for [`LIFE`], names the role that the call needs, and has no `jti`: a token with one works only
//! once. In a change, `sub` is the person who approved it, so the bridge's own log names that person.

use std::{fmt, time::Duration};

use countersign_core::clock::Timestamp;
use countersign_services::jwt::JwtKey;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::error::Error;

/// The validity of a new token: longer than any call, and short enough to limit misuse.
pub const LIFE: Duration = Duration::from_secs(300);

/// The `sub` in the tokens of calls that only read.
const READER: &str = "countersign";

/// The source of tokens.
#[derive(Clone)]
pub enum Access {
    /// No token is sent.
    Nothing,
    /// This token is sent unchanged.
    Token(SecretString),
    /// A new token is signed with this secret for each call.
    Secret(SecretString),
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Token(_) => "Token",
            Self::Secret(_) => "Secret",
        })
    }
}

/// The role that a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role<'a> {
    /// A read.
    Viewer,
    /// A change that this person approved.
    Operator(&'a str),
}

impl Access {
    /// Returns the token for a call in this role; `None` if no token is sent.
    ///
    /// # Errors
    ///
    /// [`Error::NoToken`] if the secret cannot be used as a key.
    pub fn token(&self, role: Role<'_>, now: Timestamp) -> Result<Option<SecretString>, Error> {
        match self {
            Self::Nothing => Ok(None),
            Self::Token(token) => Ok(Some(token.clone())),
            Self::Secret(secret) => Ok(Some(signed_token(secret, role, now)?.into())),
        }
    }
}

/// Returns a new token, signed with the secret.
fn signed_token(secret: &SecretString, role: Role<'_>, now: Timestamp) -> Result<String, Error> {
    let (sub, role) = match role {
        Role::Viewer => (READER, "viewer"),
        Role::Operator(by) => (by, "operator"),
    };
    let issued = now.seconds();
    let expires = issued + i64::try_from(LIFE.as_secs()).unwrap_or(0);
    let claims = json!({ "sub": sub, "roles": [role], "iat": issued, "exp": expires });
    JwtKey::secret(secret.expose_secret().as_bytes()).token(None, &claims).ok_or(Error::NoToken)
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
    use hmac::{Hmac, KeyInit as _, Mac as _};
    use serde_json::Value;
    use sha2::Sha256;

    use super::*;

    fn claims(token: &SecretString) -> Value {
        let token = token.expose_secret();
        let part = token.split('.').nth(1).unwrap();
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    }

    #[test]
    fn a_made_token_names_the_role_and_the_person_and_has_no_id() {
        let access = Access::Secret("secret".to_owned().into());
        let now = Timestamp(1_700_000_000_000);
        let read = claims(&access.token(Role::Viewer, now).unwrap().unwrap());
        assert_eq!(
            read,
            json!({ "sub": "countersign", "roles": ["viewer"], "iat": 1_700_000_000, "exp": 1_700_000_300 })
        );
        let change = claims(&access.token(Role::Operator("U123"), now).unwrap().unwrap());
        assert_eq!((&change["sub"], &change["roles"]), (&json!("U123"), &json!(["operator"])));
        assert!(change.get("jti").is_none());
    }

    #[test]
    fn a_token_is_signed_as_others_check_it() {
        let token = signed_token(&"secret".to_owned().into(), Role::Viewer, Timestamp(0)).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(b"secret").unwrap();
        mac.update(signed.as_bytes());
        mac.verify_slice(&BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        assert_eq!(
            BASE64_URL_SAFE_NO_PAD.decode(signed.split('.').next().unwrap()).unwrap(),
            br#"{"alg":"HS256","typ":"JWT"}"#
        );
    }

    #[test]
    fn a_given_token_is_used_as_it_is() {
        let access = Access::Token("abc".to_owned().into());
        assert_eq!(access.token(Role::Operator("U1"), Timestamp(0)).unwrap().unwrap().expose_secret(), "abc");
        assert_eq!(format!("{access:?}"), "Token");
    }
}
