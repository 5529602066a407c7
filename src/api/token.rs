//! Decision tokens: what an executor that is not the program itself checks before it acts.
//!
//! A token is a JWS with Ed25519. The keys follow from the digest keys of the installation, so that all its processes have
//! them and none is in the store; the public keys are a key set that anybody may read. A token of a key that was replaced is
//! valid as long as the digest key it follows from is kept.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use countersign_core::clock::Timestamp;
use countersign_graph::keyring::Keyring;
use countersign_services::jwt::JwtKey;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde_json::{Value, json};

use super::asked::payload_digest;

/// The type of the tokens (`typ`).
pub const TYPE: &str = "countersign-decision+jwt";

/// The only algorithm (`alg`).
const ALGORITHM: &str = "EdDSA";

/// The time for which a token is valid, in seconds.
pub const VALID_FOR: i64 = 300;

/// The purpose of the secrets that the keys follow from.
const PURPOSE: &str = "decision tokens";

/// The keys of tokens.
pub struct TokenKeys {
    id: String,
    signing: JwtKey,
    set: Value,
}

impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKeys").field("id", &self.id).finish_non_exhaustive()
    }
}

impl TokenKeys {
    /// Returns the keys that follow from the digest keys.
    pub fn of(ring: &Keyring) -> Self {
        let derived = ring.derived(PURPOSE);
        let public = derived.iter().map(|(id, seed)| {
            let pair = Ed25519KeyPair::from_seed_unchecked(seed).expect("a seed has 32 bytes");
            let x = BASE64_URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
            json!({ "kty": "OKP", "crv": "Ed25519", "alg": ALGORITHM, "use": "sig", "kid": id, "x": x })
        });
        let set = json!({ "keys": public.collect::<Vec<_>>() });
        let (id, seed) = derived.first().expect("a keyring has a key");
        Self { id: id.to_string(), signing: JwtKey::ed25519(seed), set }
    }

    /// Returns the public keys, as RFC 7517 describes them.
    pub fn set(&self) -> &Value {
        &self.set
    }

    /// Returns a token with these claims.
    pub fn sign(&self, claims: &Value) -> Option<String> {
        self.signing.token_of(TYPE, Some(&self.id), claims)
    }
}

/// What a token is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The issuer, which is the address of the API.
    pub issuer: &'a str,
    /// The audience, which is the name of the key; `None` for any.
    pub audience: Option<&'a str>,
    /// The payload that is about to be used; `None` if only the token itself is checked.
    pub payload: Option<&'a Value>,
    /// The time.
    pub now: Timestamp,
}

/// Checks a token. Returns its claims.
///
/// # Errors
///
/// The reason why it is not valid, as a sentence.
pub fn verify(token: &str, set: &Value, expected: Expected<'_>) -> Result<Value, &'static str> {
    let mut parts = token.split('.');
    let (Some(header), Some(claims), Some(signature), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("It is not a token.");
    };
    let signed = &token[..header.len() + 1 + claims.len()];
    let bytes = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| "It is not a token.");
    let read = |part: &str| serde_json::from_slice::<Value>(&bytes(part)?).map_err(|_| "It is not a token.");
    let (header, claims, signature) = (read(header)?, read(claims)?, bytes(signature)?);
    if header["alg"] != ALGORITHM || header["typ"] != TYPE || !header["crit"].is_null() {
        return Err("It is a token of another kind.");
    }
    let keys = set["keys"].as_array().into_iter().flatten();
    let key = keys.filter(|key| key["crv"] == "Ed25519" && key["kty"] == "OKP").find(|key| key["kid"] == header["kid"]);
    let public = key.and_then(|key| key["x"].as_str()).and_then(|x| BASE64_URL_SAFE_NO_PAD.decode(x).ok());
    let public = public.ok_or("It was signed with a key that is not in the set.")?;
    if UnparsedPublicKey::new(&ED25519, public).verify(signed.as_bytes(), &signature).is_err() {
        return Err("Its signature is not valid.");
    }
    let now = expected.now.seconds();
    let time = |name: &str| claims[name].as_i64();
    match (time("iat"), time("exp")) {
        (Some(from), Some(until)) if from - VALID_FOR <= now && now < until && until - from <= VALID_FOR => {}
        _ => return Err("It is not valid at this time."),
    }
    if claims["iss"] != expected.issuer {
        return Err("It is of another issuer.");
    }
    if expected.audience.is_some_and(|audience| claims["aud"] != audience) {
        return Err("It is for another program.");
    }
    if claims["verdict"] != "approved" {
        return Err("It says that the change was not approved.");
    }
    if let Some(payload) = expected.payload
        && payload_digest(payload).is_none_or(|digest| claims["payload_digest"] != digest)
    {
        return Err("The payload is not the one that was approved.");
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{parse, wrong_payload};

    fn vectors() -> Value {
        serde_json::from_str(include_str!("../../tests/fixtures/approval-api/vectors.json")).unwrap()
    }

    #[test]
    fn the_vectors_of_tokens_hold() {
        let vectors = vectors();
        let cases = vectors["tokens"]["cases"].as_array().unwrap();
        assert!(cases.len() >= 9);
        for case in cases {
            let expected = Expected {
                issuer: case["issuer"].as_str().unwrap(),
                audience: case["audience"].as_str(),
                payload: Some(&case["payload"]),
                now: Timestamp(case["now"].as_i64().unwrap() * 1000),
            };
            let found = verify(case["token"].as_str().unwrap(), &vectors["tokens"]["jwks"], expected);
            assert_eq!(found.is_ok(), case["valid"] == true, "{}: {found:?}", case["name"]);
        }
    }

    #[test]
    fn the_vectors_of_digests_hold() {
        for case in vectors()["digests"].as_array().unwrap() {
            if let Some(text) = case["payload_text"].as_str() {
                let read = parse(text.as_bytes());
                assert!(read.is_err() || wrong_payload(&read.unwrap()).is_some(), "{text}");
            } else {
                assert_eq!(payload_digest(&case["payload"]).as_deref(), case["payload_digest"].as_str(), "{case}");
            }
        }
    }

    #[test]
    fn a_token_is_valid_for_its_own_claims_under_each_key_of_the_ring() {
        let old = Keyring::new(vec![vec![1; 32]]).unwrap();
        let both = Keyring::new(vec![vec![2; 32], vec![1; 32]]).unwrap();
        let claims = json!({ "iss": "https://a", "aud": "ci", "iat": 100, "exp": 400, "verdict": "approved",
            "payload_digest": payload_digest(&json!({})) });
        let token = TokenKeys::of(&old).sign(&claims).unwrap();
        let other = Value::Null;
        let expected = |now| Expected { issuer: "https://a", audience: Some("ci"), payload: Some(&other), now };
        let (set, now) = (TokenKeys::of(&both).set().clone(), Timestamp(200_000));
        let right = Expected { payload: None, ..expected(now) };
        assert_eq!(verify(&token, &set, right), Ok(claims.clone()));
        assert!(verify(&token, &set, expected(now)).is_err(), "another payload");
        assert!(verify(&token, TokenKeys::of(&Keyring::new(vec![vec![3; 32]]).unwrap()).set(), right).is_err());
        let long = json!({ "iss": "https://a", "aud": "ci", "iat": 100, "exp": 4000, "verdict": "approved" });
        assert!(verify(&TokenKeys::of(&old).sign(&long).unwrap(), &set, right).is_err(), "it would live too long");
    }
}
