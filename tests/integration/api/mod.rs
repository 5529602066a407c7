//! The API for programs, from outside: real requests over HTTP, and people who press buttons in Slack.

mod agents;
mod callbacks;
mod command;
mod flow;
mod operators;

mod races;

mod threats;
mod vectors;

use std::time::Duration;

use countersign::{
    api::{keys, settings::Api},
    config::Config,
    ids::MessageTs,
};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::support::{
    bot::{BOUND, Setup, TestBot},
    thread::Thread,
};

/// The channel of the cards.
const CHANNEL: (&str, &str) = ("C1", "experiments");

/// The digest of the payload of [`request`], from the vectors.
const DIGEST: &str = "sha-256:bUFGSy299rxTiE2rEVUctyn8JlmJUr49ALnFW6kcJqQ";

/// What a program needs to ask: the names and secrets of its keys.
struct Programs {
    bot: TestBot,
    http: Client,
    /// The secrets, by what the vectors call the keys.
    secrets: Vec<(&'static str, String)>,
}

/// An answer.
#[derive(Debug)]
struct Answered {
    status: u16,
    headers: reqwest::header::HeaderMap,
    body: Value,
}

impl Answered {
    /// Returns the name of the problem.
    fn problem(&self) -> &str {
        self.body["type"].as_str().unwrap_or_default().trim_start_matches("urn:countersign:problem:")
    }

    fn id(&self) -> String {
        self.body["id"].as_str().unwrap_or_else(|| panic!("no id: {self:?}")).to_owned()
    }

    fn state(&self) -> &str {
        self.body["state"].as_str().unwrap_or_default()
    }
}

/// A request as the vectors have it.
fn request() -> Value {
    json!({
        "policy": "deploy-prod", "title": "Deploy web 1.4.2", "reason": "Weekly release",
        "change": {
            "kind": "deploy", "target": "web/production", "payload": { "service": "web", "version": "1.4.2" },
            "fields": [
                { "label": "Version", "pointer": "/version", "before": "1.4.1" },
                { "label": "Service", "pointer": "/service" },
            ],
        },
    })
}

/// Puts an API into the settings. Returns the secrets of its keys.
fn with_api(config: &mut Config, port: u16) -> Vec<(&'static str, String)> {
    let keys = [("ci", "ci-web"), ("reader", "dashboard"), ("other", "other-team")];
    let created = keys.map(|(called, name)| (called, name, keys::create(name)));
    let hash = |at: usize| json!([created[at].2.1]);
    let all = json!(["create", "read", "cancel", "claim", "report"]);
    let policy = |needed: u32| json!({ "channel": CHANNEL.0, "needed": needed, "links": ["github.com"] });
    let mut verified = policy(1);
    verified["require_person"] = true.into();
    let api = json!({
        "listen": format!("127.0.0.1:{port}"), "public_url": "https://countersign.example", "minimum_expiry": "1s",
        "requests_a_minute": 60_000, "mcp": true, "waiting": 100, "cards_a_minute": 10_000,
        "policies": { "deploy-prod": policy(1), "two-people": policy(2), "editable": policy(1),
            "verified-only": verified, "private": policy(1) },
        "keys": {
            "ci-web": { "hashes": hash(0), "scopes": all, "tool_policy": "editable",
                "policies": ["deploy-prod", "two-people", "editable", "verified-only"] },
            "dashboard": { "hashes": hash(1), "scopes": ["read"], "policies": ["deploy-prod"] },
            "other-team": { "hashes": hash(2), "scopes": all, "policies": ["private"] },
        },
    });
    *config.sections.get_mut::<Api>() = serde_json::from_value(api).unwrap();
    created.into_iter().map(|(called, _, (secret, _))| (called, secret)).collect()
}

impl Programs {
    async fn start() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(settings: impl FnOnce(&mut Api) + 'static) -> Self {
        let (tell, told) = std::sync::mpsc::channel();
        let all = move |config: &mut Config| {
            tell.send(with_api(config, 0)).unwrap();
            settings(config.sections.get_mut::<Api>());
        };
        let bot = TestBot::with(Setup { settings: Box::new(all), ..Setup::default() }).await;
        let http = Client::builder().timeout(BOUND).build().unwrap();
        Self { bot, http, secrets: told.recv().unwrap() }
    }

    fn secret(&self, called: &str) -> &str {
        &self.secrets.iter().find(|(known, _)| *known == called).unwrap().1
    }

    async fn call(
        &self,
        as_: Option<&str>,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answered {
        let mut call = self
            .http
            .request(Method::from_bytes(method.as_bytes()).unwrap(), format!("http://{}{path}", self.bot.api()));
        if let Some(called) = as_ {
            call = call.bearer_auth(self.secret(called));
        }
        for (name, value) in headers {
            call = call.header(*name, *value);
        }
        if let Some(body) = body {
            call = call.json(body);
        }
        let response = call.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default();
        Answered { status, headers, body }
    }

    async fn get(&self, path: &str) -> Answered {
        self.call(Some("ci"), "GET", path, &[], None).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answered {
        self.call(Some("ci"), "POST", path, &[], Some(body)).await
    }

    /// Asks under this Idempotency-Key.
    async fn asks(&self, key: &str, body: &Value) -> Answered {
        self.call(Some("ci"), "POST", "/v1/approvals", &[("idempotency-key", key)], Some(body)).await
    }

    /// Asks, and returns the id and the thread once the card is posted.
    async fn asked(&self, key: &str, body: &Value) -> (String, Thread<'_>) {
        let answered = self.asks(key, body).await;
        assert_eq!((answered.status, answered.state()), (201, "pending"), "{answered:?}");
        self.bot.settled().await;
        (answered.id(), self.thread(&answered.body))
    }

    /// Returns the thread of a request, which its address names.
    fn thread(&self, shown: &Value) -> Thread<'_> {
        let url = shown["url"].as_str().unwrap_or_else(|| panic!("no address: {shown}"));
        let digits = url.rsplit_once("/p").unwrap().1;
        let (seconds, fraction) = digits.split_at(digits.len() - 6);
        Thread::new(&self.bot, CHANNEL.1, MessageTs::new(format!("{seconds}.{fraction}")))
    }

    async fn looks(&self, id: &str) -> Answered {
        self.get(&format!("/v1/approvals/{id}")).await
    }

    async fn waits(&self, id: &str, query: &str) -> Answered {
        self.get(&format!("/v1/approvals/{id}?wait=20{query}")).await
    }

    async fn claims(&self, id: &str, digest: &str) -> Answered {
        self.post(&format!("/v1/approvals/{id}/claim"), &json!({ "payload_digest": digest })).await
    }

    async fn reports(&self, id: &str, result: &str) -> Answered {
        self.post(&format!("/v1/approvals/{id}/outcome"), &json!({ "result": result })).await
    }

    async fn cancels(&self, id: &str) -> Answered {
        self.post(&format!("/v1/approvals/{id}/cancel"), &json!({})).await
    }

    /// Moves the clock, and waits until a request has changed for it.
    async fn passes(&self, time: Duration, id: &str) {
        let before = self.looks(id).await.body["revision"].as_u64().unwrap();
        self.bot.clock.advance(time);
        let seen = self.waits(id, &format!("&after={before}")).await;
        assert!(seen.body["revision"].as_u64() > Some(before), "{seen:?}");
        self.bot.settled().await;
    }
}
