//! The JSON Web Tokens (RFC 7519) that the bot signs. It checks none of others.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{hmac, signature::Ed25519KeyPair};
use rustls::{
    SignatureScheme,
    crypto::ring::sign::RsaSigningKey,
    pki_types::{PrivateKeyDer, pem::PemObject as _},
    sign::{Signer, SigningKey as _},
};
use serde_json::{Value, json};

/// A key that signs tokens.
pub enum JwtKey {
    /// A secret that the reader has too (`HS256`).
    Secret(hmac::Key),
    /// The private part of an RSA key (`RS256`).
    Rsa(Box<dyn Signer>),
    /// The private part of an Ed25519 key (`EdDSA`).
    Ed25519(Ed25519KeyPair),
}

impl fmt::Debug for JwtKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.algorithm())
    }
}

impl JwtKey {
    /// Returns the key for a shared secret.
    pub fn secret(secret: &[u8]) -> Self {
        Self::Secret(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Parses a private RSA key in PEM; `None` if it is none.
    pub fn rsa(pem: &str) -> Option<Self> {
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok()?;
        RsaSigningKey::new(&der).ok()?.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]).map(Self::Rsa)
    }

    /// Returns the Ed25519 key that follows from these random bytes.
    pub fn ed25519(seed: &[u8; 32]) -> Self {
        Self::Ed25519(Ed25519KeyPair::from_seed_unchecked(seed).expect("a seed has 32 bytes"))
    }

    /// Returns a token with these claims, which names the key by `id`; `None` if it cannot be signed.
    pub fn token(&self, id: Option<&str>, claims: &Value) -> Option<String> {
        self.token_of("JWT", id, claims)
    }

    /// Returns a token like [`Self::token`], of this type (`typ`).
    pub fn token_of(&self, kind: &str, id: Option<&str>, claims: &Value) -> Option<String> {
        let mut header = json!({ "alg": self.algorithm(), "typ": kind });
        if let Some(id) = id {
            header["kid"] = json!(id);
        }
        let part = |json: &Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature = match self {
            Self::Secret(key) => hmac::sign(key, signed.as_bytes()).as_ref().to_vec(),
            Self::Rsa(signer) => signer.sign(signed.as_bytes()).ok()?,
            Self::Ed25519(pair) => pair.sign(signed.as_bytes()).as_ref().to_vec(),
        };
        Some(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Secret(_) => "HS256",
            Self::Rsa(_) => "RS256",
            Self::Ed25519(_) => "EdDSA",
        }
    }
}
