//! Attempts to deliver over HTTP: requests to the app with Slack's signature.

use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::time::{Instant, timeout_at};

use super::{
    delivery::{Delivery, Kind, Outcome, Retry},
    ledger::Attempt,
    server::{Server, locked},
};

const CHALLENGE: &str = "countersign-sandbox-challenge";

/// Returns the `x-slack-signature` of a body. The timestamp is in seconds.
pub(super) fn signature(secret: &str, timestamp: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(format!("v0:{timestamp}:{body}").as_bytes());
    format!("v0={}", hex::encode(mac.finalize().into_bytes()))
}

/// Sends a delivery to the app and returns the outcome. The first request to a new address is `url_verification`.
pub(super) async fn attempt(server: &Arc<Server>, delivery: &Delivery, retry: &Retry, secret: &str) -> Outcome {
    let deadline = Instant::now() + server.options.answer_within;
    let address = locked(&server.app).clone();
    let Some(url) = address.url else { return Outcome::failed("connection_failed") };
    if !address.verified {
        if !verify(server, &url, secret, deadline).await {
            return Outcome::failed("connection_failed");
        }
        let mut address = locked(&server.app);
        if address.url.as_ref() == Some(&url) {
            address.verified = true;
        }
    }
    let (path, content_type, body) = match delivery.kind {
        Kind::Event => ("events", "application/json", delivery.payload.to_string()),
        Kind::Interaction => {
            ("interactions", "application/x-www-form-urlencoded", form([("payload", delivery.payload.to_string())]))
        }
        Kind::Command => {
            let fields = delivery.payload.as_object().into_iter().flatten();
            let fields = fields.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default().to_owned()));
            ("commands", "application/x-www-form-urlencoded", form(fields))
        }
    };
    let mut request = signed(server, &format!("{url}/slack/{path}"), secret, content_type, body);
    if retry.number > 0 {
        request = request.header("x-slack-retry-num", retry.number).header("x-slack-retry-reason", &retry.reason);
    }
    match timeout_at(deadline, answer(request)).await {
        Err(_) => Outcome::failed("http_timeout"),
        Ok(Err(_)) => Outcome::failed("connection_failed"),
        Ok(Ok((status, _, text))) if (200..300).contains(&status) => Outcome::Acknowledged(content(text)),
        Ok(Ok((_, no_retry, _))) => Outcome::Failed { reason: "http_error".to_owned(), again: !no_retry },
    }
}

/// Asks the app to repeat a challenge.
pub(super) async fn verify(server: &Arc<Server>, url: &str, secret: &str, deadline: Instant) -> bool {
    let (at, started) = (server.now(), Instant::now());
    let payload = json!({ "token": "legacy-verification-token", "challenge": CHALLENGE, "type": "url_verification" });
    let request = signed(server, &format!("{url}/slack/events"), secret, "application/json", payload.to_string());
    let failure = match timeout_at(deadline, answer(request)).await {
        Err(_) => Some("http_timeout"),
        Ok(Err(_)) => Some("connection_failed"),
        Ok(Ok((200, _, text)))
            if text.trim() == CHALLENGE || content(text.clone()).is_some_and(|v| v["challenge"] == CHALLENGE) =>
        {
            None
        }
        Ok(Ok(_)) => Some("http_error"),
    };
    server.ledger.delivered(Attempt {
        at,
        kind: "url_verification".to_owned(),
        id: CHALLENGE.to_owned(),
        about: "url_verification".to_owned(),
        attempt: 1,
        acknowledged_after_ms: failure
            .is_none()
            .then(|| u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)),
        failure: failure.map(str::to_owned),
        payload,
    });
    failure.is_none()
}

fn signed(server: &Server, url: &str, secret: &str, content_type: &str, body: String) -> reqwest::RequestBuilder {
    let timestamp = server.now().seconds().to_string();
    server
        .http
        .post(url)
        .header(CONTENT_TYPE, content_type)
        .header("user-agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
        .header("x-slack-signature", signature(secret, &timestamp, &body))
        .header("x-slack-request-timestamp", timestamp)
        .body(body)
}

async fn answer(request: reqwest::RequestBuilder) -> Result<(u16, bool, String), reqwest::Error> {
    let response = request.send().await?;
    let no_retry = response.headers().get("x-slack-no-retry").is_some_and(|value| value == "1");
    Ok((response.status().as_u16(), no_retry, response.text().await?))
}

/// Returns the content of the app's acknowledgement. Plain text means an object with that text.
fn content(text: String) -> Option<Value> {
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(object)) => Some(object).filter(|object| !object.is_empty()).map(Value::Object),
        Ok(Value::Null) => None,
        _ if text.trim().is_empty() => None,
        _ => Some(json!({ "text": text })),
    }
}

fn form<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}
