//! Plays recorded exchanges against a sandbox and compares the answers.
//!
//! What is compared: the status, every key and every value, with these exceptions. An id is learnt where it first appears and has
//! to stay the same from then on. A time of the day of recording only has to be a time, a two-character id two characters. Lists
//! may come in another order, as the platform promises none. To make pages comparable, which are cut in order of id, an
//! experiment is created under its recorded id.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use countersign::clock::{Clock, Timestamp};
use countersign_sandbox::upgrade::{Options, SandboxUpgrade, Version};
use reqwest::Method;
use serde_json::{Map, Value, json};

/// The token the recorded administrator used.
pub(crate) const TOKEN: &str = "service-account-access-token";

/// The day of recording; each look takes a millisecond.
#[derive(Debug)]
pub(crate) struct RecordingDay(AtomicI64);

impl RecordingDay {
    pub(crate) fn shared() -> Arc<dyn Clock> {
        let noon: jiff::Timestamp = "2026-11-20T15:48:00Z".parse().unwrap();
        Arc::new(Self(AtomicI64::new(noon.as_millisecond())))
    }
}

impl Clock for RecordingDay {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

/// A plain client with a time-out.
pub(crate) fn http() -> reqwest::Client {
    // A second installation is refused, which is fine: the first one is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(std::time::Duration::from_secs(10)).build().unwrap()
}

/// One sandbox and what has been learnt about its ids.
pub(crate) struct Replay {
    pub(crate) sandbox: SandboxUpgrade,
    http: reqwest::Client,
    folder: PathBuf,
    /// Recorded id to ours.
    ids: HashMap<String, String>,
}

impl Replay {
    /// A fresh sandbox of that version; `token` as in [`Options`].
    pub(crate) async fn of(version: Version, token: Option<&str>) -> Self {
        let token = token.map(str::to_owned);
        let options = Options { version, token, clock: RecordingDay::shared(), ..Options::default() };
        let folder = match version {
            Version::V6_5 => "6.5",
            Version::V6_2 => "6.2",
        };
        Self {
            sandbox: SandboxUpgrade::start(options).await.unwrap(),
            http: http(),
            folder: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/upgrade").join(folder),
            ids: HashMap::new(),
        }
    }

    /// Says which of our ids a recorded one stands for.
    pub(crate) fn is(&mut self, recorded: &str, ours: &str) {
        self.ids.insert(recorded.to_owned(), ours.to_owned());
    }

    /// Our id for a recorded one.
    pub(crate) fn ours(&self, recorded: &str) -> String {
        self.ids.get(recorded).cloned().unwrap_or_else(|| recorded.to_owned())
    }

    /// Plays the recordings with these numbers, in order.
    pub(crate) async fn plays(&mut self, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            self.plays_but(number, &[]).await;
        }
    }

    /// Plays one recording and leaves some parts of the answer out of the comparison, named as in `nodes/*/data`.
    pub(crate) async fn plays_but(&mut self, number: u32, except: &[&str]) {
        let (name, recording) = self.load(number);
        let request = &recording["request"];
        let mut body = self.translate(&request["body"]);
        let expected = &recording["response"];
        let created = request["path"] == "/api/experiments" && request["method"] == "POST" && expected["status"] == 200;
        if created && body["id"].is_null() {
            body["id"] = json!(self.ours(expected["body"]["id"].as_str().unwrap()));
        }
        let headers = request["headers"].as_object().unwrap();
        let path = self.translate(&request["path"]);
        let (status, answer) =
            self.send(request["method"].as_str().unwrap(), path.as_str().unwrap(), headers, &body).await;
        assert_eq!(json!(status), expected["status"], "{name} answered {answer:#}");
        let (mut wanted, mut given) = (expected["body"].clone(), answer);
        for path in except {
            let path: Vec<_> = path.split('/').collect();
            strip(&mut wanted, &path);
            strip(&mut given, &path);
        }
        if wanted["request"].is_object() && created {
            // The id that was added to the request.
            strip(&mut given, &["request", "id"]);
        }
        if let Err(difference) = self.compare(&wanted, &given, "") {
            panic!("{name}: {difference}\nrecorded {wanted:#}\nanswered {given:#}");
        }
    }

    /// A call that was made between the recordings.
    pub(crate) async fn meanwhile(&self, method: &str, path: &str, user: Option<&str>, body: Value) -> Value {
        let mut headers = Map::new();
        headers.insert("Authorization".to_owned(), json!(format!("Bearer {TOKEN}")));
        if let Some(user) = user {
            headers.insert("User-Id".to_owned(), json!(user));
        }
        let (status, answer) = self.send(method, &format!("/api{path}"), &headers, &body).await;
        assert_eq!(status, 200, "{method} {path}: {answer:#}");
        answer
    }

    /// Every recording that has a file must have been played or be explained.
    pub(crate) fn numbers_in(folder: &str) -> HashSet<u32> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/upgrade").join(folder);
        let names = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        names.map(|name| name[..3].parse().unwrap()).collect()
    }

    /// The exchange with that number, as it was recorded.
    pub(crate) fn recorded(&self, number: u32) -> Value {
        self.load(number).1
    }

    /// The id of the experiment an exchange is about.
    pub(crate) fn recorded_experiment(&self, number: u32) -> String {
        self.recorded(number)["response"]["body"]["id"].as_str().unwrap().to_owned()
    }

    fn load(&self, number: u32) -> (String, Value) {
        let start = format!("{number:03}-");
        let mut files = std::fs::read_dir(&self.folder).unwrap().map(|file| file.unwrap().path());
        let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&start);
        let path = files.find(named).unwrap_or_else(|| panic!("no recording {number}"));
        let recording = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), recording)
    }

    async fn send(&self, method: &str, path: &str, headers: &Map<String, Value>, body: &Value) -> (u16, Value) {
        let root = self.sandbox.url().trim_end_matches("/api").to_owned();
        let mut request = self.http.request(Method::from_bytes(method.as_bytes()).unwrap(), format!("{root}{path}"));
        for (name, value) in headers {
            // Roles are not enforced, so the one token of the sandbox stands for the reader's too.
            let value = value.as_str().unwrap().replace("reader-id-token", TOKEN);
            request = request.header(name, value);
        }
        request = match body {
            Value::Null => request,
            Value::String(broken) => request.body(broken.clone()),
            body => request.body(body.to_string()),
        };
        let response = request.send().await.unwrap();
        assert!(response.headers().contains_key("x-request-id"), "{method} {path} has no request id");
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    fn translate(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => json!(replace_ids(text, |id| self.ours(id))),
            Value::Array(items) => items.iter().map(|item| self.translate(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| (name.clone(), self.translate(value)));
                Value::Object(fields.collect())
            }
            other => other.clone(),
        }
    }

    fn compare(&mut self, recorded: &Value, ours: &Value, at: &str) -> Result<(), String> {
        match (recorded, ours) {
            (Value::Object(one), Value::Object(other)) => {
                let keys = |map: &Map<String, Value>| map.keys().cloned().collect::<std::collections::BTreeSet<_>>();
                let (left, right) = (keys(one), keys(other));
                if left != right {
                    let missing: Vec<_> = left.difference(&right).collect();
                    let extra: Vec<_> = right.difference(&left).collect();
                    return Err(format!("at {at}: missing {missing:?}, too much {extra:?}"));
                }
                one.iter().try_for_each(|(name, value)| self.compare(value, &other[name], &format!("{at}/{name}")))
            }
            (Value::Array(one), Value::Array(other)) => {
                if one.len() != other.len() {
                    return Err(format!("at {at}: {} items, not {}", other.len(), one.len()));
                }
                let known: HashSet<String> = self.ids.values().cloned().collect();
                let left = sorted(one, |id| self.ids.get(id).cloned());
                let right = sorted(other, |id| known.contains(id).then(|| id.to_owned()));
                let pairs = left.into_iter().zip(right).enumerate();
                for (index, (left, right)) in pairs {
                    self.compare(left, right, &format!("{at}/{index}"))?;
                }
                Ok(())
            }
            (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => Ok(()),
            (Value::String(one), Value::String(other)) if self.same_text(one, other, at) => Ok(()),
            (one, other) if one == other => Ok(()),
            (one, other) => Err(format!("at {at}: {other} instead of {one}")),
        }
    }

    fn same_text(&mut self, recorded: &str, ours: &str, at: &str) -> bool {
        if at.ends_with("/twoCharacterId") {
            return ours.len() == 2 && recorded.len() == 2;
        }
        if is_time_of_recording(recorded) {
            return ours.parse::<jiff::Timestamp>().is_ok();
        }
        let (left, right) = (ids_in(recorded), ids_in(ours));
        for (recorded, ours) in left.iter().zip(&right) {
            if *self.ids.entry(recorded.clone()).or_insert_with(|| ours.clone()) != *ours {
                return false;
            }
        }
        let blank = |text: &str| mask_times(&replace_ids(text, |_| "<id>".to_owned()));
        left.len() == right.len() && blank(recorded) == blank(ours)
    }
}

/// Removes what a path such as `nodes/*/user` leads to.
fn strip(value: &mut Value, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else { return };
    match value {
        Value::Object(fields) if rest.is_empty() => {
            fields.remove(*first);
        }
        Value::Object(fields) => {
            if let Some(inner) = fields.get_mut(*first) {
                strip(inner, rest);
            }
        }
        Value::Array(items) if *first == "*" => items.iter_mut().for_each(|item| strip(item, rest)),
        _ => {}
    }
}

/// The items in an order that does not depend on ids nobody knows yet.
fn sorted(items: &[Value], known: impl Fn(&str) -> Option<String>) -> Vec<&Value> {
    let mut items: Vec<_> = items.iter().map(|item| (signature(item, &known), item)).collect();
    items.sort_by(|one, other| one.0.cmp(&other.0));
    items.into_iter().map(|(_, item)| item).collect()
}

fn signature(value: &Value, known: &impl Fn(&str) -> Option<String>) -> String {
    match value {
        Value::Array(items) => {
            let mut inner: Vec<_> = items.iter().map(|item| signature(item, known)).collect();
            inner.sort();
            format!("[{}]", inner.join(","))
        }
        Value::Object(fields) => {
            let mut inner: Vec<_> = fields
                .iter()
                .filter(|(name, _)| *name != "twoCharacterId")
                .map(|(name, value)| format!("{name}:{}", signature(value, known)))
                .collect();
            inner.sort();
            format!("{{{}}}", inner.join(","))
        }
        Value::String(text) if is_time_of_recording(text) => "<time>".to_owned(),
        Value::String(text) => replace_ids(text, |id| known(id).unwrap_or_else(|| "<id>".to_owned())),
        Value::Number(number) => number.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}

fn is_time_of_recording(text: &str) -> bool {
    text.starts_with("2026-11-20T") && text.parse::<jiff::Timestamp>().is_ok()
}

fn mask_times(text: &str) -> String {
    let mut masked = text.to_owned();
    while let Some(at) = masked.find("2026-11-20T") {
        let end = masked[at..].find('Z').map_or(masked.len(), |length| at + length + 1);
        masked.replace_range(at..end, "<time>");
    }
    masked
}

fn ids_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    replace_ids(text, |id| {
        found.push(id.to_owned());
        String::new()
    });
    found
}

/// Puts something else in place of each id in a text.
fn replace_ids(text: &str, mut by: impl FnMut(&str) -> String) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match rest.get(..36).filter(|start| start.as_bytes()[8] == b'-' && uuid::Uuid::try_parse(start).is_ok()) {
            Some(id) => {
                result.push_str(&by(id));
                rest = &rest[36..];
            }
            None => {
                result.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    result
}
