//! A callback survives its sender: the process is killed while the receiver is about to answer.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use axum::{Router, http::HeaderMap, http::StatusCode, routing::post};
use countersign::api::keys;
use serde_json::{Value, json};

use super::{
    process::{Process, serve},
    processes::{By, Given, given},
};
use crate::support::{bot::eventually, ports::free_port};

/// The ids of the messages that arrived, and whether they are answered.
#[derive(Clone, Default)]
struct Receiver {
    ids: Arc<Mutex<Vec<String>>>,
    answers: Arc<AtomicBool>,
}

impl Receiver {
    /// Listens. Returns the address as well.
    async fn start() -> (Self, String) {
        let receiver = Self::default();
        let Self { ids, answers } = receiver.clone();
        let hook = post(move |headers: HeaderMap| async move {
            ids.lock().unwrap().push(headers["webhook-id"].to_str().unwrap().to_owned());
            if !answers.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            StatusCode::NO_CONTENT
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().route("/hook", hook)).await.unwrap() });
        (receiver, url)
    }

    fn all(&self) -> Vec<String> {
        self.ids.lock().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_is_sent_again_after_a_kill() {
    let Given { folder, sandbox, mut settings, page, bot: here } = given(By::Socket, None).await;
    let (receiver, url) = Receiver::start().await;
    let ((key, hash), port) = (keys::create("ci"), free_port());
    let file = folder.path().join("settings.toml");
    let text = format!(
        "[api]\nlisten = \"127.0.0.1:{port}\"\n[api.policies.deploy]\nchannel = \"C1\"\ncallback = \"hook\"\n\
         [api.callbacks.hook]\nurl = \"{url}\"\nsecret_env = \"HOOK_SECRET\"\n\
         [api.keys.ci]\nhashes = [\"{hash}\"]\nscopes = [\"create\"]\npolicies = [\"deploy\"]\n"
    );
    std::fs::write(&file, text).unwrap();
    settings.insert("HOOK_SECRET".to_owned(), "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3".to_owned());
    settings.insert("COUNTERSIGN__SLACK__TIMEOUT".to_owned(), "1s".to_owned());
    let start = || {
        let mut command = serve(&settings);
        command.arg("--config").arg(&file);
        Process::start(command, &folder.path().join("bot.log"))
    };
    let bot = start();
    page.until_ready(&bot, &here).await;
    let body =
        json!({ "policy": "deploy", "title": "T", "change": { "kind": "deploy", "target": "web", "payload": {} } });
    let asked = reqwest::Client::new().post(format!("http://127.0.0.1:{port}/v1/approvals"));
    let asked = asked.bearer_auth(key).header("idempotency-key", "k").json(&body).send().await.unwrap();
    let asked: Value = asked.json().await.unwrap();
    let digits = asked["url"].as_str().unwrap_or_else(|| panic!("{asked}")).rsplit_once("/p").unwrap().1;
    let root = format!("{}.{}", &digits[..digits.len() - 6], &digits[digits.len() - 6..]);
    let card = page.message_with(&root, "approve").await;
    page.presses("bo", &card, "approve").await;
    eventually("the first attempt", || receiver.all().len() == 1).await;
    bot.kill();
    receiver.answers.store(true, Ordering::SeqCst);
    let bot = start();
    page.until_ready(&bot, &here).await;
    eventually("the next attempt", || receiver.all().len() == 2).await;
    let ids = receiver.all();
    assert_eq!(ids[0], ids[1], "the same message");
    assert!(bot.stop().await.success(), "{}", bot.log());
    sandbox.stop().await;
}
