//! The assertion that a service account exchanges for a token, with Google's checks and error
//! messages.

use base64::{
    Engine as _,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::Value;

use super::{ACCOUNT, Holder, KEY, PERSON, SCOPES};

/// The tolerated difference between clocks, in seconds.
const SKEW: i64 = 300;
/// The maximum validity of an assertion, in seconds.
const MAX_LIFETIME: i64 = 3600;

/// Base64 as in a JWT. Padding is unusual but accepted.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The error code and the message with which a request for a token is refused.
pub(super) type Refusal = (&'static str, &'static str);

/// Checks that `jwt` is an assertion of the account for `endpoint` that is valid at `now`. Returns
/// the rights of its token.
pub(super) fn check(jwt: &str, endpoint: &str, now: i64) -> Result<Holder, Refusal> {
    let malformed = ("invalid_grant", "Bad Request");
    let parts: Vec<&str> = jwt.split('.').collect();
    let [header, claims, signature] = parts[..] else { return Err(malformed) };
    let json = |part: &str| -> Option<Value> { serde_json::from_slice(&LENIENT.decode(part).ok()?).ok() };
    let header = json(header).ok_or(malformed)?;
    let claims = json(claims).ok_or(malformed)?;
    let signature = LENIENT.decode(signature).map_err(|_| malformed)?;
    if header["alg"] != "RS256" {
        return Err(("invalid_grant", "Invalid JWT: Failed audience or algorithm check."));
    }
    if claims["iss"] != ACCOUNT {
        return Err(("invalid_grant", "Invalid grant: account not found"));
    }
    let signed = &jwt[..jwt.rfind('.').unwrap_or_default()];
    let key = RsaKeyPair::from_pkcs8(KEY).map_err(|_| malformed)?;
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public().as_ref());
    if public.verify(signed.as_bytes(), &signature).is_err() {
        return Err(("invalid_grant", "Invalid JWT Signature."));
    }
    if claims["aud"] != endpoint {
        return Err(("invalid_grant", "Invalid JWT: Failed audience check."));
    }
    let (Some(iat), Some(exp)) = (claims["iat"].as_i64(), claims["exp"].as_i64()) else { return Err(malformed) };
    if exp <= now - SKEW || iat > now + SKEW || exp - iat > MAX_LIFETIME {
        return Err((
            "invalid_grant",
            "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. \
             Check your iat and exp values in the JWT claim.",
        ));
    }
    let scopes: Vec<String> =
        claims["scope"].as_str().unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    match claims["sub"].as_str() {
        None if scopes.iter().any(|scope| scope == "https://www.googleapis.com/auth/cloud-platform") => {
            Ok(Holder { person: None, scopes })
        }
        None => Err(("invalid_scope", "Invalid OAuth scope or ID token audience provided.")),
        Some(person) if !person.ends_with(domain()) => Err(("invalid_grant", "Invalid email or User ID")),
        Some(_) if scopes.is_empty() || scopes.iter().any(|scope| !SCOPES.contains(&scope.as_str())) => Err((
            "unauthorized_client",
            "Client is unauthorized to retrieve access tokens using this method, or client not authorized for any of \
             the scopes requested.",
        )),
        Some(person) => Ok(Holder { person: Some(person.to_owned()), scopes }),
    }
}

/// Returns the end of all addresses of the sandbox's domain.
fn domain() -> &'static str {
    PERSON.find('@').map_or(PERSON, |at| &PERSON[at..])
}

/// Returns a key in the format of a key file.
pub(super) fn pem(key: &[u8]) -> String {
    let body = STANDARD.encode(key);
    let lines: Vec<_> = body.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
}
