//! `countersign-playground` as a process of its own, and what its page is told.

use std::{
    io::{BufRead as _, BufReader, Lines},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::BOUND;

/// The program, to be given its arguments. A model's key or settings of whoever runs the tests would change what it says.
pub(super) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign-playground"));
    command.env_clear().stdin(Stdio::null());
    command
}

/// A running program; gone with the test.
pub(super) struct Running(Child);

impl Running {
    /// Starts it.
    pub(super) fn start(command: &mut Command) -> Self {
        Self(command.spawn().expect("the program was built with this test"))
    }

    /// The lines that it says, if they are piped.
    pub(super) fn lines(&mut self) -> Lines<BufReader<ChildStdout>> {
        BufReader::new(self.0.stdout.take().expect("it is piped")).lines()
    }

    /// Sends it a signal that asks it to end, and waits.
    pub(super) async fn ends_at(mut self, signal: &str) -> ExitStatus {
        let told = Command::new("kill").args([signal, &self.0.id().to_string()]).status().expect("`kill` is there");
        assert!(told.success(), "it had ended already");
        let began = Instant::now();
        loop {
            if let Some(ended) = self.0.try_wait().expect("it is our child") {
                return ended;
            }
            assert!(began.elapsed() < BOUND, "it does not end");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that it has already ended.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A running playground; gone with the test.
pub(super) struct Playground {
    process: Running,
    url: String,
    http: reqwest::Client,
    /// Read no further, but kept open: it goes on talking.
    said_on: Lines<BufReader<ChildStdout>>,
}

/// A button of a message.
pub(super) struct Button {
    message: String,
    block: String,
    element: Value,
}

impl Playground {
    /// Starts on a free port; what it keeps is in `folder`.
    pub(super) fn start(folder: &TempDir) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut process =
            Running::start(program().args(["--port", "0", "--data"]).arg(folder.path()).stdout(Stdio::piped()));
        let said_on = process.lines();
        let http = reqwest::Client::builder().no_proxy().timeout(BOUND).build().unwrap();
        let mut playground = Self { process, url: String::new(), http, said_on };
        let mut said = playground.said_on.by_ref().map_while(Result::ok);
        let url = said.find_map(|line| Some(format!("http://{}", line.split_once("http://")?.1)));
        playground.url = url.expect("it says where it is");
        playground
    }

    /// Where the page is.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Ends it as Ctrl-C does.
    pub(super) async fn stop(self) {
        let ended = self.process.ends_at("-INT").await;
        assert!(ended.success(), "{ended}");
    }

    /// What the page sends when somebody does something.
    pub(super) async fn does(&self, what: &str, act: Value) -> Value {
        let answer = self.http.post(format!("{}/workspace/{what}", self.url)).json(&act).send().await.unwrap();
        let done: Value = answer.json().await.unwrap();
        assert_eq!(done["ok"], true, "{what}: {done}");
        done
    }

    /// Waits for a button with this label in a thread of #experiments.
    pub(super) async fn button(&self, root: &str, label: &str) -> Button {
        self.eventually(&format!("a button {label}"), async || {
            let messages = self.thread(root).await;
            let mut all = messages.iter().flat_map(buttons_of);
            all.find(|button| button.element["text"]["text"] == label)
        })
        .await
    }

    /// The labels of all buttons in a thread that decide something.
    pub(super) async fn buttons(&self, root: &str) -> Vec<String> {
        let messages = self.thread(root).await;
        let decide = |button: &Button| matches!(button.element["action_id"].as_str(), Some("approve" | "reject"));
        let all = messages.iter().flat_map(buttons_of).filter(decide);
        all.map(|button| button.element["text"]["text"].to_string()).collect()
    }

    /// Waits until a message in a thread holds these words.
    pub(super) async fn says(&self, root: &str, words: &str) {
        self.eventually(&format!("the words {words}"), async || {
            self.thread(root).await.iter().any(|message| message.to_string().contains(words)).then_some(())
        })
        .await;
    }

    async fn thread(&self, root: &str) -> Vec<Value> {
        let address = format!("{}/workspace/thread?as=U1&channel=C1&ts={root}", self.url);
        let mut shown: Value = self.http.get(address).send().await.unwrap().json().await.unwrap();
        let Value::Array(messages) = shown["messages"].take() else { panic!("no thread {root}: {shown}") };
        messages
    }

    async fn eventually<T>(&self, what: &str, fact: impl AsyncFn() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = fact().await {
                return found;
            }
            assert!(began.elapsed() < BOUND, "waited in vain for {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Button {
    /// What the page sends when it is pressed.
    pub(super) fn pressed_by(&self, user: &str) -> Value {
        let Self { message, block, element } = self;
        json!({
            "as": user, "channel": "C1", "message_ts": message, "block_id": block, "action_id": element["action_id"],
            "type": "button", "value": element["value"],
        })
    }
}

fn buttons_of(message: &Value) -> Vec<Button> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for block in message["blocks"].as_array().into_iter().flatten().filter(|block| block["type"] == "actions") {
        for element in block["elements"].as_array().into_iter().flatten() {
            let (message, block) = (text(&message["ts"]), text(&block["block_id"]));
            found.push(Button { message, block, element: element.clone() });
        }
    }
    found
}
