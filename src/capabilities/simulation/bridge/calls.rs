//! The calls to the bridge. All are signed; reads are repeated, and changes carry a confirmation.

use backon::Retryable as _;
use countersign_core::{send_permit, status_line};
use countersign_services::{
    changes::Changes,
    event_stream::Stream,
    http::{self, Lost},
};
use reqwest::{Method, RequestBuilder};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::{
    answer::{Kind, of_call_tool, of_mcp, unanswered, understand},
    client::{BridgeClient, Version},
    confirmed::Confirmed,
    error::Error,
    token::Role,
};

/// The version of MCP that this client speaks.
const MCP_VERSION: &str = "2025-11-25";

/// Returns the path and the body of a tool call for this version of the bridge.
fn tool_call(version: Version, tool: &str, arguments: Value, key: Option<&str>) -> (&'static str, Value) {
    let (path, mut body) = match version {
        Version::V01 => ("/mcp/call_tool", json!({ "tool": tool, "arguments": arguments })),
        Version::V05 => {
            let params = json!({ "name": tool, "arguments": arguments });
            ("/mcp", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))
        }
    };
    if let Some(key) = key {
        match version {
            Version::V01 => body["idempotencyKey"] = json!(key),
            Version::V05 => body["params"]["idempotencyKey"] = json!(key),
        }
    }
    (path, body)
}

impl BridgeClient {
    /// Calls a tool that reads.
    pub(super) async fn tool(&self, tool: &str, arguments: Value) -> Result<Value, Error> {
        let version = self.version().await?;
        let (path, body) = tool_call(version, tool, arguments, None);
        let answer = self.read(Method::POST, path, Some(&body)).await?;
        content(Kind::Read, version, answer)
    }

    /// Calls a tool that changes something, once. `key` lets the bridge recognise a repeated call.
    pub(super) async fn change_by_tool(
        &self,
        tool: &str,
        arguments: Value,
        key: Option<&str>,
        confirmed: &Confirmed,
    ) -> Result<Value, Error> {
        self.change_by_tool_through(&self.changes, tool, arguments, key, confirmed).await
    }

    /// Does the same through this sender.
    pub(super) async fn change_by_tool_through(
        &self,
        sender: &Changes,
        tool: &str,
        arguments: Value,
        key: Option<&str>,
        confirmed: &Confirmed,
    ) -> Result<Value, Error> {
        let version = self.version().await?;
        let (path, body) = tool_call(version, tool, arguments, key);
        let answer = self.change_through(sender, path, body, confirmed).await?;
        content(Kind::Write, version, answer)
    }

    /// Makes a read, and repeats it if the bridge cannot be reached, which the status line reports.
    pub(super) async fn read(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let attempt = || self.read_once(method.clone(), path, body);
        let mut asked = 1;
        let answer = attempt.retry(http::waits()).when(Error::may_pass).notify(|_, _| {
            asked += 1;
            status_line::say(format!(
                "The simulation bridge isn't answering. Asking again ({asked} of {})…",
                http::MAX_RETRIES + 1
            ));
        });
        answer.await
    }

    async fn read_once(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let request = self.request(method, path, Role::Viewer)?;
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let result = match http::send("bridge", request, self.longest).await {
            Ok(answer) => understand(Kind::Read, answer),
            Err(lost) => Err(unanswered(Kind::Read, lost)),
        };
        if matches!(result, Err(Error::Unavailable { .. })) {
            self.forget_version(); // the bridge may be replaced by another version while it is unreachable
        }
        result
    }

    /// Sends a change, once, in the name of the person who approved it.
    ///
    /// It is sent under the current permit; without one, nothing is sent.
    pub(super) async fn change(&self, path: &str, body: Value, confirmed: &Confirmed) -> Result<Value, Error> {
        self.change_through(&self.changes, path, body, confirmed).await
    }

    async fn change_through(
        &self,
        sender: &Changes,
        path: &str,
        mut body: Value,
        confirmed: &Confirmed,
    ) -> Result<Value, Error> {
        let Some(permit) = send_permit::current() else { return Err(unanswered(Kind::Write, Lost::RunOut)) };
        let request = self.request(Method::POST, path, Role::Operator(confirmed.by()))?;
        let request = confirmed.claim(request, &mut body).json(&body);
        match sender.send(request, &permit).await {
            Ok(answer) => understand(Kind::Write, answer),
            Err(lost) => Err(unanswered(Kind::Write, lost)),
        }
    }

    /// Opens the event stream of a job.
    pub(super) async fn stream(&self, path: &str) -> Result<Stream, Error> {
        let request = self.request(Method::GET, path, Role::Viewer)?.header("Accept", "text/event-stream");
        self.streams.open(request).await.map_err(|error| Error::Unavailable { reason: error.to_string() })
    }

    fn request(&self, method: Method, path: &str, role: Role<'_>) -> Result<RequestBuilder, Error> {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if path == "/mcp" {
            request = request
                .header("Accept", "application/json, text/event-stream")
                .header("MCP-Protocol-Version", MCP_VERSION);
        }
        Ok(match self.access.token(role, self.clock.now())? {
            Some(token) => request.bearer_auth(token.expose_secret()),
            None => request,
        })
    }
}

fn content(kind: Kind, version: Version, answer: Value) -> Result<Value, Error> {
    match version {
        Version::V01 => of_call_tool(kind, answer),
        Version::V05 => of_mcp(kind, answer),
    }
}
