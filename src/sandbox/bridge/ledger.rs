//! What the stand-in remembers for its owner: every request, and every critical call.

use serde_json::Value;

/// A request that arrived.
#[derive(Clone, Debug, PartialEq)]
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
