//! `countersign token verify`: for whoever carries a change out and is not the program that asked.

use std::{io::Read as _, path::Path, time::Duration};

use countersign_core::clock::{Clock as _, SystemClock};
use serde_json::Value;

use super::{End, Failure, Variables, VerifyArgs, http, read_payload, say};
use crate::token::{Expected, verify};

/// The longest key set, in bytes.
const MAX_KEYS: usize = 64 << 10;

pub(super) async fn run(arguments: &VerifyArgs, variables: &Variables) -> Result<End, Failure> {
    let payload = read_payload(&arguments.payload)?;
    let issuer = http::url(arguments.url.as_deref(), variables)?;
    let token = match &arguments.token {
        Some(path) => read(path)?,
        None => {
            let mut token = String::new();
            let read = std::io::stdin().read_to_string(&mut token);
            read.map_err(|error| Failure::usage(format!("cannot read the token: {error}")))?;
            token
        }
    };
    let set: Value = match &arguments.keys {
        Some(path) => serde_json::from_str(&read(path)?)
            .map_err(|error| Failure::usage(format!("{}: this is no key set: {error}", path.display())))?,
        None => key_set(&issuer).await?,
    };
    let now = SystemClock.now();
    let expected = Expected { issuer: &issuer, audience: Some(&arguments.audience), payload: Some(&payload), now };
    let claims =
        verify(token.trim(), &set, expected).map_err(|why| Failure { end: End::Refused, why: why.to_owned() })?;
    let text = |name: &str| claims[name].as_str().unwrap_or_default().to_owned();
    say(&format!("The token is valid: {} of {}, {} “{}”.", text("jti"), text("sub"), text("kind"), text("target")));
    Ok(End::Good)
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))
}

async fn key_set(issuer: &str) -> Result<Value, Failure> {
    let not_reached = |why: String| Failure { end: End::NotReached, why };
    let request = http::client()?.get(format!("{issuer}/.well-known/jwks.json")).timeout(Duration::from_secs(20));
    let mut response =
        request.send().await.map_err(|error| not_reached(format!("the server is not reached: {error}")))?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| not_reached(error.to_string()))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_KEYS {
            return Err(not_reached("the answer is too long".to_owned()));
        }
    }
    serde_json::from_slice(&bytes).map_err(|_| not_reached("the server did not answer with a key set".to_owned()))
}
