//! Bearer tokens: JSON web tokens signed with a shared secret, with the checks of the bridge in
//! development mode.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::{Role, failure::Failure};

/// The tolerated difference between clocks, in seconds.
const SKEW: i64 = 60;

/// The caller according to the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The subject.
    pub(crate) subject: String,
    /// The roles, as spelt in the token.
    pub(crate) roles: Vec<String>,
    /// The id of the token. A token with an id is valid once.
    pub(crate) token_id: Option<String>,
}

impl Caller {
    /// Returns true if one of the caller's roles is among these.
    pub(crate) fn is_any_of(&self, roles: &[Role]) -> bool {
        roles.iter().any(|role| self.roles.iter().any(|own| own.eq_ignore_ascii_case(role.name())))
    }
}

/// Returns a token with these claims.
pub(crate) fn sign(claims: &Value, secret: &str) -> String {
    let head = URL_SAFE_NO_PAD.encode(json!({ "alg": "HS256", "typ": "JWT" }).to_string());
    let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let signature = URL_SAFE_NO_PAD.encode(mac(&signed, secret).finalize().into_bytes());
    format!("{signed}.{signature}")
}

/// Reads the caller from the header. `now` is in seconds.
pub(crate) fn read(authorization: Option<&str>, secret: &str, now: i64) -> Result<Caller, Failure> {
    let sent = authorization.and_then(|value| value.strip_prefix("Bearer "));
    let token = sent.ok_or_else(|| Failure::unauthorized("Missing bearer token"))?;
    let claims = verified(token, secret).map_err(|why| Failure::unauthorized(format!("Invalid dev token: {why}")))?;
    let Some(expiry) = claims["exp"].as_i64().or_else(|| claims["exp"].as_f64().map(|at| at as i64)) else {
        return Err(Failure::unauthorized("Token missing expiry"));
    };
    if expiry < now - SKEW {
        return Err(Failure::unauthorized("Invalid dev token: Signature has expired."));
    }
    if claims["nbf"].as_i64().is_some_and(|from| from > now + SKEW) {
        return Err(Failure::unauthorized("Invalid dev token: The token is not yet valid (nbf)"));
    }
    if claims["iat"].as_i64().is_some_and(|made| made > now + SKEW) {
        return Err(Failure::unauthorized("Token issued in the future"));
    }
    let Some(subject) = claims["sub"].as_str().filter(|subject| !subject.is_empty()) else {
        return Err(Failure::unauthorized("Token missing subject"));
    };
    let roles = if claims["roles"].is_null() { &claims["scope"] } else { &claims["roles"] };
    let roles = match roles {
        Value::Array(roles) => roles.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(roles) => roles.split_whitespace().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    Ok(Caller { subject: subject.to_owned(), roles, token_id: claims["jti"].as_str().map(str::to_owned) })
}

/// Returns the claims of a token with a valid signature, or the error message of the bridge's
/// library.
fn verified(token: &str, secret: &str) -> Result<Value, String> {
    let parts: Vec<&str> = token.split('.').collect();
    let head = URL_SAFE_NO_PAD.decode(parts[0].trim_end_matches('=')).map_err(|_| "Error decoding token headers.")?;
    let head = std::str::from_utf8(&head).map_err(|error| {
        let at = error.valid_up_to();
        let byte = head[at];
        format!(
            "Invalid header string: 'utf-8' codec can't decode byte 0x{byte:02x} in position {at}: invalid start byte"
        )
    })?;
    let head: Value = serde_json::from_str(head).map_err(|error| format!("Invalid header string: {error}"))?;
    let [_, claims, signature] = parts[..] else { return Err("Not enough segments".to_owned()) };
    if head["alg"] != "HS256" {
        return Err("The specified alg value is not allowed".to_owned());
    }
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| "Signature verification failed.")?;
    let signed = &token[..token.rfind('.').unwrap_or_default()];
    mac(signed, secret).verify_slice(&signature).map_err(|_| "Signature verification failed.")?;
    let claims = URL_SAFE_NO_PAD.decode(claims).map_err(|_| "Invalid payload padding")?;
    serde_json::from_slice(&claims).map_err(|error| format!("Invalid payload string: {error}"))
}

fn mac(text: &str, secret: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(text.as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_token_is_read_and_another_secret_refused() {
        let token = sign(&json!({ "sub": "ana", "exp": 100, "roles": ["operator"] }), "s");
        let header = format!("Bearer {token}");
        let caller = read(Some(&header), "s", 120).unwrap();
        assert_eq!((caller.subject.as_str(), caller.is_any_of(&[Role::Operator])), ("ana", true));
        assert_eq!(
            read(Some(&header), "t", 0).unwrap_err().message,
            "Invalid dev token: Signature verification failed."
        );
        assert_eq!(read(Some(&header), "s", 161).unwrap_err().message, "Invalid dev token: Signature has expired.");
        let scoped = format!("Bearer {}", sign(&json!({ "sub": "bo", "exp": 100, "scope": "viewer admin" }), "s"));
        assert_eq!(read(Some(&scoped), "s", 0).unwrap().roles, ["viewer", "admin"]);
    }
}
