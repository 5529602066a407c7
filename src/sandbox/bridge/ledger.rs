//! The record of requests and critical calls for the owner of the stand-in.
//!
//! A request is recorded when it arrives, so that one without an answer is recorded too. It is
//! appended to the file, if any, as a line of JSON before its answer is sent.

use std::{fs::File, io::Write as _, path::Path, sync::Mutex};

use countersign_core::private_file;
use serde::Serialize;
use serde_json::Value;

/// A received request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Request {
    /// The time of its arrival, as ISO 8601.
    pub at: String,
    /// The method.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query.
    pub query: String,
    /// The tool that is called through `call_tool`, MCP or its route.
    pub tool: Option<String>,
    /// The subject of the token, if it was valid.
    pub subject: Option<String>,
    /// The roles in the token.
    pub roles: Vec<String>,
    /// The value of the confirmation header.
    pub confirm: Option<String>,
    /// The value of `X-Correlation-Id`.
    pub correlation: Option<String>,
    /// The value of `MCP-Protocol-Version`.
    pub protocol: Option<String>,
    /// The body, if it was JSON.
    pub body: Value,
    /// The status of the answer; `None` if none was sent.
    pub status: Option<u16>,
}

impl Request {
    /// Returns true if the request says in any way that a person confirmed it.
    pub fn says_confirmed(&self) -> bool {
        self.confirm.is_some()
            || self.body["critical"] == true
            || self.body["confirm"] == true
            || self.body["params"]["critical"] == true
    }
}

/// A call of a critical tool by a caller with a sufficient role.
#[derive(Clone, Debug, PartialEq)]
pub struct CriticalCall {
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
    /// The SHA-256 of the arguments as JSON with sorted keys and without spaces, in hexadecimal
    /// digits.
    pub digest: String,
    /// The caller's `sub`.
    pub subject: String,
    /// True if the call said that a person confirmed it.
    pub confirmed: bool,
    /// True if the call succeeded.
    pub done: bool,
}

/// All requests since the start, and the file to which they are appended.
#[derive(Debug)]
pub(crate) struct Ledger {
    requests: Mutex<Vec<Request>>,
    file: Option<Mutex<File>>,
}

impl Ledger {
    /// Opens an empty ledger that appends to a file.
    pub(crate) fn open(path: Option<&Path>) -> std::io::Result<Self> {
        Ok(Self { requests: Mutex::default(), file: path.map(private_file::append).transpose()?.map(Mutex::new) })
    }

    /// Records a request that arrived. Returns its index.
    pub(crate) fn arrived(&self, request: Request) -> usize {
        let mut requests = self.requests.lock().expect("no holder of the lock panics");
        requests.push(request);
        requests.len() - 1
    }

    /// Changes the record of a request.
    pub(crate) fn note(&self, at: usize, change: impl FnOnce(&mut Request)) {
        let mut requests = self.requests.lock().expect("no holder of the lock panics");
        if let Some(request) = requests.get_mut(at) {
            change(request);
        }
    }

    /// Records the end of a request, with the status of its answer if there is one.
    pub(crate) fn ended(&self, at: usize, status: Option<u16>) {
        let mut line = Vec::new();
        self.note(at, |request| {
            request.status = status;
            line = serde_json::to_vec(request).expect("a request is plain JSON");
        });
        line.push(b'\n');
        if let Some(file) = &self.file
            && let Err(error) = file.lock().expect("no holder of the lock panics").write_all(&line)
        {
            tracing::error!(%error, "cannot write the ledger of the sandbox bridge");
        }
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no holder of the lock panics").clone()
    }
}
