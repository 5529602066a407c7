//! The stand-in workspace behaves as Slack does: what it takes, refuses, delivers, repeats and forgets.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod faults;
mod http_delivery;
mod limits;
mod page;
mod persistence;
mod socket;
mod web_api;

use std::{sync::OnceLock, time::Duration};

use countersign_sandbox::slack::{Mode, Options, SandboxSlack};
use serde_json::{Value, json};

/// Long enough for anything that happens at all.
const SOON: Duration = Duration::from_secs(10);

/// Options with short waits.
fn quick() -> Options {
    Options {
        answer_within: Duration::from_millis(400),
        redeliver_after: vec![Duration::from_millis(10); 3],
        linger: Duration::from_millis(100),
        ..Options::default()
    }
}

fn over_http(events_url: Option<String>) -> Options {
    Options {
        mode: Mode::Http { events_url, signing_secret: "8f742231b10e8888abcd99yyyzzz85a5".to_owned() },
        ..quick()
    }
}

/// One client for all tests, which keeps no connection: each test has a runtime of its own.
fn http() -> &'static reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        rustls::crypto::ring::default_provider().install_default().ok();
        reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .pool_max_idle_per_host(0)
            .timeout(SOON)
            .build()
            .unwrap()
    })
}

/// Calls a method as the bot does.
async fn call(slack: &SandboxSlack, method: &str, body: Value) -> Value {
    let request = http().post(format!("{}/{method}", slack.api_url())).bearer_auth(slack.bot_token()).json(&body);
    request.send().await.unwrap().json().await.unwrap()
}

async fn post(slack: &SandboxSlack, body: Value) -> String {
    let answer = call(slack, "chat.postMessage", body).await;
    assert_eq!(answer["ok"], true, "{answer}");
    answer["ts"].as_str().unwrap().to_owned()
}

/// What the page asks the workspace to do.
async fn act(slack: &SandboxSlack, path: &str, body: Value) -> Value {
    let request = http().post(format!("{}/workspace/{path}", slack.url())).json(&body);
    request.send().await.unwrap().json().await.unwrap()
}

/// What the page is shown.
async fn see(slack: &SandboxSlack, path: &str) -> Value {
    http().get(format!("{}/workspace/{path}", slack.url())).send().await.unwrap().json().await.unwrap()
}

fn buttons(labels: &[&str]) -> Value {
    let button = |label: &&str| {
        json!({ "type": "button", "action_id": format!("do_{label}"), "value": format!("key-{label}"),
                "text": { "type": "plain_text", "text": label } })
    };
    let buttons: Vec<Value> = labels.iter().map(button).collect();
    json!([
        { "type": "section", "text": { "type": "mrkdwn", "text": "Start *Math Hints*?" } },
        { "type": "actions", "block_id": "answers", "elements": buttons },
    ])
}

fn modal(title: &str) -> Value {
    json!({
        "type": "modal", "callback_id": "why", "notify_on_close": true,
        "title": { "type": "plain_text", "text": title }, "submit": { "type": "plain_text", "text": "Save" },
        "blocks": [{
            "type": "input", "block_id": "reason", "label": { "type": "plain_text", "text": "Reason" },
            "element": { "type": "plain_text_input", "action_id": "text" },
        }],
    })
}
