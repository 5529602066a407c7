//! Reads the settings and collects all problems with them.
//!
//! If a value does not parse, its default is used in its place and reading continues, so that one start reports all
//! wrong values rather than only the first.

use std::{collections::HashMap, ffi::OsString, path::Path};

use config::{
    Config as Tree, ConfigBuilder, ConfigError, Environment, File, FileFormat, Value, ValueKind, builder::DefaultState,
};
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use super::{
    Additions, Config, Kind, Measure, Problem, Problems, Sections, SlackMode, StoreKind, check,
    nearest::nearest,
    secrets::{self, SECRETS},
    variables,
};

/// The defaults of the sections that always exist. Each capability contributes those of its own section.
const DEFAULTS: &str = include_str!("default.toml");

/// The conventional variables of some settings, as pairs of variable and key.
const USUAL_NAMES: &[(&str, &str)] = &[
    ("SLACK_API_URL", "slack.api_url"),
    ("ANTHROPIC_BASE_URL", "model.anthropic_url"),
    ("OPENAI_BASE_URL", "model.openai_url"),
    ("GEMINI_BASE_URL", "model.gemini_url"),
    ("PORT", "server.port"),
    ("GMAIL_API_URL", "email.gmail_api_url"),
    ("CALENDAR_API_URL", "email.calendar_api_url"),
    ("GOOGLE_TOKEN_URL", "email.google_token_url"),
    ("GOOGLE_SERVICE_ACCOUNT", "email.service_account"),
    ("PUBSUB_API_URL", "email.pubsub_api_url"),
    ("HUBSPOT_API_URL", "email.hubspot_api_url"),
    ("IMAP_HOST", "email.imap_host"),
    ("SMTP_HOST", "email.smtp_host"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "telemetry.otlp_endpoint"),
    ("OTEL_SERVICE_NAME", "telemetry.service_name"),
];

/// The keys of the settings that are lists, in any section.
const LISTS: [&str; 8] =
    ["approvers", "contexts", "escalate_to", "subjects", "outsiders", "redact", "redact_matching", "aliases"];

/// The origin of variables, as named by the library.
const ENVIRONMENT: &str = "the environment";

/// The sections that exist independently of the capabilities.
const SECTIONS: [&str; 10] =
    ["slack", "server", "store", "workers", "approvals", "plans", "record", "model", "email", "telemetry"];

/// Reads the environment of the process. Variables that are not valid Unicode are left out.
pub fn environment() -> HashMap<String, String> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text).collect()
}

impl Config {
    /// Reads the settings: the defaults, overridden by `file`, overridden by `environment`. `added` contains the
    /// settings of the capabilities.
    ///
    /// # Errors
    ///
    /// [`Problems`] that lists everything that is wrong, with what would be right.
    pub fn load(
        file: Option<&Path>,
        environment: &HashMap<String, String>,
        added: &Additions,
    ) -> Result<Self, Problems> {
        match Self::read(file, environment, added) {
            (Some(config), problems) if problems.0.is_empty() => Ok(config),
            (_, problems) => Err(problems),
        }
    }

    /// Reads as much as possible, with defaults in place of wrong values. The result is for further checks, so that all
    /// problems can be reported at once, not for running the bot.
    pub fn read(
        file: Option<&Path>,
        environment: &HashMap<String, String>,
        added: &Additions,
    ) -> (Option<Self>, Problems) {
        let defaults = match defaults(added).build() {
            Ok(defaults) => defaults,
            Err(error) => return (None, Problems(vec![fatal("config/default.toml", &error)])),
        };
        let mut problems = Vec::new();
        let tree = tree(file, environment, added).or_else(|problem| {
            problems.push(problem);
            tree(None, environment, added)
        });
        let tree = match tree {
            Ok(tree) => tree,
            Err(problem) => {
                problems.push(problem);
                defaults.clone()
            }
        };
        problems.dedup();
        let names: Vec<&str> = SECTIONS.into_iter().chain(added.sections.iter().map(|section| section.name)).collect();
        let secrets = secrets::all(added);
        problems.extend(sections_with_a_value(file, environment, &names));
        problems.extend(unknown_sections(&tree, &names));
        problems.extend(variables::unknown(environment, &defaults, &names, added, &secrets));
        let mut read = Reader { tree: &tree, defaults: &defaults, secrets: &secrets, problems: &mut problems };
        let config = (|| {
            Some(Self {
                file: file.map(Path::to_owned),
                slack: read.section("slack")?,
                server: read.section("server")?,
                store: read.section("store")?,
                workers: read.section("workers")?,
                plans: read.section("plans")?,
                approvals: read.section("approvals")?,
                record: read.section("record")?,
                model: read.section("model")?,
                email: read.section("email")?,
                telemetry: read.section("telemetry")?,
                sections: {
                    let all = added.sections.iter().map(|spec| Some((spec.name, read.values(spec.name, spec.read)?)));
                    Sections(all.collect::<Option<_>>()?)
                },
            })
        })();
        let Some(mut config) = config else { return (None, Problems(problems)) };
        config.approvals.measures = added.measures;
        config.add_secrets(environment, added);
        problems.extend(secrets::problems(environment, &secrets));
        problems.extend(check::problems(&config));
        problems.extend(late_reminder(&tree, &config));
        (Some(config), Problems(problems))
    }

    fn add_secrets(&mut self, environment: &HashMap<String, String>, added: &Additions) {
        let named = |secrets: &'static [(&'static str, &'static str)], key: &str| {
            let (_, name) = secrets.iter().find(|secret| secret.0 == key)?;
            secret_in(environment, name)
        };
        for spec in added.sections {
            let Some(section) = self.sections.0.get_mut(spec.name) else { continue };
            section.add_secrets(&|key| secret_in(environment, &spec.variable_of(key)?));
            section.add_variables(&|name| secret_in(environment, name));
        }
        let secret = |key: &str| named(SECRETS, key);
        self.slack.bot_token = secret("slack.bot_token");
        self.slack.app_token = secret("slack.app_token");
        self.slack.signing_secret = secret("slack.signing_secret");
        self.store.redis_url = secret("store.redis_url");
        self.model.api_key = secret("model.api_key");
        self.model.openai_api_key = secret("model.openai_api_key");
        self.model.gemini_api_key = secret("model.gemini_api_key");
        self.approvals.digest_keys = secret("approvals.digest_keys");
        self.record.stream_token = secret("record.stream_token");
        self.email.google_client_id = secret("email.google_client_id");
        self.email.google_client_secret = secret("email.google_client_secret");
        self.email.google_refresh_token = secret("email.google_refresh_token");
        self.email.imap_password = secret("email.imap_password");
        self.email.database_url = secret("email.database_url");
        self.email.hubspot_token = secret("email.hubspot_token");
        self.telemetry.otlp_headers = secret("telemetry.otlp_headers");
    }

    /// Returns the mode in which events arrive. If it is not set, it is Socket Mode if there is an app token, else
    /// HTTP.
    pub fn slack_mode(&self) -> SlackMode {
        match (self.slack.mode, &self.slack.app_token) {
            (Some(mode), _) => mode,
            (None, Some(_)) => SlackMode::Socket,
            (None, None) => SlackMode::Http,
        }
    }

    /// Returns the kind of store. If it is not set, it is Redis if its address is set, else SQLite.
    pub fn store_kind(&self) -> StoreKind {
        match (self.store.kind, &self.store.redis_url) {
            (Some(kind), _) => kind,
            (None, Some(_)) => StoreKind::Redis,
            (None, None) => StoreKind::Sqlite,
        }
    }
}

/// Returns the secret in a variable, or in the file that it names, if it is set and not blank.
fn secret_in(environment: &HashMap<String, String>, variable: &str) -> Option<SecretString> {
    let value = secrets::value_of(environment, variable)?.ok()?;
    (!value.is_empty()).then(|| SecretString::from(value))
}

/// Returns a builder that contains the defaults.
fn defaults(added: &Additions) -> ConfigBuilder<DefaultState> {
    let all = std::iter::once(DEFAULTS).chain(added.sections.iter().map(|section| section.defaults));
    all.fold(Tree::builder(), |builder, defaults| builder.add_source(File::from_str(defaults, FileFormat::Toml)))
}

/// Merges the defaults, the file and the variables.
fn tree(file: Option<&Path>, environment: &HashMap<String, String>, added: &Additions) -> Result<Tree, Problem> {
    let mut builder = defaults(added);
    if let Some(file) = file {
        if file.is_dir() {
            let what = "found a folder; expected a file with settings in it".to_owned();
            return Err(Problem { key: file.display().to_string(), what });
        }
        builder = builder.add_source(File::from(file).format(FileFormat::Toml));
    }
    let ours = environment.iter().filter(|(name, _)| name.starts_with("COUNTERSIGN__"));
    let (lists, own): (Vec<_>, Vec<_>) = ours.partition(|(name, _)| is_list(name, added));
    let own = own.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let variables = Environment::with_prefix("COUNTERSIGN").prefix_separator("__").separator("__").try_parsing(true);
    builder = builder.add_source(variables.source(Some(own)));
    for (name, value) in lists {
        let key = name["COUNTERSIGN__".len()..].to_lowercase().replace("__", ".");
        let items: Vec<&str> = value.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
        builder = builder.set_override(key, items).map_err(|error| fatal(name, &error))?;
    }
    let own = USUAL_NAMES.iter().map(|(name, key)| (*name, (*key).to_owned()));
    let theirs = added
        .sections
        .iter()
        .flat_map(|section| section.usual_names.iter().map(|(name, key)| (*name, format!("{}.{key}", section.name))));
    for (name, key) in own.chain(theirs) {
        if let Some(value) = environment.get(name) {
            let value = value.parse().map_or_else(|_| Value::from(value.as_str()), |number: i64| Value::from(number));
            builder = builder.set_override(key, value).map_err(|error| fatal(name, &error))?;
        }
    }
    builder.build().map_err(|error| fatal(&file.map_or("settings".to_owned(), |f| f.display().to_string()), &error))
}

/// Returns true if a variable sets a list, judging by the last part of its name. The items of a list are separated by
/// commas.
fn is_list(name: &str, added: &Additions) -> bool {
    let key = name.rsplit("__").next().unwrap_or_default().to_lowercase();
    let among = |measure: &Measure| matches!(measure.kind, Kind::Among { key: list, .. } if list == key);
    let of_sections = added.sections.iter().any(|section| section.lists.contains(&key.as_str()));
    LISTS.contains(&key.as_str()) || of_sections || added.measures.iter().copied().flatten().any(among)
}

/// Returns a problem for each section that is set to a plain value. This cannot be seen in the merged tree if a
/// variable sets a key of the same section.
fn sections_with_a_value(
    file: Option<&Path>,
    environment: &HashMap<String, String>,
    sections: &[&str],
) -> Vec<Problem> {
    let file = file.filter(|file| file.is_file()).and_then(|file| {
        let alone = Tree::builder().add_source(File::from(file).format(FileFormat::Toml));
        alone.build().ok()
    });
    let given = |section: &&str| {
        let variable = environment.get(&format!("COUNTERSIGN__{}", section.to_uppercase())).cloned();
        let in_file = || file.as_ref()?.get::<Value>(section).ok().filter(|found| !is_table(found));
        let found = variable.or_else(|| in_file().map(|found| found.to_string()))?;
        Some(no_section(section, &found))
    };
    sections.iter().filter_map(given).collect()
}

fn is_table(value: &Value) -> bool {
    matches!(value.kind, ValueKind::Table(_))
}

fn no_section(name: &str, found: &str) -> Problem {
    let what = format!("found `{found}`; expected a section, [{name}], with keys of its own");
    Problem { key: name.to_owned(), what }
}

/// Returns a problem if the reminder is set to come before half of a card's time is over. The default reminder is no
/// problem, even for cards that are open for a shorter time.
fn late_reminder(tree: &Tree, config: &Config) -> Option<Problem> {
    let settings = &config.approvals;
    let given = tree.get_table("approvals").unwrap_or_default().remove("remind_before");
    let is_set = given.is_some_and(|value| value.origin().is_some());
    let most = settings.expires_after / 2;
    (is_set && settings.remind_before > most).then(|| Problem {
        key: "approvals.remind_before".to_owned(),
        what: format!(
            "found {}; expected at most half of approvals.expires_after, {}",
            check::format_time(settings.remind_before),
            check::format_time(most)
        ),
    })
}

fn unknown_sections(tree: &Tree, sections: &[&str]) -> Vec<Problem> {
    let Ok(found) = tree.clone().try_deserialize::<HashMap<String, Value>>() else { return Vec::new() };
    let mut unknown: Vec<_> = found.into_keys().filter(|name| !sections.contains(&name.as_str())).collect();
    unknown.sort();
    let problems = unknown.into_iter().map(|name| {
        let near = nearest(&name, sections.iter().copied()).map(|near| format!("did you mean {near}? "));
        let near = near.unwrap_or_default();
        Problem { what: format!("there is no such section; {near}the sections are {}", sections.join(", ")), key: name }
    });
    problems.collect()
}

/// Reads sections and collects problems.
struct Reader<'a> {
    tree: &'a Tree,
    defaults: &'a Tree,
    /// All secrets, as pairs of the full key and the only variable that may contain it.
    secrets: &'a [(String, &'static str)],
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn section<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        self.values(name, serde_json::from_value)
    }

    fn values<T>(&mut self, name: &str, read: impl Fn(Json) -> Result<T, serde_json::Error>) -> Option<T> {
        let table = self.tree.get_table(name).unwrap_or_else(|_| {
            let found = self.tree.get::<Value>(name).unwrap_or_default();
            if !self.problems.iter().any(|problem| problem.key == name) {
                self.problems.push(no_section(name, &found.to_string()));
            }
            Default::default()
        });
        let defaults = self.defaults.get_table(name).unwrap_or_default();
        let mut good: Map<String, Json> = defaults.iter().map(|(key, value)| (key.clone(), json(value))).collect();
        let mut table: Vec<_> = table.into_iter().collect();
        table.sort_by(|a, b| a.0.cmp(&b.0));
        for (key, value) in table {
            let full = format!("{name}.{key}");
            if let Some((_, variable)) = self.secrets.iter().find(|secret| secret.0 == full) {
                let what = format!("secrets come from the environment only; set {variable} there and remove this");
                self.problems.push(Problem { key: full, what });
                continue;
            }
            // Types are checked strictly: a number is not accepted as a boolean, nor a string as a number. Only a value
            // that was parsed as a number or boolean is also tried as a string, since a variable may have meant one.
            let with = |value: Json| {
                let candidate: Map<_, _> = good.clone().into_iter().chain([(key.clone(), value)]).collect();
                read(Json::Object(candidate.clone())).map(|_| candidate)
            };
            let found = json(&value);
            let as_word = (found.is_number() || found.is_boolean()).then(|| with(Json::String(value.to_string())));
            match with(found).or_else(|error| as_word.and_then(Result::ok).ok_or(error)) {
                Ok(candidate) => good = candidate,
                Err(error) => {
                    let what = explain(&value, &error.to_string(), defaults.get(&key));
                    self.problems.push(Problem { what, key: full });
                }
            }
        }
        match read(Json::Object(good)) {
            Ok(section) => Some(section),
            Err(error) => {
                self.problems.push(Problem { key: name.to_owned(), what: error.to_string() });
                None
            }
        }
    }
}

/// Converts a value to JSON without changing its type, unlike the lenient conversions of the library.
fn json(value: &Value) -> Json {
    match &value.kind {
        ValueKind::Nil => Json::Null,
        ValueKind::Boolean(value) => Json::from(*value),
        ValueKind::I64(value) => Json::from(*value),
        ValueKind::U64(value) => Json::from(*value),
        ValueKind::Float(value) if value.is_finite() => Json::from(*value),
        ValueKind::String(value) => Json::from(value.as_str()),
        ValueKind::Table(table) => table.iter().map(|(key, value)| (key.clone(), json(value))).collect(),
        ValueKind::Array(values) => values.iter().map(json).collect(),
        _ => Json::String(value.to_string()), // `inf` may be a word; other numbers are too large for any setting
    }
}

/// Describes a wrong value and what would be right.
fn explain(found: &Value, cause: &str, default: Option<&Value>) -> String {
    let mut cause = cause.to_owned();
    for number in ["u16", "u32", "u64", "usize"] {
        cause = cause.replace(&format!("expected {number}"), "expected a whole number");
    }
    let meant = cause.strip_prefix("unknown field `").and_then(|rest| {
        let (unknown, known) = rest.split_once('`')?;
        nearest(unknown, known.split('`').skip(1).step_by(2)).map(|near| format!("; did you mean `{near}`?"))
    });
    // In a file, the quotation marks may be the mistake, so they are shown.
    let is_quoted =
        found.origin().is_some_and(|origin| origin != ENVIRONMENT) && cause.starts_with("invalid type: string");
    let found = if is_quoted { format!("\"{found}\"") } else { found.to_string() };
    match default {
        Some(default) if matches!(default.kind, ValueKind::Array(_)) => {
            format!("found `{found}` ({cause}); expected a list such as `{}`", json(default))
        }
        Some(default) => format!("found `{found}` ({cause}); expected something like `{default}`"),
        None => format!("found `{found}` ({cause}){}", meant.unwrap_or_default()),
    }
}

/// Returns the problem of a source that cannot be read as a whole.
fn fatal(key: &str, error: &ConfigError) -> Problem {
    let what = match error {
        ConfigError::FileParse { cause, .. } => cause.to_string().trim_end().to_owned(), // the key names the file
        error => error.to_string(),
    };
    Problem { key: key.to_owned(), what }
}
