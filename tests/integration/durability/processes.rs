//! The program as people run it: `serve` as a process of its own, against the sandbox, in all four ways.

use std::{collections::HashMap, process::Command, time::Duration};

use clap::Parser;
use countersign_playground::sandbox::{self, World};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::process::{COUNTERSIGN, Process, serve};
use crate::support::{bot::BOUND, ports::free_port, redis::RedisServer};

/// How events come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Socket,
    Http,
}

#[tokio::test(flavor = "multi_thread")]
async fn by_socket_with_sqlite() {
    a_dialogue(By::Socket, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_socket_with_redis() {
    let server = RedisServer::start().await;
    a_dialogue(By::Socket, Some(server.url())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_http_with_sqlite() {
    a_dialogue(By::Http, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_http_with_redis() {
    let server = RedisServer::start().await;
    a_dialogue(By::Http, Some(server.url())).await;
}

async fn a_dialogue(by: By, redis: Option<String>) {
    let Given { folder, sandbox, settings, page, bot: here } = given(by, redis).await;
    check(&settings);
    let bot = Process::start(serve(&settings), &folder.path().join("bot.log"));
    page.until_ready(&bot, &here).await;
    assert_eq!(page.get(&format!("{here}/healthz")).await, Some((true, "ok\n".to_owned())));

    let root = page.says("ana", "@countersign start the Math Hints experiment").await;
    let card = page.message_with(&root, "approve").await;
    page.presses("bo", &card, "approve").await;
    page.until("the answer", async || page.thread(&root).await.as_array().unwrap().len() == 3).await;
    page.until("the record", async || !page.thread(&root).await.to_string().contains(r#""action_id":"approve""#)).await;
    let said = page.thread(&root).await;
    assert_eq!(said.as_array().unwrap().len(), 3, "a question, a card, an answer: {said:#}");
    assert!(said[1].to_string().contains("it is running now"), "{said:#}");
    assert_eq!(page.effects().await, 1);

    let (_, metrics) = page.get(&format!("{here}/metrics")).await.unwrap();
    assert!(metrics.contains("countersign_slack_received_total"), "{metrics}");
    assert!(metrics.contains("countersign_slack_calls_total"), "{metrics}");
    let status = bot.stop().await;
    assert!(status.success(), "{status}\n{}", bot.log());
    sandbox.stop().await;
}

/// A sandbox that runs, and what a bot needs that is to run against it.
pub(super) struct Given {
    pub(super) folder: TempDir,
    pub(super) sandbox: World,
    pub(super) settings: HashMap<String, String>,
    pub(super) page: Page,
    /// Where the bot will answer.
    pub(super) bot: String,
}

/// The options of the sandbox, as they are typed.
#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    options: sandbox::Options,
}

pub(super) async fn given(by: By, redis: Option<String>) -> Given {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let bot = format!("http://127.0.0.1:{port}");
    let mut typed = vec!["sandbox", "--slack-port=0", "--upgrade-port=0", "--bridge-port=0"];
    if by == By::Http {
        typed.extend(["--events-url", &bot]);
    }
    let sandbox = World::start(Typed::parse_from(typed).options).await.unwrap();
    let settings = settings(&sandbox, by, port, redis, &folder);
    let page = Page::new(&settings);
    Given { folder, sandbox, settings, page, bot }
}

/// What leads a bot to the sandbox, and what differs here.
fn settings(sandbox: &World, by: By, port: u16, redis: Option<String>, folder: &TempDir) -> HashMap<String, String> {
    let variables = sandbox.variables().into_iter();
    let mut settings: HashMap<_, _> = variables.map(|(name, value)| (name.to_owned(), value)).collect();
    let mut set = |name: &str, value: String| settings.insert(name.to_owned(), value);
    set("PORT", port.to_string());
    set("COUNTERSIGN__APPROVALS__DIGEST_KEY_FILE", folder.path().join("countersign.key").display().to_string());
    match redis {
        Some(url) => set("REDIS_URL", url),
        None => set("COUNTERSIGN__STORE__PATH", folder.path().join("new/threads.sqlite").display().to_string()),
    };
    if by == By::Http {
        settings.remove("SLACK_APP_TOKEN"); // without it, HTTP is what remains
    }
    settings
}

/// `countersign check` finds nothing wrong, in one line each.
fn check(settings: &HashMap<String, String>) {
    let output = Command::new(COUNTERSIGN).arg("check").env_clear().envs(settings).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let names: Vec<_> =
        said.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        names,
        [
            "ok slack",
            "ok scopes",
            "ok events",
            "ok store",
            "ok digest",
            "ok messages",
            "ok model",
            "ok upgrade",
            "ok simulation",
            "ok email",
            "ok actions",
            "ok approvers"
        ],
        "{said}"
    );
    assert!(output.status.success(), "{said}");
}

/// What somebody sees and does who sits before the workspace.
pub(super) struct Page {
    client: reqwest::Client,
    slack: String,
    upgrade: String,
}

impl Page {
    pub(super) fn new(settings: &HashMap<String, String>) -> Self {
        let origin = |name: &str| settings[name].trim_end_matches("/api").to_owned();
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        Self { client, slack: origin("SLACK_API_URL"), upgrade: origin("UPGRADE_API_URL") }
    }

    /// Whether it went well, and what was said.
    pub(super) async fn get(&self, url: &str) -> Option<(bool, String)> {
        let answer = self.client.get(url).send().await.ok()?;
        Some((answer.status().is_success(), answer.text().await.ok()?))
    }

    async fn does(&self, what: &str, act: Value) -> Value {
        let url = format!("{}/workspace/{what}", self.slack);
        let answer: Value = self.client.post(url).json(&act).send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["ok"], true, "{act}: {answer}");
        answer
    }

    pub(super) async fn says(&self, name: &str, text: &str) -> String {
        let act = json!({ "as": name, "channel": "experiments", "text": text });
        self.does("post", act).await["ts"].as_str().unwrap().to_owned()
    }

    pub(super) async fn thread(&self, root: &str) -> Value {
        let url = format!("{}/workspace/thread?as=ana&channel=experiments&ts={root}", self.slack);
        let (_, text) = self.get(&url).await.unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["messages"].take()
    }

    /// How many messages a thread has.
    pub(super) async fn says_in_thread(&self, root: &str) -> usize {
        self.thread(root).await.as_array().map_or(0, Vec::len)
    }

    /// The message with this button, once it is there.
    pub(super) async fn message_with(&self, root: &str, action_id: &str) -> Value {
        let has = |message: &Value| message.to_string().contains(&format!(r#""action_id":"{action_id}""#));
        let find = async || self.thread(root).await.as_array().unwrap().iter().find(|message| has(message)).cloned();
        self.until("a card", async || find().await.is_some()).await;
        find().await.unwrap()
    }

    /// Presses a button; whether the app answered.
    pub(super) async fn tries_to_press(&self, name: &str, message: &Value, action_id: &str) -> bool {
        let ts = &message["ts"];
        let act = json!({ "as": name, "channel": "experiments", "message_ts": ts, "action_id": action_id });
        let sent = self.client.post(format!("{}/workspace/action", self.slack)).json(&act).send().await.unwrap();
        sent.json::<Value>().await.unwrap()["ok"] == true
    }

    pub(super) async fn presses(&self, name: &str, message: &Value, action_id: &str) {
        let ts = &message["ts"];
        let act = json!({ "as": name, "channel": "experiments", "message_ts": ts, "action_id": action_id });
        self.does("action", act).await;
    }

    pub(super) async fn effects(&self) -> usize {
        let (_, ledger) = self.get(&format!("{}/sandbox/ledger", self.upgrade)).await.unwrap();
        let ledger: Vec<Value> = serde_json::from_str(&ledger).unwrap();
        ledger.iter().filter(|entry| entry["effect"] == true).count()
    }

    /// Waits until a bot says that it is ready; one that ended instead has said why.
    pub(super) async fn until_ready(&self, bot: &Process, here: &str) {
        let deadline = tokio::time::Instant::now() + BOUND;
        let readyz = format!("{here}/readyz");
        loop {
            let answer = self.get(&readyz).await;
            if answer.as_ref().is_some_and(|(ok, _)| *ok) {
                return;
            }
            assert_eq!(bot.ended(), None, "the bot ended:\n{}", bot.log());
            assert!(tokio::time::Instant::now() < deadline, "{readyz} says {answer:?}; the bot:\n{}", bot.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) async fn until(&self, what: &str, fact: impl AsyncFn() -> bool) {
        let deadline = tokio::time::Instant::now() + BOUND;
        while !fact().await {
            assert!(tokio::time::Instant::now() < deadline, "waited in vain for {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
