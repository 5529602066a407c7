//! `[mcp]`: the servers by name.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use countersign_config::{Problem, Section, SectionSpec, between, wrong_address};
use countersign_mcp_client::{Settings, Way};
use secrecy::SecretString;
use serde::Deserialize;

/// `[mcp]`: the servers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Mcp {
    /// The servers by name.
    pub servers: BTreeMap<String, Server>,
}

/// `[mcp.<name>]`: one server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// The address, for streamable HTTP.
    pub url: Option<String>,
    /// The command that starts it, with its arguments.
    pub command: Vec<String>,
    /// The tools that are offered.
    pub tools: Vec<String>,
    /// The tools that need a card even if the server says that they only read.
    pub critical: Vec<String>,
    /// The tools that read back the effect of a change, by the name of the changing tool.
    pub read_back: BTreeMap<String, String>,
    /// The file with the definitions that an operator accepted.
    pub accepted: Option<PathBuf>,
    /// The time limit of a call without any message from the server.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// The time limit of a whole call.
    #[serde(with = "humantime_serde")]
    pub longest: Duration,
    /// The largest answer that is read, in kilobytes.
    pub max_answer_kb: usize,
    /// `MCP_<NAME>_TOKEN`.
    #[serde(skip)]
    pub token: Option<SecretString>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            url: None,
            command: Vec::new(),
            tools: Vec::new(),
            critical: Vec::new(),
            read_back: BTreeMap::new(),
            accepted: None,
            timeout: Duration::from_secs(20),
            longest: Duration::from_secs(1800),
            max_answer_kb: 1024,
            token: None,
        }
    }
}

/// The section, for the reader of the settings.
pub const SECTION: SectionSpec = SectionSpec {
    name: "mcp",
    defaults: include_str!("default.toml"),
    secrets: &[],
    entry_secret: Some(("token", "MCP_", "_TOKEN")),
    usual_names: &[],
    optional: &[],
    lists: &["tools", "critical"],
    read: |values| Ok(Box::new(serde_json::from_value::<Mcp>(values)?)),
};

/// The maximum length of a server's name, which is part of the names of its tools; models limit their length.
const MAX_NAME: usize = 24;

impl Section for Mcp {
    fn add_secrets(&mut self, secret: &dyn Fn(&str) -> Option<SecretString>) {
        for (name, server) in &mut self.servers {
            server.token = secret(&format!("{name}.token"));
        }
    }

    fn problems(&self) -> Vec<Problem> {
        self.servers.iter().flat_map(|(name, server)| server.problems(name)).collect()
    }

    fn boxed(&self) -> Box<dyn Section> {
        Box::new(self.clone())
    }
}

impl Server {
    fn problems(&self, name: &str) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut wrong = |key: &str, what: String| {
            let key = if key.is_empty() { format!("mcp.{name}") } else { format!("mcp.{name}.{key}") };
            found.push(Problem { key, what });
        };
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
            let right = "expected a name of at most 24 lowercase letters, digits, - and _";
            wrong("", format!("found `{name}`; {right}"));
        }
        match (&self.url, self.command.first().filter(|program| !program.trim().is_empty())) {
            (Some(_), Some(_)) => wrong("url", "command is set as well; expected one of them".to_owned()),
            (None, None) => wrong("", "found neither url nor command; expected one of them".to_owned()),
            (Some(url), None) => {
                if let Some(what) = wrong_address(url) {
                    wrong("url", what);
                }
            }
            (None, Some(_)) => {}
        }
        for (key, listed) in [("critical", self.critical.iter()), ("tools", self.tools.iter())] {
            if let Some(empty) = listed.clone().find(|tool| tool.trim().is_empty()) {
                wrong(key, format!("found `{empty}`; expected names of tools"));
            }
        }
        let unlisted = self.critical.iter().find(|tool| !self.tools.contains(tool));
        if let Some(tool) = unlisted {
            wrong("critical", format!("found {tool}, which `tools` does not list; list only offered tools"));
        }
        if let Some((tool, _)) = self.read_back.iter().find(|(tool, _)| !self.tools.contains(tool)) {
            wrong("read_back", format!("found {tool}, which `tools` does not list; list only offered tools"));
        }
        for (key, time, most) in [("timeout", self.timeout, 600), ("longest", self.longest, 24 * 3600)] {
            if let Some(what) = between(time, 1, most) {
                wrong(key, what);
            }
        }
        let kb = self.max_answer_kb;
        if !(1..=65_536).contains(&kb) {
            wrong("max_answer_kb", format!("found {kb}; expected 1 to 65536 kilobytes"));
        }
        found
    }

    /// Returns the path of the file of accepted definitions.
    pub fn accepted_file(&self, name: &str) -> PathBuf {
        self.accepted.clone().unwrap_or_else(|| PathBuf::from(format!("mcp-{name}.json")))
    }

    /// Returns the settings of the client for this server.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be used.
    pub fn client(&self) -> anyhow::Result<Settings> {
        let way = match (&self.url, self.command.split_first()) {
            (Some(url), _) => Way::Http(url.parse()?),
            (None, Some((command, arguments))) => {
                Way::Process { command: command.clone(), arguments: arguments.to_vec() }
            }
            (None, None) => anyhow::bail!("neither url nor command is set"),
        };
        let longest = self.max_answer_kb << 10;
        Ok(Settings { way, token: self.token.clone(), timeout: self.timeout, longest })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(servers: Value) -> Vec<String> {
        let mcp: Mcp = serde_json::from_value(servers).unwrap();
        mcp.problems().into_iter().map(|problem| problem.key).collect()
    }

    #[test]
    fn every_wrong_value_is_told() {
        let wrong = json!({
            "a": { "url": "x", "tools": ["t"], "critical": ["u"], "read_back": { "u": "t" } },
            "b": {},
            "c": { "url": "http://h", "command": ["x"], "timeout": "0s", "max_answer_kb": 0 },
            "No Name": { "url": "http://h/mcp" },
        });
        let keys = [
            "mcp.No Name",
            "mcp.a.url",
            "mcp.a.critical",
            "mcp.a.read_back",
            "mcp.b",
            "mcp.c.url",
            "mcp.c.timeout",
            "mcp.c.max_answer_kb",
        ];
        assert_eq!(problems(wrong), keys);
        assert_eq!(problems(json!({ "files": { "command": ["server", "-x"], "tools": ["t"] } })), [""; 0]);
    }

    #[test]
    fn each_server_has_a_secret_of_its_own() {
        let mut mcp: Mcp = serde_json::from_value(json!({ "files": { "url": "http://h" } })).unwrap();
        mcp.add_secrets(&|key| (key == "files.token").then(|| "hidden".into()));
        assert!(mcp.servers["files"].token.is_some());
        assert!(!format!("{mcp:?}").contains("hidden"));
    }
}
