//! The records of requests and of critical calls for the owner of the stand-in.

use serde::Serialize;
use serde_json::Value;

use crate::ledger::Entry;

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

impl Entry for Request {
    fn answered(&mut self, status: Option<u16>, _bytes: Option<u64>) {
        self.status = status;
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
