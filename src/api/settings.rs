//! `[api]`: the address, the policies that programs may name, and their keys.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use countersign_config::{self as config, Problem, Section, SectionSpec, between, nearest, wrong_address};
use countersign_graph::{action::Policy as ActionPolicy, engine::PolicyInput};
use countersign_wire::this_machine;
use jiff::civil::Date;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{callback, keys, outside_change};

/// `[api]`: the HTTP API for programs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Api {
    /// The address to listen on. Left out: there is no API.
    #[serde(default)]
    pub listen: Option<SocketAddr>,
    /// The address that programs use, and the issuer of tokens.
    #[serde(default)]
    pub public_url: Option<String>,
    /// The shortest time for which a request may be open.
    #[serde(with = "humantime_serde")]
    pub minimum_expiry: Duration,
    /// The number of requests a minute that each key may make.
    pub requests_a_minute: u32,
    /// The number of connections that may wait for decisions.
    pub waiting: usize,
    /// True if agents may use the tools at `/mcp`.
    #[serde(default)]
    pub mcp: bool,
    /// The number of cards a minute in one channel.
    pub cards_a_minute: u32,
    /// `[api.policies.<name>]`: the policies.
    #[serde(default)]
    pub policies: BTreeMap<String, Policy>,
    /// `[api.keys.<name>]`: the keys.
    #[serde(default)]
    pub keys: BTreeMap<String, Key>,
    /// `[api.callbacks.<name>]`: the addresses that are told of changes.
    #[serde(default)]
    pub callbacks: BTreeMap<String, Callback>,
}

/// `[api.callbacks.<name>]`: an address that is told when the state of a request changes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Callback {
    /// The address.
    pub url: String,
    /// The variable with the secret that signs.
    pub secret_env: String,
    /// True if its host may have a private address.
    #[serde(default)]
    pub private: bool,
    /// The secret; `None` if its variable is not set.
    #[serde(skip)]
    pub secret: Option<SecretString>,
}

/// `[api.policies.<name>]`: a kind of request, and who decides about it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The channel of the cards.
    pub channel: String,
    /// The people who may decide. Left out: those of `[approvals]`.
    pub approvers: Option<Vec<String>>,
    /// The number of people who must approve.
    pub needed: Option<u32>,
    /// The people who may also decide after `approvals.escalate_after`.
    pub escalate_to: Option<Vec<String>>,
    /// The longest time for which a request is open.
    #[serde(default = "four_hours", with = "humantime_serde")]
    pub expires_after: Duration,
    /// The time for which an approval may be claimed.
    #[serde(default = "a_quarter", with = "humantime_serde")]
    pub claim_within: Duration,
    /// True if only requests for a known person are accepted.
    #[serde(default)]
    pub require_person: bool,
    /// The hosts that links may lead to.
    #[serde(default)]
    pub links: Vec<String>,
    /// The callback of requests that name none.
    pub callback: Option<String>,
}

/// `[api.keys.<name>]`: the key of a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The hashes of its secrets; empty if it is revoked.
    #[serde(default)]
    pub hashes: Vec<String>,
    /// What it may do.
    #[serde(default)]
    pub scopes: Vec<Scope>,
    /// The policies that it may name.
    #[serde(default)]
    pub policies: Vec<String>,
    /// The policy of the permission prompts of an agent.
    pub tool_policy: Option<String>,
    /// The number of its requests that may be open.
    #[serde(default = "fifty")]
    pub max_open: usize,
    /// Its last day.
    pub expires: Option<String>,
}

/// Something that a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Ask for approvals.
    Create,
    /// Look at its requests.
    Read,
    /// Withdraw its requests.
    Cancel,
    /// Take approvals, and have tokens checked.
    Claim,
    /// Report outcomes.
    Report,
}

impl Scope {
    /// Returns the name, as in the settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Read => "read",
            Self::Cancel => "cancel",
            Self::Claim => "claim",
            Self::Report => "report",
        }
    }
}

fn four_hours() -> Duration {
    Duration::from_secs(4 * 3600)
}

fn a_quarter() -> Duration {
    Duration::from_secs(900)
}

fn fifty() -> usize {
    50
}

/// The section, for the reader of the settings.
pub const SECTION: SectionSpec = SectionSpec {
    name: "api",
    defaults: include_str!("default.toml"),
    secrets: &[],
    entry_secret: None,
    usual_names: &[],
    optional: &["listen", "public_url", "policies", "keys", "callbacks"],
    lists: &["scopes", "hashes", "links"],
    read: |values| Ok(Box::new(serde_json::from_value::<Api>(values)?)),
};

/// The longest name of a key or policy.
const MAX_NAME: usize = 40;

/// The most hashes that a key has: that of the old secret and that of the new one.
const MAX_HASHES: usize = 2;

impl Section for Api {
    fn add_secrets(&mut self, _: &dyn Fn(&str) -> Option<SecretString>) {}

    fn add_variables(&mut self, variable: &dyn Fn(&str) -> Option<SecretString>) {
        for callback in self.callbacks.values_mut() {
            callback.secret = variable(&callback.secret_env);
        }
    }

    fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut wrong = |key: String, what: String| found.push(Problem { key: format!("api.{key}"), what });
        if let Some(what) = self.public_url.as_deref().and_then(wrong_address) {
            wrong("public_url".to_owned(), what);
        }
        if let Some(what) = between(self.minimum_expiry, 1, 24 * 3600) {
            wrong("minimum_expiry".to_owned(), what);
        }
        let counts = [
            ("requests_a_minute", self.requests_a_minute as usize, 60_000),
            ("waiting", self.waiting, 10_000),
            ("cards_a_minute", self.cards_a_minute as usize, 10_000),
        ];
        for (key, count, most) in counts.into_iter().filter(|(_, count, most)| !(1..=*most).contains(count)) {
            wrong(key.to_owned(), format!("found {count}; expected 1 to {most}"));
        }
        for (name, policy) in &self.policies {
            policy.check(|key, what| wrong(of("policies", name, key), what));
            if let Some(what) = wrong_name(name) {
                wrong(of("policies", name, ""), what);
            }
            if let Some(found) = policy.callback.as_ref().filter(|found| !self.callbacks.contains_key(*found)) {
                let what = format!("found `{found}`, but there is no [api.callbacks.{found}]");
                wrong(of("policies", name, "callback"), what);
            }
        }
        for (name, callback) in &self.callbacks {
            callback.check(|at, what| wrong(of("callbacks", name, at), what));
            if let Some(what) = wrong_name(name) {
                wrong(of("callbacks", name, ""), what);
            }
        }
        for (name, key) in &self.keys {
            key.check(&self.policies, |at, what| wrong(of("keys", name, at), what));
            if let Some(what) = wrong_name(name) {
                wrong(of("keys", name, ""), what);
            }
        }
        found
    }

    fn boxed(&self) -> Box<dyn Section> {
        Box::new(self.clone())
    }
}

fn of(table: &str, name: &str, key: &str) -> String {
    if key.is_empty() { format!("{table}.{name}") } else { format!("{table}.{name}.{key}") }
}

pub(crate) fn wrong_name(name: &str) -> Option<String> {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let is_right = (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain);
    (!is_right)
        .then(|| format!("found `{name}`; expected a name of at most {MAX_NAME} lowercase letters, digits and -"))
}

impl Policy {
    fn check(&self, mut wrong: impl FnMut(&str, String)) {
        let is_id = |id: &str| id.len() > 1 && id.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
        if !self.channel.starts_with(['C', 'G']) || !is_id(&self.channel) {
            wrong("channel", format!("found `{}`; expected a channel ID (C…), not a name", self.channel));
        }
        for (key, people) in [("approvers", &self.approvers), ("escalate_to", &self.escalate_to)] {
            for name in people.iter().flatten() {
                if name != "channel" && !(name.starts_with(['U', 'W', 'S']) && is_id(name)) {
                    let right = "expected channel, user IDs (U…) and user group IDs (S…)";
                    wrong(key, format!("found `{name}`; {right}; a program is nobody's request"));
                }
            }
        }
        if self.needed == Some(0) {
            wrong("needed", "found 0; expected 1 or more".to_owned());
        }
        let day = 24 * 3600;
        for (key, time, least, most) in
            [("expires_after", self.expires_after, 60, 30 * day), ("claim_within", self.claim_within, 10, day)]
        {
            if let Some(what) = between(time, least, most) {
                wrong(key, what);
            }
        }
        if let Some(host) = self.links.iter().find(|host| host.is_empty() || host.contains(['/', ':', ' '])) {
            wrong("links", format!("found `{host}`; expected names of hosts, such as github.com"));
        }
    }
}

impl Callback {
    fn check(&self, mut wrong: impl FnMut(&str, String)) {
        if let Some(what) = wrong_address(&self.url) {
            wrong("url", what);
        } else if self.parsed().is_none() {
            wrong("url", format!("found `{}`; expected https://, or http:// for this machine only", self.url));
        }
        let right = "expected one with whsec_ and 24 to 64 bytes in base64";
        match &self.secret {
            None => wrong("secret_env", format!("the variable {} is not set; {right}", self.secret_env)),
            Some(secret) if callback::key_of(secret).is_none() => {
                wrong("secret_env", format!("the variable {} has another secret; {right}", self.secret_env));
            }
            Some(_) => {}
        }
    }

    /// Returns the address, if it may be called.
    fn parsed(&self) -> Option<Url> {
        Url::parse(&self.url).ok().filter(|url| url.scheme() == "https" || this_machine::is_named_by(url))
    }

    /// Returns the host.
    pub fn host(&self) -> Option<String> {
        self.parsed()?.host_str().map(str::to_owned)
    }
}

impl Key {
    fn check(&self, policies: &BTreeMap<String, Policy>, mut wrong: impl FnMut(&str, String)) {
        if self.hashes.len() > MAX_HASHES {
            wrong("hashes", format!("found {}; expected {MAX_HASHES} at most", self.hashes.len()));
        }
        if self.hashes.iter().any(|hash| keys::parse_hash(hash).is_none()) {
            wrong(
                "hashes",
                "found something else than sha256:… with 64 digits; `countersign key create` shows one".into(),
            );
        }
        if let Some(name) = self.policies.iter().find(|name| !policies.contains_key(*name)) {
            let near = nearest(name, policies.keys().map(String::as_str));
            let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            wrong("policies", format!("found `{name}`, but there is no [api.policies.{name}]{near}"));
        }
        if let Some(name) = self.tool_policy.as_ref().filter(|name| !self.policies.contains(name)) {
            wrong("tool_policy", format!("found `{name}`; expected one of the policies of this key"));
        }
        if self.expires.is_some() && self.last_day().is_none() {
            wrong("expires", "expected a day, such as 2027-06-30".to_owned());
        }
        if !(1..=1000).contains(&self.max_open) {
            wrong("max_open", format!("found {}; expected 1 to 1000", self.max_open));
        }
    }

    /// Returns the last day of the key, if it has one.
    pub fn last_day(&self) -> Option<Date> {
        self.expires.as_deref()?.parse().ok()
    }

    /// Returns true if the key may do this.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}

impl Api {
    /// Returns the settings of approvals as they are for one of these policies: those of `general` where it says nothing.
    fn approvals(&self, policy: &Policy, general: &config::Approvals) -> config::Approvals {
        let Policy { approvers, needed, escalate_to, .. } = policy.clone();
        config::Approvals {
            approvers: approvers.unwrap_or_else(|| general.approvers.clone()),
            needed: needed.unwrap_or(general.needed),
            escalate_to: escalate_to.unwrap_or_else(|| general.escalate_to.clone()),
            own_request: true, // a program asks, so nobody is the requester
            actions: BTreeMap::new(),
            contexts: BTreeMap::new(),
            envelopes: BTreeMap::new(),
            ..general.clone()
        }
    }

    /// Returns the policy of a change that a program asked for; `None` for other changes. Nobody decides about a request
    /// whose policy is no longer in the settings.
    pub fn policy_of(&self, input: &PolicyInput<'_>, general: &config::Approvals) -> Option<ActionPolicy> {
        if input.action != outside_change::NAME {
            return None;
        }
        let named = input.scope.contexts.first().and_then(|context| context.strip_prefix(outside_change::CONTEXT));
        let policy = named.and_then(|name| self.policies.get(name));
        let decided = policy.map(|policy| {
            let settings = self.approvals(policy, general);
            let policy = countersign_conversation::approvals::policy::policy_for(&settings, input);
            ActionPolicy { typed: false, ..policy } // a word in a thread may be meant for anything
        });
        Some(decided.unwrap_or(ActionPolicy { needed: 1, ..ActionPolicy::default() }))
    }

    /// Returns everyone whom the policies name: people, user groups, and `channel`.
    pub fn named(&self) -> Vec<String> {
        let lists = self.policies.values().flat_map(|policy| [&policy.approvers, &policy.escalate_to]);
        lists.flatten().flatten().cloned().collect()
    }

    /// Returns the number of approvals that a policy needs.
    pub fn needed(&self, policy: &Policy, general: &config::Approvals) -> u32 {
        policy.needed.unwrap_or(general.needed)
    }

    /// Returns the people who may approve under a policy, as in the settings.
    pub fn approvers<'a>(&'a self, policy: &'a Policy, general: &'a config::Approvals) -> &'a [String] {
        policy.approvers.as_deref().unwrap_or(&general.approvers)
    }

    /// Returns the address that programs use, without a slash at its end.
    pub fn url(&self) -> String {
        match (&self.public_url, self.listen) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, Some(listen)) => format!("http://{listen}"),
            (None, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(policies: Value, keys: Value, callbacks: Value) -> Vec<String> {
        let mut api: Api = serde_json::from_value(json!({
            "minimum_expiry": "1min", "requests_a_minute": 60, "waiting": 1000, "cards_a_minute": 5,
            "policies": policies, "keys": keys, "callbacks": callbacks,
        }))
        .unwrap();
        let secrets = [("GOOD", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"), ("SHORT", "whsec_MDEy")];
        let secret = |name: &str| secrets.iter().find(|known| known.0 == name).map(|known| known.1.into());
        api.add_variables(&secret);
        api.problems().into_iter().map(|problem| problem.key).collect()
    }

    #[test]
    fn every_wrong_value_is_told() {
        let hash = format!("sha256:{}", "ab".repeat(32));
        let policies = json!({
            "good": { "channel": "C0123", "approvers": ["channel", "U1", "S2"], "links": ["github.com"] },
            "Bad Name": { "channel": "general", "approvers": ["requester"], "needed": 0, "expires_after": "1s",
                "claim_within": "1s", "links": ["https://github.com"], "callback": "gone" },
        });
        let keys = json!({
            "good": { "hashes": [hash], "scopes": ["create"], "policies": ["good"], "expires": "2027-06-30" },
            "bad": { "hashes": [hash, hash, "sha256:zz"], "policies": ["god"], "tool_policy": "good", "expires": "soon", "max_open": 0 },
        });
        let callbacks = json!({
            "good": { "url": "https://ci.example/hook", "secret_env": "GOOD" },
            "here": { "url": "http://127.0.0.1:1/hook", "secret_env": "GOOD" },
            "bad": { "url": "http://ci.example/hook", "secret_env": "SHORT" },
            "none": { "url": "https://u:p@ci.example/", "secret_env": "UNSET" },
        });
        let wrong = [
            "api.policies.Bad Name.channel",
            "api.policies.Bad Name.approvers",
            "api.policies.Bad Name.needed",
            "api.policies.Bad Name.expires_after",
            "api.policies.Bad Name.claim_within",
            "api.policies.Bad Name.links",
            "api.policies.Bad Name",
            "api.policies.Bad Name.callback",
            "api.callbacks.bad.url",
            "api.callbacks.bad.secret_env",
            "api.callbacks.none.url",
            "api.callbacks.none.secret_env",
            "api.keys.bad.hashes",
            "api.keys.bad.hashes",
            "api.keys.bad.policies",
            "api.keys.bad.tool_policy",
            "api.keys.bad.expires",
            "api.keys.bad.max_open",
        ];
        assert_eq!(problems(policies, keys, callbacks), wrong);
    }
}
