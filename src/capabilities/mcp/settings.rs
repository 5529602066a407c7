//! `[mcp]`: the servers by name.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use countersign_config::{Problem, Section, SectionSpec, between, wrong_address};
use countersign_mcp_client::{self as mcp_client, Program, Remote, Settings, Way, wrong_header};
use secrecy::{ExposeSecret as _, SecretString};
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
    /// The environment variables that the command gets beside the usual ones.
    pub env: BTreeMap<String, SecretString>,
    /// The folder in which the command is started.
    pub cwd: Option<PathBuf>,
    /// The headers that every request to the address gets.
    pub headers: BTreeMap<String, SecretString>,
    /// The sign-in of an operator, in place of a token.
    pub oauth: Option<OAuth>,
    /// The tools that are offered.
    pub tools: Vec<String>,
    /// The tools that only read although the server does not say so.
    pub read_only: Vec<String>,
    /// The tools that need a card even if the server says that they only read.
    pub critical: Vec<String>,
    /// The tools that read back the effect of a change, by the name of the changing tool.
    pub read_back: BTreeMap<String, String>,
    /// The file with the definitions that an operator accepted.
    pub accepted: Option<PathBuf>,
    /// The time limit of a call without any message from the server, and of a call that only reads.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// The time limit of a whole call with a card.
    #[serde(with = "humantime_serde")]
    pub longest: Duration,
    /// The largest answer that is read, in kilobytes; what it says twice counts once.
    pub max_answer_kb: usize,
    /// `MCP_<NAME>_TOKEN`.
    #[serde(skip)]
    pub token: Option<SecretString>,
    /// The keys of values that name a variable of the environment which is not set, with its name.
    #[serde(skip)]
    pub unset: Vec<(String, String)>,
}

/// `[mcp.<name>.oauth]`: the sign-in of an operator.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OAuth {
    /// The id of a client that is registered with the authorization server. Without it, one is registered.
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<SecretString>,
    /// The scopes to ask for. Without any, those that the server names.
    pub scopes: Vec<String>,
    /// The port on 127.0.0.1 that the browser returns to; 0 for any.
    pub port: u16,
    /// The file for the tokens.
    pub tokens: Option<PathBuf>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            url: None,
            command: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            headers: BTreeMap::new(),
            oauth: None,
            tools: Vec::new(),
            read_only: Vec::new(),
            critical: Vec::new(),
            read_back: BTreeMap::new(),
            accepted: None,
            timeout: Duration::from_secs(20),
            longest: Duration::from_secs(1800),
            max_answer_kb: 1024,
            token: None,
            unset: Vec::new(),
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
    lists: &["tools", "critical", "read_only", "scopes"],
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

    fn add_variables(&mut self, variable: &dyn Fn(&str) -> Option<SecretString>) {
        for server in self.servers.values_mut() {
            server.add_variables(variable);
        }
    }

    fn problems(&self) -> Vec<Problem> {
        let mut found: Vec<_> = self.servers.iter().flat_map(|(name, server)| server.problems(name)).collect();
        let mut variables = BTreeMap::new();
        for name in self.servers.keys() {
            if let Some(other) = variables.insert(name.replace('-', "_"), name) {
                let what =
                    format!("found {other} as well, whose variables are the same; expected names that differ more");
                found.push(Problem { key: format!("mcp.{name}"), what });
            }
        }
        found
    }

    fn boxed(&self) -> Box<dyn Section> {
        Box::new(self.clone())
    }
}

impl Server {
    /// Puts the values of variables in the place of `${NAME}`.
    fn add_variables(&mut self, variable: &dyn Fn(&str) -> Option<SecretString>) {
        let mut unset = Vec::new();
        let mut fill = |key: String, value: &mut SecretString| {
            let mut filled = String::new();
            let mut rest = value.expose_secret();
            while let Some((before, after)) = rest.split_once("${") {
                let Some((name, after)) = after.split_once('}') else { break };
                filled += before;
                match variable(name) {
                    Some(found) => filled += found.expose_secret(),
                    None => unset.push((key.clone(), name.to_owned())),
                }
                rest = after;
            }
            *value = SecretString::from(filled + rest);
        };
        self.env.iter_mut().for_each(|(name, value)| fill(format!("env.{name}"), value));
        self.headers.iter_mut().for_each(|(name, value)| fill(format!("headers.{name}"), value));
        if let Some(secret) = self.oauth.as_mut().and_then(|oauth| oauth.client_secret.as_mut()) {
            fill("oauth.client_secret".to_owned(), secret);
        }
        self.unset = unset;
    }

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
        let is_remote = self.url.is_some();
        for (key, is_set, is_for_url) in [
            ("env", !self.env.is_empty(), false),
            ("cwd", self.cwd.is_some(), false),
            ("headers", !self.headers.is_empty(), true),
            ("oauth", self.oauth.is_some(), true),
        ] {
            if is_set && is_remote != is_for_url {
                let of = if is_for_url { "url" } else { "command" };
                wrong(key, format!("found it without {of}, which it belongs to"));
            }
        }
        for (key, variable) in &self.unset {
            wrong(key, format!("found ${{{variable}}}; set the environment variable {variable}"));
        }
        if let Some(bad) = self.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            wrong("env", format!("found `{bad}`; expected names of environment variables"));
        }
        if let Some(folder) = self.cwd.as_ref().filter(|folder| !folder.is_dir()) {
            wrong("cwd", format!("found {}; expected a folder that exists", folder.display()));
        }
        for (header, value) in &self.headers {
            if let Some(what) = wrong_header(header, value) {
                wrong(&format!("headers.{header}"), what.to_owned());
            }
        }
        if self.oauth.is_some() && self.token.is_some() {
            wrong("oauth", "a token is set as well; expected one of them".to_owned());
        }
        if self.oauth.as_ref().is_some_and(|oauth| oauth.client_secret.is_some() && oauth.client_id.is_none()) {
            wrong("oauth.client_secret", "found it without oauth.client_id, which it belongs to".to_owned());
        }
        for (key, listed) in
            [("critical", self.critical.iter()), ("tools", self.tools.iter()), ("read_only", self.read_only.iter())]
        {
            if let Some(empty) = listed.clone().find(|tool| tool.trim().is_empty()) {
                wrong(key, format!("found `{empty}`; expected names of tools"));
            }
        }
        for (key, listed) in [("critical", &self.critical), ("read_only", &self.read_only)] {
            if let Some(tool) = listed.iter().find(|tool| !self.tools.contains(tool)) {
                wrong(key, format!("found {tool}, which `tools` does not list; list only offered tools"));
            }
        }
        if let Some(tool) = self.read_only.iter().find(|tool| self.critical.contains(tool)) {
            wrong("read_only", format!("found {tool}, which `critical` lists as well; expected one of them"));
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
    pub fn client(&self, name: &str) -> anyhow::Result<Settings> {
        let pairs = |map: &BTreeMap<String, SecretString>| {
            map.iter().map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>()
        };
        let oauth = self.oauth.as_ref().map(|oauth| mcp_client::OAuth {
            client_id: oauth.client_id.clone(),
            client_secret: oauth.client_secret.clone(),
            scopes: oauth.scopes.clone(),
            port: oauth.port,
            tokens: oauth.tokens.clone().unwrap_or_else(|| PathBuf::from(format!("mcp-{name}-tokens.json"))),
        });
        let way = match (&self.url, self.command.split_first()) {
            (Some(url), _) => Way::Http(Remote { url: url.parse()?, headers: pairs(&self.headers), oauth }),
            (None, Some((command, arguments))) => Way::Process(Program {
                command: command.clone(),
                arguments: arguments.to_vec(),
                variables: pairs(&self.env),
                folder: self.cwd.clone(),
            }),
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
            "d": { "command": ["x"], "cwd": "/no/such", "headers": { "x": "y" }, "env": { "A=B": "c" } },
            "e": { "url": "http://h", "headers": { "accept": "x", "no name": "y" }, "oauth": { "client_secret": "s" } },
            "f": { "url": "http://h", "tools": ["t"], "critical": ["t"], "read_only": ["t", "u"] },
            "g-h": { "url": "http://h" },
            "g_h": { "url": "http://h" },
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
            "mcp.d.headers",
            "mcp.d.env",
            "mcp.d.cwd",
            "mcp.e.headers.accept",
            "mcp.e.headers.no name",
            "mcp.e.oauth.client_secret",
            "mcp.f.read_only",
            "mcp.f.read_only",
            "mcp.g_h",
        ];
        assert_eq!(problems(wrong), keys);
        assert_eq!(problems(json!({ "files": { "command": ["server", "-x"], "tools": ["t"] } })), [""; 0]);
    }

    #[test]
    fn values_name_variables_of_the_environment() {
        let mut mcp: Mcp = serde_json::from_value(json!({
            "git": { "command": ["x"], "env": { "TOKEN": "${GIT_TOKEN}", "PLAIN": "a$b", "GONE": "x-${NO_SUCH}" } },
            "web": { "url": "http://h", "headers": { "X-Key": "Key ${WEB_KEY}" } },
        }))
        .unwrap();
        mcp.add_variables(&|name| ["GIT_TOKEN", "WEB_KEY"].contains(&name).then(|| SecretString::from("hidden")));
        let value = |map: &BTreeMap<String, SecretString>, name: &str| map[name].expose_secret().to_owned();
        assert_eq!(value(&mcp.servers["git"].env, "TOKEN"), "hidden");
        assert_eq!(value(&mcp.servers["git"].env, "PLAIN"), "a$b");
        assert_eq!(value(&mcp.servers["web"].headers, "X-Key"), "Key hidden");
        let problems = mcp.problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].key, "mcp.git.env.GONE");
        assert!(problems[0].what.contains("set the environment variable NO_SUCH"));
        assert!(!format!("{mcp:?}").contains("hidden"));
    }

    #[test]
    fn each_server_has_a_secret_of_its_own() {
        let mut mcp: Mcp = serde_json::from_value(json!({ "files": { "url": "http://h" } })).unwrap();
        mcp.add_secrets(&|key| (key == "files.token").then(|| "hidden".into()));
        assert!(mcp.servers["files"].token.is_some());
        assert!(!format!("{mcp:?}").contains("hidden"));
    }
}
