//! Reads the settings and collects everything that is wrong with them.
//!
//! A section that does not parse is tried again with the default in place of the wrong value, so that one start tells
//! of all wrong values rather than of the first.

use std::{collections::HashMap, path::Path};

use config::{Config as Tree, ConfigError, Environment, File, FileFormat, Value};
use secrecy::SecretString;
use serde::de::DeserializeOwned;

use super::{Config, Problem, Problems, SlackMode, StoreKind, check};

/// The settings that the program comes with.
const DEFAULTS: &str = include_str!("../../config/default.toml");

/// The usual names of some settings, and where they belong.
const USUAL_NAMES: &[(&str, &str)] = &[
    ("SLACK_API_URL", "slack.api_url"),
    ("ANTHROPIC_BASE_URL", "model.base_url"),
    ("UPGRADE_API_URL", "upgrade.api_url"),
    ("UPGRADE_SERVICE_ACCOUNT", "upgrade.service_account"),
    ("PORT", "server.port"),
];

/// Secrets: where they belong, and their names in the environment, which alone may hold them.
const SECRETS: &[(&str, &str)] = &[
    ("slack.bot_token", "SLACK_BOT_TOKEN"),
    ("slack.app_token", "SLACK_APP_TOKEN"),
    ("slack.signing_secret", "SLACK_SIGNING_SECRET"),
    ("store.redis_url", "REDIS_URL"),
    ("model.api_key", "ANTHROPIC_API_KEY"),
    ("upgrade.auth_token", "UPGRADE_AUTH_TOKEN"),
    ("approvals.digest_keys", "COUNTERSIGN_DIGEST_KEYS"),
];

/// The environment of the process.
pub fn environment() -> HashMap<String, String> {
    #[expect(clippy::disallowed_methods, reason = "the one place that may read it")]
    std::env::vars().collect()
}

impl Config {
    /// Reads the defaults, then `file`, then `environment`.
    ///
    /// # Errors
    ///
    /// [`Problems`] with all that is wrong, each with what would be right.
    pub fn load(file: Option<&Path>, environment: &HashMap<String, String>) -> Result<Self, Problems> {
        let defaults = Tree::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
        let defaults = defaults.build().map_err(|error| fatal("config/default.toml", &error))?;
        let tree = tree(file, environment)?;
        let mut problems = unknown_sections(&tree);
        let mut read = Reader { tree: &tree, defaults: &defaults, problems: &mut problems };
        let config = (|| {
            Some(Self {
                slack: read.section("slack")?,
                server: read.section("server")?,
                store: read.section("store")?,
                workers: read.section("workers")?,
                approvals: read.section("approvals")?,
                record: read.section("record")?,
                model: read.section("model")?,
                upgrade: read.section("upgrade")?,
            })
        })();
        let Some(mut config) = config else { return Err(Problems(problems)) };
        config.add_secrets(environment);
        problems.extend(broken_secrets(environment));
        problems.extend(check::problems(&config));
        if problems.is_empty() { Ok(config) } else { Err(Problems(problems)) }
    }

    fn add_secrets(&mut self, environment: &HashMap<String, String>) {
        let secret = |key: &str| {
            let (_, name) = SECRETS.iter().find(|secret| secret.0 == key)?;
            environment
                .get(*name)
                .filter(|value| !value.trim().is_empty())
                .map(|value| SecretString::from(value.trim()))
        };
        self.slack.bot_token = secret("slack.bot_token");
        self.slack.app_token = secret("slack.app_token");
        self.slack.signing_secret = secret("slack.signing_secret");
        self.store.redis_url = secret("store.redis_url");
        self.model.api_key = secret("model.api_key");
        self.upgrade.auth_token = secret("upgrade.auth_token");
        self.approvals.digest_keys = secret("approvals.digest_keys");
    }

    /// How events come in, chosen by what is set if it is not said.
    pub fn slack_mode(&self) -> SlackMode {
        match (self.slack.mode, &self.slack.app_token) {
            (Some(mode), _) => mode,
            (None, Some(_)) => SlackMode::Socket,
            (None, None) => SlackMode::Http,
        }
    }

    /// Where threads are remembered, chosen by what is set if it is not said.
    pub fn store_kind(&self) -> StoreKind {
        match (self.store.kind, &self.store.redis_url) {
            (Some(kind), _) => kind,
            (None, Some(_)) => StoreKind::Redis,
            (None, None) => StoreKind::Sqlite,
        }
    }
}

fn tree(file: Option<&Path>, environment: &HashMap<String, String>) -> Result<Tree, Problems> {
    let mut builder = Tree::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
    if let Some(file) = file {
        builder = builder.add_source(File::from(file).format(FileFormat::Toml));
    }
    let own: config::Map<String, String> = environment
        .iter()
        .filter(|(name, _)| name.starts_with("COUNTERSIGN__"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let variables = Environment::with_prefix("COUNTERSIGN")
        .prefix_separator("__")
        .separator("__")
        .try_parsing(true)
        .list_separator(",")
        .with_list_parse_key("approvals.approvers")
        .with_list_parse_key("record.redact")
        .with_list_parse_key("record.redact_matching")
        .source(Some(own));
    builder = builder.add_source(variables);
    for (name, key) in USUAL_NAMES {
        if let Some(value) = environment.get(*name) {
            builder = builder.set_override(*key, value.as_str()).map_err(|error| fatal(name, &error))?;
        }
    }
    builder.build().map_err(|error| fatal(&file.map_or("settings".to_owned(), |f| f.display().to_string()), &error))
}

/// Secrets that cannot be sent: copied with a line break, or two of them at once.
fn broken_secrets(environment: &HashMap<String, String>) -> impl Iterator<Item = Problem> + '_ {
    let broken = |value: &&String| value.trim().contains(|c: char| c.is_whitespace() || c.is_control());
    SECRETS.iter().filter(move |(_, name)| environment.get(*name).filter(broken).is_some()).map(|(_, name)| Problem {
        key: (*name).to_owned(),
        what: "it has a line break or a blank in the middle; right would be one word".to_owned(),
    })
}

fn unknown_sections(tree: &Tree) -> Vec<Problem> {
    const KNOWN: [&str; 8] = ["slack", "server", "store", "workers", "approvals", "record", "model", "upgrade"];
    let Ok(sections) = tree.clone().try_deserialize::<HashMap<String, Value>>() else { return Vec::new() };
    sections
        .into_keys()
        .filter(|name| !KNOWN.contains(&name.as_str()))
        .map(|name| Problem { what: format!("there is no such section; there are {}", KNOWN.join(", ")), key: name })
        .collect()
}

/// Reads sections, collecting what is wrong.
struct Reader<'a> {
    tree: &'a Tree,
    defaults: &'a Tree,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn section<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let table = self.tree.get_table(name).unwrap_or_default();
        let defaults = self.defaults.get_table(name).unwrap_or_default();
        let mut good = defaults.clone();
        let mut table: Vec<_> = table.into_iter().collect();
        table.sort_by(|a, b| a.0.cmp(&b.0));
        for (key, value) in table {
            let full = format!("{name}.{key}");
            if let Some((_, variable)) = SECRETS.iter().find(|secret| secret.0 == full) {
                let what = format!("secrets come from the environment only; set {variable} there and remove this");
                self.problems.push(Problem { key: full, what });
                continue;
            }
            let mut candidate = good.clone();
            candidate.insert(key.clone(), value.clone());
            match Value::from(candidate.clone()).try_deserialize::<T>() {
                Ok(_) => good = candidate,
                Err(error) => {
                    self.problems.push(Problem { what: explain(&value, &error, defaults.get(&key)), key: full })
                }
            }
        }
        match Value::from(good).try_deserialize() {
            Ok(section) => Some(section),
            Err(error) => {
                self.problems.push(Problem { key: name.to_owned(), what: error.to_string() });
                None
            }
        }
    }
}

/// What was found and what would be right.
fn explain(found: &Value, error: &ConfigError, default: Option<&Value>) -> String {
    let cause = match error {
        ConfigError::At { error, .. } => error.to_string(),
        other => other.to_string(),
    };
    let cause = cause.split(" for key `").next().unwrap_or_default(); // the key is said already
    match default {
        Some(default) => format!("found `{found}` ({cause}); right would be something like `{default}`"),
        None => format!("found `{found}` ({cause})"),
    }
}

fn fatal(key: &str, error: &ConfigError) -> Problems {
    Problems(vec![Problem { key: key.to_owned(), what: error.to_string() }])
}
