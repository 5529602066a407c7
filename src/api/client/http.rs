//! Calls of the API, again and again while the server or the network is away.

use std::{collections::HashMap, time::Duration};

use reqwest::{Client, Method, StatusCode, redirect::Policy};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{Connection, End, Failure};
use crate::mcp::Call;

/// The time limit of a call, in addition to that for which the server waits.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The largest answer that is read, in bytes.
const MAX_ANSWER: usize = 4 << 20;

/// The API, as the holder of a key.
pub(crate) struct Http {
    client: Client,
    url: String,
    key: String,
}

/// The answer to a call that was made.
pub(super) enum Answer {
    /// The server did what was asked.
    Good(Value),
    /// The server refused.
    Refused(Value),
    /// The server cannot answer now; try again after this time, if it is known.
    Later(Option<Duration>, String),
}

/// Returns the value of an argument, or of a variable.
pub(super) fn url(given: Option<&str>, variables: &HashMap<String, String>) -> Result<String, Failure> {
    let url = given.or_else(|| variables.get("COUNTERSIGN_URL").map(String::as_str));
    let url = url.ok_or_else(|| Failure::usage("set --url or COUNTERSIGN_URL to the address of the API"))?;
    Ok(url.trim_end_matches('/').to_owned())
}

pub(super) fn client() -> Result<Client, Failure> {
    // A redirect would take the key elsewhere.
    let client = Client::builder().redirect(Policy::none()).connect_timeout(TIMEOUT).build();
    client.map_err(|error| Failure::usage(format!("cannot set up a client: {error}")))
}

impl Http {
    pub(super) fn new(connection: &Connection, variables: &HashMap<String, String>) -> Result<Self, Failure> {
        let key = match &connection.key_file {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?,
            None => variables.get("COUNTERSIGN_KEY").cloned().unwrap_or_default(),
        };
        let key = key.trim().to_owned();
        if key.is_empty() {
            return Err(Failure::usage("set --key-file or COUNTERSIGN_KEY to a key (csk_…)"));
        }
        Ok(Self { client: client()?, url: url(connection.url.as_deref(), variables)?, key })
    }

    pub(super) async fn get(&self, path: &str, waits: Duration) -> Answer {
        self.call(Method::GET, path, None, None, waits).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value, idempotency_key: Option<&str>) -> Answer {
        self.call(Method::POST, path, Some(body), idempotency_key, Duration::ZERO).await
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        idempotency_key: Option<&str>,
        waits: Duration,
    ) -> Answer {
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        request = request.bearer_auth(&self.key).timeout(TIMEOUT + waits);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(key) = idempotency_key {
            request = request.header("Idempotency-Key", key);
        }
        match request.send().await {
            Ok(response) => read(response).await,
            Err(error) => Answer::Later(None, format!("the server is not reached: {}", error.without_url())),
        }
    }

    /// Makes a call for a tool, again and again for a while if the server or the network is away.
    ///
    /// # Errors
    ///
    /// The problem, with a `detail` in words.
    pub(crate) async fn make(&self, call: Call<'_>) -> Result<Value, Value> {
        let Call { method, path, body, idempotency_key, waits } = call;
        let method = if method == "GET" { Method::GET } else { Method::POST };
        let made = || self.call(method.clone(), &path, body, idempotency_key.as_deref(), waits);
        self.persist(TIMEOUT, made).await.map_err(|failure| serde_json::json!({ "detail": failure.why }))
    }

    /// Makes a call until it is answered, for at most this time.
    pub(super) async fn persist<C: Future<Output = Answer>>(
        &self,
        longest: Duration,
        call: impl Fn() -> C,
    ) -> Result<Value, Failure> {
        let deadline = Instant::now() + longest;
        let mut pause = Duration::from_millis(500);
        loop {
            match call().await {
                Answer::Good(value) => return Ok(value),
                Answer::Refused(problem) => return Err(refused(&problem)),
                Answer::Later(after, why) => {
                    let wait = after.unwrap_or(pause);
                    if Instant::now() + wait > deadline {
                        return Err(Failure { end: End::NotReached, why });
                    }
                    sleep(wait).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
    }
}

async fn read(mut response: reqwest::Response) -> Answer {
    let status = response.status();
    let seconds = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if bytes.len() + chunk.len() <= MAX_ANSWER => bytes.extend_from_slice(&chunk),
            Ok(Some(_)) => return Answer::Later(None, "the answer is too long".to_owned()),
            Ok(None) => break,
            Err(error) => return Answer::Later(None, format!("the answer broke off: {}", error.without_url())),
        }
    }
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    // The same that was rejected stays rejected for a while; everything else of this kind passes.
    let is_for_a_while = body["type"] == "urn:countersign:problem:recently-rejected";
    match status {
        status if status.is_success() && body.is_object() => Answer::Good(body),
        StatusCode::TOO_MANY_REQUESTS if !is_for_a_while => {
            Answer::Later(seconds.map(Duration::from_secs), in_words(&body, status))
        }
        status if status.is_client_error() => Answer::Refused(match body.is_object() {
            true => body,
            false => serde_json::json!({ "detail": in_words(&Value::Null, status) }),
        }),
        status => Answer::Later(seconds.map(Duration::from_secs), in_words(&body, status)),
    }
}

fn in_words(body: &Value, status: StatusCode) -> String {
    body["detail"].as_str().map_or_else(|| format!("the server answered {status}"), str::to_owned)
}

/// Returns the failure for a problem.
pub(super) fn refused(problem: &Value) -> Failure {
    let mut why = problem["detail"].as_str().unwrap_or("the server refused").to_owned();
    for error in problem["errors"].as_array().into_iter().flatten() {
        let (at, what) = (error["pointer"].as_str().unwrap_or_default(), error["detail"].as_str().unwrap_or_default());
        if !why.contains(what) {
            why = format!("{why}\n  {at}: {what}");
        }
    }
    Failure { end: End::Refused, why }
}
