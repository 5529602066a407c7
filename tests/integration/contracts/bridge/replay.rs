//! Plays recorded exchanges against a sandbox bridge and compares the answers.
//!
//! What is compared: that there is an answer, its status, the headers that were recorded, every key and every value, with
//! these exceptions. An id, a hash or a tag is learnt where it first appears and has to stand for the same from then on.
//! A time only has to be a time in the same spelling. Durations are left out. JSON inside of a text and the lines of an
//! event stream are compared as JSON, for their keys may come in another order, and numbers may differ in the last digit.
//! When something happens to a job is up to the test: it waits while the recording waited.

use std::{collections::HashMap, path::PathBuf, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use countersign_sandbox::bridge::{Bridge, Options, Role};
use futures_util::StreamExt as _;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::LEFT_OUT;

/// Keys of durations.
const DURATIONS: [&str; 2] = ["uptimeSeconds", "durationMs"];
/// Keys of moments that tools write as seconds.
const MOMENTS: [&str; 4] = ["queuedAt", "submittedAt", "startedAt", "finishedAt"];
/// The headers that are compared if they were recorded.
const HEADERS: [&str; 7] = [
    "content-type",
    "etag",
    "last-modified",
    "allow",
    "mcp-simulation-created-at",
    "mcp-simulation-fingerprint",
    "x-correlation-id",
];

/// One sandbox and what has been learnt about its ids.
pub(super) struct Replay {
    /// The sandbox.
    pub(super) bridge: Bridge,
    http: reqwest::Client,
    folder: &'static str,
    recordings: Vec<(String, Value)>,
    played: usize,
    /// Recorded id to ours.
    ids: HashMap<String, String>,
    other_tokens: HashMap<u32, String>,
}

impl Replay {
    /// Starts a sandbox for a folder of recordings.
    pub(super) async fn of(folder: &'static str, options: Options) -> Self {
        // A second installation is refused, which is fine: the first one is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let whole = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/simulation-api").join(folder);
        let read = |name: &str| -> Value {
            serde_json::from_str(&std::fs::read_to_string(whole.join(name)).unwrap()).unwrap()
        };
        let index = read("index.json");
        let files = std::fs::read_dir(&whole).unwrap().count() - 1;
        assert_eq!(index.as_array().unwrap().len(), files, "the index of {folder} names every recording");
        let names = index.as_array().unwrap().iter().map(|row| row["file"].as_str().unwrap().to_owned());
        Self {
            bridge: Bridge::with(options).await.unwrap(),
            http: reqwest::Client::new(),
            folder,
            recordings: names.map(|name| (name.clone(), read(&name))).collect(),
            played: 0,
            ids: HashMap::new(),
            other_tokens: HashMap::new(),
        }
    }

    /// Goes on with another bridge, which remembers nothing.
    pub(super) async fn continues_with(&mut self, options: Options) {
        self.bridge = Bridge::with(options).await.unwrap();
    }

    /// Says which token the recording with that number was made with.
    pub(super) fn other_token(&mut self, number: u32, token: String) {
        self.other_tokens.insert(number, token);
    }

    /// Asks for a page between two recordings.
    pub(super) async fn meanwhile(&self, path: &str, token: &str) {
        let request = self.http.get(format!("{}{path}", self.bridge.url()));
        assert_eq!(request.bearer_auth(token).send().await.unwrap().status(), 200);
    }

    /// Checks that no recording of the folder is left.
    pub(super) fn is_at_the_end(&self) {
        assert_eq!(self.played, self.recordings.len(), "some recordings of {} are not played", self.folder);
    }

    /// Plays the recordings with these numbers, which have to follow those that were played.
    pub(super) async fn plays(&mut self, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            let (name, recording) = self.recordings[self.played].clone();
            assert!(name.starts_with(&format!("{number:03}-")), "{name} comes next, not {number}");
            self.played += 1;
            self.play(number, &format!("{} {name}", self.folder), &recording).await;
        }
    }

    async fn play(&mut self, number: u32, name: &str, recording: &Value) {
        let (request, expected) = (&recording["request"], &recording["response"]);
        if request.to_string().contains("run_sensitivity_analysis") {
            self.bridge.finish_jobs();
        }
        let stream = request["path"].as_str().unwrap().ends_with("/events") && expected["chunks"].is_array();
        if stream && expected["status"] == 200 {
            self.play_stream(name, request, expected).await;
            return;
        }
        let patience = Duration::from_millis(if expected["status"].is_null() { 500 } else { 20_000 });
        let response = self.send(number, request, patience).await;
        if expected["status"].is_null() {
            assert!(response.is_err(), "{name}: nothing was to be answered");
            return;
        }
        let response = response.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(json!(response.status().as_u16()), expected["status"], "{name}: {}", response.text().await.unwrap());
        self.compare_headers(name, expected, &response);
        let text = response.text().await.unwrap();
        let mut given = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
        let mut wanted = match &expected["body"] {
            Value::String(empty) if empty.is_empty() => Value::Null,
            body => body.clone(),
        };
        for (folder, left_out, part, _) in LEFT_OUT {
            if *folder == self.folder && *left_out == number {
                strip(&mut wanted, part);
                strip(&mut given, part);
            }
        }
        if let Err(difference) = self.compare(&wanted, &given, "") {
            panic!("{name}: {difference}\nrecorded {wanted:#}\nanswered {given:#}");
        }
    }

    /// Plays a stream: jobs go on after the first event, or before it if nothing else was recorded.
    async fn play_stream(&mut self, name: &str, request: &Value, expected: &Value) {
        let wanted = events(expected["body"].as_str().unwrap_or_default());
        let job = request["path"].as_str().unwrap().split('/').nth(2).unwrap();
        let job = self.ids.get(job).cloned().unwrap_or_else(|| job.to_owned());
        let known = self.bridge.jobs().into_iter().find(|(id, _)| *id == job);
        let under_way = known.is_some_and(|(_, state)| state == "queued" || state == "running");
        if wanted.len() == 1 && under_way {
            self.go_on();
        }
        let response = self.send(0, request, Duration::from_secs(20)).await.unwrap();
        assert_eq!(response.status(), 200, "{name}");
        self.compare_headers(name, expected, &response);
        let mut pieces = response.bytes_stream();
        let mut text = String::new();
        while let Some(piece) = pieces.next().await {
            text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
            if wanted.len() > 1 {
                self.go_on();
            }
        }
        let given = events(&text);
        if let Err(difference) = self.compare(&json!(wanted), &json!(given), "") {
            panic!("{name}: {difference}\nrecorded {wanted:#?}\nanswered {given:#?}");
        }
    }

    fn go_on(&self) {
        self.bridge.finish_jobs();
        self.bridge.hold_jobs();
    }

    async fn send(&self, number: u32, request: &Value, patience: Duration) -> Result<Response, reqwest::Error> {
        let method = Method::from_bytes(request["method"].as_str().unwrap().as_bytes()).unwrap();
        let path = self.translate(&request["path"]);
        let mut sent = self.http.request(method, format!("{}{}", self.bridge.url(), path.as_str().unwrap()));
        for (name, value) in request["headers"].as_object().unwrap() {
            let value = self.translate(value);
            let value = match value.as_str().unwrap() {
                "Bearer <viewer token>" => format!("Bearer {}", self.bridge.token(Role::Viewer)),
                "Bearer <operator token>" => format!("Bearer {}", self.bridge.token(Role::Operator)),
                "Bearer <admin token>" => format!("Bearer {}", self.bridge.token(Role::Admin)),
                "Bearer <other token>" => format!("Bearer {}", self.other_tokens[&number]),
                other => other.to_owned(),
            };
            sent = sent.header(name, value);
        }
        sent = match self.translate(&request["body"]) {
            Value::Null => sent,
            Value::String(broken) => sent.body(broken),
            body => sent.body(body.to_string()),
        };
        sent.timeout(patience).send().await
    }

    fn compare_headers(&mut self, name: &str, expected: &Value, response: &Response) {
        for header in HEADERS {
            let Some(wanted) = expected["headers"][header].as_str() else { continue };
            let given = response.headers().get(header).and_then(|value| value.to_str().ok()).unwrap_or_default();
            assert!(self.same_text(wanted, given), "{name}: {header} is `{given}`, not `{wanted}`");
        }
    }

    /// Puts our ids in place of recorded ones.
    fn translate(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let (masked, tokens) = tokens(text);
                let mut parts = masked.split('\u{0}');
                let mut whole = parts.next().unwrap_or_default().to_owned();
                for (token, part) in tokens.iter().zip(parts) {
                    whole.push_str(self.ids.get(&token.text).unwrap_or(&token.text));
                    whole.push_str(part);
                }
                json!(whole)
            }
            Value::Array(items) => items.iter().map(|item| self.translate(item)).collect(),
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(name, value)| (name.clone(), self.translate(value))).collect())
            }
            other => other.clone(),
        }
    }

    fn compare(&mut self, recorded: &Value, ours: &Value, at: &str) -> Result<(), String> {
        let key = at.rsplit('/').next().unwrap_or_default();
        match (recorded, ours) {
            (Value::Object(one), Value::Object(other)) => {
                let missing: Vec<_> = one.keys().filter(|name| !other.contains_key(*name)).collect();
                let extra: Vec<_> = other.keys().filter(|name| !one.contains_key(*name)).collect();
                if !missing.is_empty() || !extra.is_empty() {
                    return Err(format!("at {at}: missing {missing:?}, too much {extra:?}"));
                }
                one.iter().try_for_each(|(name, value)| self.compare(value, &other[name], &format!("{at}/{name}")))
            }
            (Value::Array(one), Value::Array(other)) => {
                if one.len() != other.len() {
                    return Err(format!("at {at}: {} items, not {}", other.len(), one.len()));
                }
                let mut pairs = one.iter().zip(other).enumerate();
                pairs.try_for_each(|(index, (one, other))| self.compare(one, other, &format!("{at}/{index}")))
            }
            (Value::Number(_), Value::Number(_)) if DURATIONS.contains(&key) || MOMENTS.contains(&key) => Ok(()),
            (Value::Number(one), Value::Number(other)) if is_close(one.as_f64(), other.as_f64()) => Ok(()),
            (Value::String(one), Value::String(other)) if at.ends_with("csv/data") => {
                let lines = |text: &str| String::from_utf8(STANDARD.decode(text).unwrap()).unwrap();
                self.compare_tables(&lines(one), &lines(other), at)
            }
            (Value::String(one), Value::String(other)) if one.starts_with("{\n") => {
                let parsed = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
                self.compare(&parsed(one)?, &parsed(other)?, &format!("{at}(text)"))
            }
            (Value::String(one), Value::String(other)) if self.same_text(one, other) => Ok(()),
            (one, other) if one == other => Ok(()),
            (one, other) => Err(format!("at {at}: {other} instead of {one}")),
        }
    }

    fn compare_tables(&mut self, recorded: &str, ours: &str, at: &str) -> Result<(), String> {
        let cell = |text: &str| text.parse::<f64>().map_or_else(|_| json!(text), |number| json!(number));
        let rows = |text: &str| -> Value {
            text.split("\r\n").map(|row| row.split(',').map(cell).collect::<Value>()).collect()
        };
        self.compare(&rows(recorded), &rows(ours), &format!("{at}(table)"))
    }

    /// Compares texts, and learns ids.
    fn same_text(&mut self, recorded: &str, ours: &str) -> bool {
        let ((one, left), (other, right)) = (tokens(recorded), tokens(ours));
        if one != other || left.len() != right.len() {
            return false;
        }
        left.into_iter().zip(right).all(|(left, right)| {
            let same = left.kind == right.kind && left.text.len() == right.text.len();
            let zero = left.text.bytes().all(|byte| byte == b'0');
            if left.kind == Kind::Time || zero || !same {
                return same && (!zero || left.text == right.text);
            }
            *self.ids.entry(left.text).or_insert_with(|| right.text.clone()) == right.text
        })
    }
}

fn is_close(one: Option<f64>, other: Option<f64>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    (one - other).abs() <= 1e-9 * one.abs().max(1.0)
}

/// Removes a part from an answer.
fn strip(value: &mut Value, path: &[&str]) {
    match (path, value) {
        ([last], Value::Object(fields)) => drop(fields.remove(*last)),
        (["*", rest @ ..], Value::Array(items)) => items.iter_mut().for_each(|item| strip(item, rest)),
        ([first, rest @ ..], Value::Object(fields)) => {
            if let Some(inner) = fields.get_mut(*first) {
                strip(inner, rest);
            }
        }
        _ => {}
    }
}

/// Reads the events of a stream: a single `data:` line each.
fn events(text: &str) -> Vec<Value> {
    let blocks = text.split("\n\n").filter(|block| !block.is_empty());
    blocks.map(|block| serde_json::from_str(block.strip_prefix("data: ").unwrap()).unwrap()).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Uuid,
    Hash,
    Tag,
    Snapshot,
    Queue,
    Time,
}

/// A part of a text that is another one in every run.
#[derive(Debug)]
struct Token {
    kind: Kind,
    text: String,
}

/// Takes the tokens out of a text, and leaves a mark where each was.
fn tokens(text: &str) -> (String, Vec<Token>) {
    let mut found = Vec::new();
    let mut masked = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match token(rest) {
            Some((kind, length)) => {
                found.push(Token { kind, text: rest[..length].to_owned() });
                masked.push('\u{0}');
                rest = &rest[length..];
            }
            None => {
                masked.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    (masked, found)
}

/// Finds a token at the beginning of a text: `x` stands for a hexadecimal digit, `9` for a decimal one.
fn token(text: &str) -> Option<(Kind, usize)> {
    let hash = "x".repeat(64);
    let tag = format!("W/\"{}\"", "x".repeat(40));
    let shapes: [(Kind, &str); 9] = [
        (Kind::Uuid, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"),
        (Kind::Hash, &hash),
        (Kind::Tag, &tag),
        (Kind::Snapshot, "99999999T999999999999Z"),
        (Kind::Time, "99999999T999999Z"),
        (Kind::Queue, "SLURM-XXXXXXXX"),
        (Kind::Time, "9999-99-99T99:99:99.999999+00:00"),
        (Kind::Time, "9999-99-99T99:99:99.999999Z"),
        (Kind::Time, "9999-99-99T99:99:99Z"),
    ];
    let fits = |shape: &str| {
        text.len() >= shape.len()
            && shape.bytes().zip(text.bytes()).all(|(shape, byte)| match shape {
                b'x' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
                b'X' => byte.is_ascii_hexdigit(),
                b'9' => byte.is_ascii_digit(),
                other => other == byte,
            })
    };
    shapes.into_iter().find(|(_, shape)| fits(shape)).map(|(kind, shape)| (kind, shape.len()))
}
