//! The HTTP ingress, for events, interactions and commands.
//!
//! There is a path for each of the three settings of an app, but all are handled alike: the kind of a request is
//! determined by its content type and fields. The signature is checked on the raw bytes before anything is decoded.
//!
//! The age of a signature is measured with the system's clock.

use std::{fmt, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{
        HeaderMap, StatusCode,
        header::{CONNECTION, CONTENT_TYPE},
    },
    response::{IntoResponse, Json, Response},
    routing::post,
};
use countersign_core::clock::{Clock, SystemClock};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use tracing::warn;

use super::{
    Identity, Inbound, UnreadableDelivery, command, event, field, interaction,
    payload::Payload,
    signature::{self, SigningSecret},
    sink::{Retry, Sink, Transport, Verdict, deliver},
};

/// The maximum size of a request body, in bytes.
const BODY_LIMIT: usize = 1 << 20;

/// The maximum length of a check of the certificate, in bytes: it has a token and no more.
const MAX_SSL_CHECK: usize = 1024;

/// Returns the routes under `/slack/`. All methods but POST are answered with 405.
pub fn router(signing_secret: &SecretString, us: Identity, sink: Arc<dyn Sink>) -> Router {
    let ingress = Arc::new(Ingress { secret: SigningSecret::new(signing_secret), us, sink });
    Router::new()
        .route("/slack/events", post(on_request))
        .route("/slack/interactions", post(on_request))
        .route("/slack/commands", post(on_request))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(ingress)
}

struct Ingress {
    secret: SigningSecret,
    us: Identity,
    sink: Arc<dyn Sink>,
}

impl fmt::Debug for Ingress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ingress").field("us", &self.us).finish_non_exhaustive()
    }
}

/// The kinds of request.
enum Request {
    /// A request to verify the address, in which Slack expects this text in the answer.
    Challenge(String),
    /// A delivery to be stored.
    Delivery(Box<Result<Inbound, UnreadableDelivery>>),
}

async fn on_request(State(ingress): State<Arc<Ingress>>, headers: HeaderMap, body: Bytes) -> Response {
    let form = header(&headers, CONTENT_TYPE.as_str()).starts_with("application/x-www-form-urlencoded");
    if form && is_ssl_check(&body) {
        return StatusCode::OK.into_response(); // such a request is not signed and has no effect
    }
    let Some(body) = ingress.verified(&headers, &body) else {
        metrics::counter!("countersign_slack_forged_total").increment(1);
        warn!(payload_bytes = body.len(), "Refused a request whose signature is missing, wrong or too old");
        return (StatusCode::UNAUTHORIZED, [(CONNECTION, "close")]).into_response();
    };
    let request = if form { read_form(body, &ingress.us) } else { read_json(body, &ingress.us) };
    let read = match request {
        Request::Challenge(challenge) => return Json(json!({ "challenge": challenge })).into_response(),
        Request::Delivery(read) => *read,
    };
    match deliver(&ingress.sink, read, Transport::Http, retry(&headers)).await {
        Verdict::Acknowledge(Some(payload)) => Json(payload).into_response(),
        Verdict::Acknowledge(None) => StatusCode::OK.into_response(),
        Verdict::Refuse => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

impl Ingress {
    /// Returns the body if Slack signed it, and not long ago.
    fn verified<'a>(&self, headers: &HeaderMap, body: &'a Bytes) -> Option<&'a str> {
        let [timestamp, signed] = [signature::TIMESTAMP, signature::SIGNATURE].map(|name| header(headers, name));
        let is_signed = self.secret.signed(body, timestamp, signed, SystemClock.now().seconds());
        is_signed.then(|| std::str::from_utf8(body).ok())?
    }
}

/// Returns a header as text; empty if there is none.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn retry(headers: &HeaderMap) -> Option<Retry> {
    let attempt = header(headers, "x-slack-retry-num").parse().ok()?;
    Some(Retry { attempt, reason: header(headers, "x-slack-retry-reason").to_owned() })
}

fn is_ssl_check(body: &[u8]) -> bool {
    // Only a short form can be one; that of a click has its whole message.
    body.len() <= MAX_SSL_CHECK
        && url::form_urlencoded::parse(body).any(|(name, value)| name == "ssl_check" && value == "1")
}

fn read_json(body: &str, us: &Identity) -> Request {
    let Ok(body) = serde_json::from_str::<Value>(body) else {
        return Request::Delivery(Box::new(Err(UnreadableDelivery("JSON body"))));
    };
    match field::text(&body, "/type") {
        Some("url_verification") => Request::Challenge(field::text(&body, "/challenge").unwrap_or_default().to_owned()),
        _ => Request::Delivery(Box::new(event::read(&body, us))),
    }
}

fn read_form(body: &str, us: &Identity) -> Request {
    let fields: Map<String, Value> =
        url::form_urlencoded::parse(body.as_bytes()).map(|(name, value)| (name.into_owned(), json!(value))).collect();
    Request::Delivery(Box::new(match fields.get("payload").and_then(Value::as_str) {
        Some(payload) => match Payload::parse(payload) {
            Ok(payload) => interaction::read(payload, us),
            Err(_) => Err(UnreadableDelivery("payload")),
        },
        None => command::read(&Value::Object(fields), us),
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use hmac::{Hmac, KeyInit as _, Mac as _};

    use super::*;
    use crate::sink::{Received, SinkAnswer, SinkError};

    /// A sink that records deliveries, and answers as configured.
    #[derive(Default)]
    struct Notebook {
        received: Mutex<Vec<Received>>,
        answer: Option<Value>,
        broken: bool,
        stuck: bool,
    }

    #[async_trait]
    impl Sink for Notebook {
        async fn receive(&self, received: Received) -> Result<SinkAnswer, SinkError> {
            if self.stuck {
                std::future::pending::<()>().await;
            }
            if self.broken {
                return Err(SinkError("disk full".into()));
            }
            self.received.lock().unwrap().push(received);
            Ok(SinkAnswer { payload: self.answer.clone() })
        }
    }

    struct TestIngress {
        url: String,
        notebook: Arc<Notebook>,
        http: reqwest::Client,
    }

    async fn test_ingress(notebook: Notebook) -> TestIngress {
        rustls::crypto::ring::default_provider().install_default().ok();
        let notebook = Arc::new(notebook);
        let us = Identity::of("U0BOT");
        let router = router(&SecretString::from("shh"), us, notebook.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/slack", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        TestIngress { url, notebook, http: reqwest::Client::new() }
    }

    fn sign(body: &str, at: i64, secret: &str) -> String {
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(format!("v0:{at}:{body}").as_bytes());
        format!("v0={}", hex::encode(mac.finalize().into_bytes()))
    }

    impl TestIngress {
        fn request(&self, path: &str, kind: &str, body: &str, at: i64, secret: &str) -> reqwest::RequestBuilder {
            self.http
                .post(format!("{}/{path}", self.url))
                .header("content-type", kind)
                .header("x-slack-request-timestamp", at)
                .header("x-slack-signature", sign(body, at, secret))
                .body(body.to_owned())
        }

        async fn post(&self, path: &str, kind: &str, body: &str) -> (u16, String) {
            let response = self.request(path, kind, body, SystemClock.now().seconds(), "shh").send().await.unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        }

        fn kinds(&self) -> Vec<&'static str> {
            self.notebook.received.lock().unwrap().iter().map(|received| received.inbound.kind()).collect()
        }
    }

    const JSON: &str = "application/json";
    const FORM: &str = "application/x-www-form-urlencoded";
    const MENTION: &str = r#"{"type":"event_callback","team_id":"T1","api_app_id":"A1","event_id":"Ev1","event":
        {"type":"app_mention","user":"U0ANA","channel":"C1","ts":"1.0","text":"<@U0BOT> hello — ünïcode"}}"#;

    fn interaction() -> String {
        let payload = r#"{"type":"block_actions","user":{"id":"U0BO"},"team":{"id":"T1"},"trigger_id":"1",
            "actions":[{"action_id":"approve","block_id":"b","value":"x&y=z","action_ts":"1.0"}]}"#;
        url::form_urlencoded::Serializer::new(String::new()).append_pair("payload", payload).finish()
    }

    const COMMAND: &str = "command=%2Fupgrade&text=status+all&user_id=U0ANA&team_id=T1&channel_id=C1&trigger_id=1";

    #[tokio::test]
    async fn everything_may_arrive_at_any_path() {
        let test_ingress = test_ingress(Notebook::default()).await;
        for path in ["events", "interactions", "commands"] {
            for (kind, body) in [(JSON, MENTION.to_owned()), (FORM, interaction()), (FORM, COMMAND.to_owned())] {
                assert_eq!(test_ingress.post(path, kind, &body).await, (200, String::new()));
            }
        }
        assert_eq!(test_ingress.kinds(), ["message", "interaction", "command"].repeat(3));
    }

    #[tokio::test]
    async fn only_requests_signed_by_slack_are_accepted() {
        let test_ingress = test_ingress(Notebook::default()).await;
        let now = SystemClock.now().seconds();
        for (at, secret) in [(now, "guess"), (now - 400, "shh"), (now + 400, "shh")] {
            let status = test_ingress.request("events", JSON, MENTION, at, secret).send().await.unwrap().status();
            assert_eq!(status, 401, "{at} {secret}");
        }
        let unsigned =
            test_ingress.http.post(format!("{}/events", test_ingress.url)).body(MENTION).send().await.unwrap();
        assert_eq!(unsigned.status(), 401);
        let other = test_ingress.request("events", JSON, MENTION, now, "shh").body(MENTION.replace("hello", "delete"));
        assert_eq!(other.send().await.unwrap().status(), 401, "another body than the signed one");
        assert!(test_ingress.kinds().is_empty());
    }

    #[tokio::test]
    async fn the_verification_of_the_address_is_answered() {
        let test_ingress = test_ingress(Notebook::default()).await;
        let challenge = r#"{"type":"url_verification","token":"gone","challenge":"c4"}"#;
        assert_eq!(test_ingress.post("events", JSON, challenge).await, (200, r#"{"challenge":"c4"}"#.to_owned()));
        let check = test_ingress.http.post(format!("{}/commands", test_ingress.url)).header("content-type", FORM);
        assert_eq!(check.body("ssl_check=1&token=gone").send().await.unwrap().status(), 200);
        let get = test_ingress.http.get(format!("{}/events", test_ingress.url)).send().await.unwrap();
        assert_eq!(get.status(), 405);
        assert!(test_ingress.kinds().is_empty());
    }

    #[tokio::test]
    async fn what_is_not_stored_is_not_acknowledged() {
        let test_ingress = test_ingress(Notebook { broken: true, ..Notebook::default() }).await;
        assert_eq!(test_ingress.post("events", JSON, MENTION).await.0, 503);
    }

    #[tokio::test]
    async fn a_store_that_hangs_is_not_waited_for() {
        let test_ingress = test_ingress(Notebook { stuck: true, ..Notebook::default() }).await;
        let answer = tokio::time::timeout(PATIENCE_AND_SOME, test_ingress.post("events", JSON, MENTION)).await;
        assert_eq!(answer.unwrap().0, 503);
    }

    const PATIENCE_AND_SOME: std::time::Duration = std::time::Duration::from_millis(2900);

    #[tokio::test]
    async fn what_cannot_be_read_is_acknowledged_and_dropped() {
        let test_ingress = test_ingress(Notebook::default()).await;
        for (kind, body) in [(JSON, "{"), (JSON, "{}"), (FORM, "payload=%7B"), (FORM, "command=%2Fx")] {
            assert_eq!(test_ingress.post("events", kind, body).await.0, 200, "{body}");
        }
        assert!(test_ingress.kinds().is_empty());
    }

    #[tokio::test]
    async fn the_answer_to_a_modal_goes_back_with_the_acknowledgement() {
        let answer = json!({ "response_action": "errors", "errors": { "name": "taken" } });
        let test_ingress = test_ingress(Notebook { answer: Some(answer.clone()), ..Notebook::default() }).await;
        let (status, body) = test_ingress.post("interactions", FORM, &interaction()).await;
        assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (200, answer));
    }

    #[tokio::test]
    async fn a_repeat_is_marked_and_stored_all_the_same() {
        let test_ingress = test_ingress(Notebook::default()).await;
        let request = test_ingress.request("events", JSON, MENTION, SystemClock.now().seconds(), "shh");
        let request = request.header("x-slack-retry-num", "2").header("x-slack-retry-reason", "http_timeout");
        assert_eq!(request.send().await.unwrap().status(), 200);
        let received = test_ingress.notebook.received.lock().unwrap();
        assert_eq!(received[0].retry, Some(Retry { attempt: 2, reason: "http_timeout".into() }));
    }

    #[tokio::test]
    async fn a_huge_request_is_not_read() {
        let test_ingress = test_ingress(Notebook::default()).await;
        assert_eq!(test_ingress.post("events", JSON, &"x".repeat(BODY_LIMIT + 1)).await.0, 413);
    }
}
