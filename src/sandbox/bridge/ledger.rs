//! The memory for the owner of the stand-in: every request, and every critical call.
//!
//! A request is noted as it arrives, so that one that is never answered is there too. A file, if one is given, gets it as
//! a line of JSON before its answer leaves.

use std::{fs::File, io::Write as _, path::Path, sync::Mutex};

use countersign_core::private_file;
use serde::Serialize;
use serde_json::Value;

/// A request that arrived.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Request {
    /// The moment, as ISO 8601.
    pub at: String,
    /// The method.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query.
    pub query: String,
    /// The tool that is called through `call_tool` or MCP, or whose route this is.
    pub tool: Option<String>,
    /// The subject of the token, if there was a good one.
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
    /// Returns true if the request says anywhere that a person confirmed it.
    pub fn says_confirmed(&self) -> bool {
        self.confirm.is_some()
            || self.body["critical"] == true
            || self.body["confirm"] == true
            || self.body["params"]["critical"] == true
    }
}

/// A call of a critical tool that a role allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct CriticalCall {
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
    /// The SHA-256 of the arguments as JSON with sorted keys and without blanks, in hexadecimal digits.
    pub digest: String,
    /// The caller's `sub`.
    pub subject: String,
    /// True if the call said that a person confirmed it.
    pub confirmed: bool,
    /// True if the tool did what was asked.
    pub done: bool,
}

/// All requests since the start, and the file they go to.
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

    /// Notes a request that arrived. Returns its place.
    pub(crate) fn arrived(&self, request: Request) -> usize {
        let mut requests = self.requests.lock().expect("no holder of the lock panics");
        requests.push(request);
        requests.len() - 1
    }

    /// Adds to what is noted of a request.
    pub(crate) fn note(&self, at: usize, change: impl FnOnce(&mut Request)) {
        let mut requests = self.requests.lock().expect("no holder of the lock panics");
        if let Some(request) = requests.get_mut(at) {
            change(request);
        }
    }

    /// Notes the end of a request, with the status of its answer if there is one.
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

    /// Returns everything so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no holder of the lock panics").clone()
    }
}
