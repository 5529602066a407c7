//! Checks that Slack signed a request.
//!
//! The signature is HMAC-SHA-256 of `v0:`, the time, `:` and the body, with the signing secret of the app
//! (<https://docs.slack.dev/authentication/verifying-requests-from-slack>).

use std::fmt;

use ring::hmac;
use secrecy::{ExposeSecret, SecretString};

/// The header with the signature.
pub(crate) const SIGNATURE: &str = "x-slack-signature";

/// The header with the time at which the request was signed, in seconds since 1970.
pub(crate) const TIMESTAMP: &str = "x-slack-request-timestamp";

/// The maximum difference between the time of a request and that of this machine, in seconds. Slack recommends it.
const MAX_DIFFERENCE: u64 = 5 * 60;

/// The secret with which Slack signs its requests to an app.
pub(crate) struct SigningSecret {
    /// `None` if the secret is empty: then no signature is accepted, since anybody could make one.
    key: Option<hmac::Key>,
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningSecret").finish_non_exhaustive()
    }
}

impl SigningSecret {
    pub(crate) fn new(secret: &SecretString) -> Self {
        let secret = secret.expose_secret().as_bytes();
        Self { key: (!secret.is_empty()).then(|| hmac::Key::new(hmac::HMAC_SHA256, secret)) }
    }

    /// Returns true if the request was signed with this secret, at most [`MAX_DIFFERENCE`] seconds before or after `now`, in seconds
    /// since 1970. `signature` and `timestamp` are the values of the headers.
    pub(crate) fn signed(&self, body: &[u8], timestamp: &str, signature: &str, now: i64) -> bool {
        let Some(key) = &self.key else { return false };
        let Ok(at) = timestamp.parse::<i64>() else { return false };
        let Some(Ok(signature)) = signature.strip_prefix("v0=").map(hex::decode) else { return false };
        if now.abs_diff(at) > MAX_DIFFERENCE {
            return false;
        }
        let message = [b"v0:", timestamp.as_bytes(), b":", body].concat();
        hmac::verify(key, &message, &signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Slack's documentation.
    const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
    const TIME: i64 = 1_531_420_618;
    const BODY: &str = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V\
        &channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=\
        https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN\
        &trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const EXAMPLE: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";

    fn signed(secret: &str, body: &str, signature: &str, now: i64) -> bool {
        SigningSecret::new(&SecretString::from(secret)).signed(body.as_bytes(), &TIME.to_string(), signature, now)
    }

    #[test]
    fn the_example_of_the_documentation_is_accepted() {
        assert!(signed(SECRET, BODY, EXAMPLE, TIME));
    }

    #[test]
    fn another_secret_body_or_signature_is_refused() {
        assert!(!signed("8f742231b10e8888abcd99yyyzzz85a6", BODY, EXAMPLE, TIME));
        assert!(!signed(SECRET, &BODY.replace("foobar", "foobaz"), EXAMPLE, TIME));
        for wrong in ["", "v0=", "v0=zz", &EXAMPLE[3..], &EXAMPLE[..65], &EXAMPLE.replace("v0=", "v1=")] {
            assert!(!signed(SECRET, BODY, wrong, TIME), "{wrong}");
        }
    }

    #[test]
    fn a_request_is_accepted_for_five_minutes() {
        for (seconds, expected) in [(-301, false), (-300, true), (300, true), (301, false), (i64::MAX - TIME, false)] {
            assert_eq!(signed(SECRET, BODY, EXAMPLE, TIME + seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn a_time_that_is_no_number_is_refused() {
        let secret = SigningSecret::new(&SecretString::from(SECRET));
        assert!(!secret.signed(BODY.as_bytes(), "", EXAMPLE, TIME));
        assert!(!secret.signed(BODY.as_bytes(), "yesterday", EXAMPLE, TIME));
    }

    /// HMAC is defined for an empty secret, with which anybody can sign.
    #[test]
    fn an_empty_secret_accepts_nothing() {
        let message = format!("v0:{TIME}:{BODY}");
        let made = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b""), message.as_bytes());
        assert!(!signed("", BODY, &format!("v0={}", hex::encode(made)), TIME));
    }
}
