//! Secrets: the variables that contain them, or name files that do, and checks that each is the right kind of secret. No
//! more than the prefix of a secret is ever shown.

use std::{collections::HashMap, fs};

use countersign_core::addresses;
use url::Url;

use super::{Additions, Problem};

/// The secrets, as pairs of the setting and the only variable that may contain it.
pub(super) const SECRETS: &[(&str, &str)] = &[
    ("slack.bot_token", "SLACK_BOT_TOKEN"),
    ("slack.app_token", "SLACK_APP_TOKEN"),
    ("slack.signing_secret", "SLACK_SIGNING_SECRET"),
    ("store.redis_url", "REDIS_URL"),
    ("model.api_key", "ANTHROPIC_API_KEY"),
    ("model.openai_api_key", "OPENAI_API_KEY"),
    ("model.gemini_api_key", "GEMINI_API_KEY"),
    ("approvals.digest_keys", "COUNTERSIGN_DIGEST_KEYS"),
    ("record.stream_token", "RECORD_STREAM_TOKEN"),
    ("email.google_client_id", "GOOGLE_CLIENT_ID"),
    ("email.google_client_secret", "GOOGLE_CLIENT_SECRET"),
    ("email.google_refresh_token", "GOOGLE_REFRESH_TOKEN"),
    ("email.imap_password", "IMAP_PASSWORD"),
    ("email.database_url", "DATABASE_URL"),
    ("email.hubspot_token", "HUBSPOT_TOKEN"),
    ("telemetry.otlp_headers", "OTEL_EXPORTER_OTLP_HEADERS"),
];

/// The prefixes of secrets, the kind of each, and the only variable that may contain it; empty if there is none.
const KINDS: &[(&str, &str, &str)] = &[
    ("xoxb-", "a Slack bot token", "SLACK_BOT_TOKEN"),
    ("xapp-", "a Slack app-level token", "SLACK_APP_TOKEN"),
    ("xoxp-", "a Slack user token", ""),
    ("xoxe", "a rotating Slack token", ""),
    ("xox", "a Slack token of another kind", ""),
    ("sk-ant-", "an Anthropic key", "ANTHROPIC_API_KEY"),
    ("sk-proj-", "an OpenAI key", "OPENAI_API_KEY"),
    ("redis://", "the address of a Redis server", "REDIS_URL"),
    ("rediss://", "the address of a Redis server", "REDIS_URL"),
    ("valkey://", "the address of a Valkey server", "REDIS_URL"),
    ("valkeys://", "the address of a Valkey server", "REDIS_URL"),
    ("postgres://", "the address of a PostgreSQL server", "DATABASE_URL"),
    ("postgresql://", "the address of a PostgreSQL server", "DATABASE_URL"),
    ("http://", "an address", ""),
    ("https://", "an address", ""),
    ("{", "a key file, not a key", ""),
    ("-----BEGIN", "a certificate or key file, not a key", ""),
];

/// The secrets that may look like anything: a password that people choose, and headers.
const ANYTHING: [&str; 2] = ["IMAP_PASSWORD", "OTEL_EXPORTER_OTLP_HEADERS"];

/// Returns all secrets, including those of the capabilities, as pairs of the full key and the variable.
pub(super) fn all(added: &Additions) -> Vec<(String, &'static str)> {
    let own = SECRETS.iter().map(|(key, name)| ((*key).to_owned(), *name));
    let theirs = added
        .sections
        .iter()
        .flat_map(|section| section.secrets.iter().map(|(key, name)| (format!("{}.{key}", section.name), *name)));
    own.chain(theirs).collect()
}

/// Returns the value of the variable `name`, or the content of the file that `NAME_FILE` names, as containers mount secrets;
/// `None` if neither is set. Blanks around it are removed.
///
/// # Errors
///
/// A description of the problem if both are set, or the file cannot be read.
pub(super) fn value_of(environment: &HashMap<String, String>, name: &str) -> Option<Result<String, String>> {
    let in_file = environment.get(&variable_of_file(name));
    match (environment.get(name), in_file) {
        (Some(_), Some(_)) => Some(Err(format!("both {name} and {name}_FILE are set; expected one of them"))),
        (Some(value), None) => Some(Ok(value.trim().to_owned())),
        (None, Some(path)) => Some(match fs::read_to_string(path) {
            Ok(content) => Ok(content.trim().to_owned()),
            Err(error) => Err(format!("the file {path} can't be read: {error}; expected a file with the secret in it")),
        }),
        (None, None) => None,
    }
}

/// Returns the variable that names the file with a secret.
pub(super) fn variable_of_file(name: &str) -> String {
    format!("{name}_FILE")
}

/// Returns the problems with the secrets that are set.
pub(super) fn problems(environment: &HashMap<String, String>, secrets: &[(String, &'static str)]) -> Vec<Problem> {
    let set = secrets.iter().filter_map(|(_, name)| Some((*name, value_of(environment, name)?)));
    let wrong = set.filter_map(|(name, value)| {
        let is_in_file = environment.contains_key(&variable_of_file(name));
        let key = if is_in_file { variable_of_file(name) } else { name.to_owned() };
        let what = value.map_or_else(Some, |value| wrong(name, &value))?;
        Some(Problem { key, what })
    });
    wrong.collect()
}

/// Describes the problem with the value of a secret, if there is one.
fn wrong(name: &str, value: &str) -> Option<String> {
    let right = match name {
        "SLACK_BOT_TOKEN" => "the bot token (xoxb-…), on the app's page under OAuth & Permissions",
        "SLACK_APP_TOKEN" => "the app-level token (xapp-…), on the app's page under Basic Information",
        "SLACK_SIGNING_SECRET" => "the signing secret, on the app's page under Basic Information",
        "REDIS_URL" => "an address such as redis://user:password@host:6379/0, with commas between several hosts",
        "ANTHROPIC_API_KEY" | "OPENAI_API_KEY" | "GEMINI_API_KEY" => "a key of the language model's provider",
        "COUNTERSIGN_DIGEST_KEYS" => {
            "keys of at least 32 bytes each, in hexadecimal or base64, with commas between them"
        }
        "GOOGLE_CLIENT_ID" | "GOOGLE_CLIENT_SECRET" => {
            "the OAuth client's value, in the Google Cloud console under APIs & Services, Credentials"
        }
        "GOOGLE_REFRESH_TOKEN" => "a refresh token of the mail account for that OAuth client",
        "DATABASE_URL" => "an address such as postgresql://user:password@host:5432/database",
        "IMAP_PASSWORD" => "the password of the mail account",
        "OTEL_EXPORTER_OTLP_HEADERS" => "headers such as authorization=Bearer%20…, with commas between several",
        _ => "a token of the platform",
    };
    let kind = KINDS.iter().find(|(begins, ..)| value.starts_with(begins));
    let begins = match name {
        "SLACK_BOT_TOKEN" => "xoxb-",
        "SLACK_APP_TOKEN" => "xapp-",
        _ => "",
    };
    if value.is_empty() {
        return Some(format!("it is set, but empty; expected {right}, or leave it unset"));
    }
    if value.starts_with(['"', '\'']) || value.ends_with(['"', '\'']) {
        return Some("it is in quotation marks; expected the same without them".to_owned());
    }
    if ANYTHING.contains(&name) {
        return value
            .contains(char::is_control)
            .then(|| "it has a line break or a control character in it; expected one line".to_owned());
    }
    match kind {
        Some((begins, what, place)) if *place != name => {
            return Some(format!("it begins with {begins}, as {what} does; expected {right}"));
        }
        _ => {}
    }
    if value.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Some("it contains a line break or a space; expected one word".to_owned());
    }
    if !value.starts_with(begins) {
        return Some(format!("it does not begin with {begins}; expected {right}"));
    }
    match name {
        "REDIS_URL" if !is_redis(value) => Some(format!("this isn't an address of a Redis server; expected {right}")),
        "DATABASE_URL" if !is_postgresql(value) => {
            Some(format!("this isn't an address of a PostgreSQL server; expected {right}"))
        }
        _ => None,
    }
}

fn is_redis(text: &str) -> bool {
    addresses::of_each_server(text).iter().all(|address| {
        Url::parse(address).is_ok_and(|url| match url.scheme() {
            "redis" | "rediss" | "valkey" | "valkeys" => url.has_host(),
            "redis+sentinel" | "rediss+sentinel" | "valkey+sentinel" | "valkeys+sentinel" => url.has_host(),
            "redis-sentinel" | "rediss-sentinel" => url.has_host(),
            "unix" | "redis+unix" | "valkey+unix" => true,
            _ => false,
        })
    })
}

fn is_postgresql(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| matches!(url.scheme(), "postgres" | "postgresql"))
}

/// Describes the problem with the address of a service; `None` if it is valid. An address must not contain a secret.
pub fn wrong_address(address: &str) -> Option<String> {
    let url = match Url::parse(address) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url,
        _ => {
            let right = "expected an address that begins with http:// or https://";
            let found = if address.contains('@') { "something else".to_owned() } else { format!("`{address}`") };
            return Some(format!("found {found}; {right}"));
        }
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Some("found an address with a name or a password in it; expected one without".to_owned());
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Some(format!("found `{address}`; expected an address with a host in it"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        let plain = address.split(['?', '#']).next().unwrap_or_default();
        let what = "found an address with a query or a fragment";
        return Some(format!("{what}; expected `{plain}`"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_secret_is_reported_without_its_value() {
        let every = [
            ("SLACK_BOT_TOKEN", "xapp-1-hidden"),
            ("SLACK_BOT_TOKEN", "hidden"),
            ("SLACK_BOT_TOKEN", "\"xoxb-hidden\""),
            ("SLACK_BOT_TOKEN", ""),
            ("SLACK_APP_TOKEN", "xoxb-hidden"),
            ("SLACK_SIGNING_SECRET", "xoxb-hidden"),
            ("SLACK_SIGNING_SECRET", "sk-ant-hidden"),
            ("SLACK_SIGNING_SECRET", "   "),
            ("REDIS_URL", "http://hidden"),
            ("REDIS_URL", "hidden:6379"),
            ("REDIS_URL", "redis://"),
            ("REDIS_URL", "redis://:hidden@one:6379,"),
            ("REDIS_URL", "redis://:hidden@one:6379,two:port"),
            ("ANTHROPIC_API_KEY", "xoxb-hidden"),
            ("ANTHROPIC_API_KEY", "sk-proj-hidden"),
            ("OPENAI_API_KEY", "sk-ant-hidden"),
            ("GEMINI_API_KEY", ""),
            ("DATABASE_URL", "rediss://hidden"),
            ("GOOGLE_REFRESH_TOKEN", "postgres://hidden"),
            ("IMAP_PASSWORD", "two\nlines of hidden"),
            ("PLATFORM_TOKEN", "Bearer hidden"),
            ("PLATFORM_TOKEN", "{ \"private_key\": \"hidden\" }"),
        ];
        for (name, value) in every {
            let problem = wrong(name, value.trim());
            assert!(problem.as_ref().is_some_and(|text| !text.contains("hidden")), "{name} {value}: {problem:?}");
        }
        let fine = [
            ("SLACK_BOT_TOKEN", "xoxb-1"),
            ("SLACK_APP_TOKEN", "xapp-1"),
            ("SLACK_SIGNING_SECRET", "8f742231b10e8888abcd99yyyzzz85a5"),
            ("REDIS_URL", "rediss://:secret@127.0.0.1:6379/0"),
            ("REDIS_URL", "redis://:secret@one:6379,two:6379"),
            ("REDIS_URL", "valkeys://:secret@one:6379"),
            ("REDIS_URL", "redis+sentinel://:secret@one,two:26380/mymaster"),
            ("REDIS_URL", "redis://:secret@one:6379,redis://:secret@two:6379"),
            ("ANTHROPIC_API_KEY", "sk-ant-1"),
            ("OPENAI_API_KEY", "sk-proj-1"),
            ("GEMINI_API_KEY", "AIza1"),
            ("ANTHROPIC_API_KEY", "a gateway's".split(' ').next().unwrap()),
            ("PLATFORM_TOKEN", "eyJhbGciOi.J9"),
            ("DATABASE_URL", "postgresql://user:secret@127.0.0.1/mail"),
            ("IMAP_PASSWORD", "{ http:// and blanks }"),
        ];
        for (name, value) in fine {
            assert_eq!(wrong(name, value), None, "{name} {value}");
        }
    }

    #[test]
    fn an_address_has_a_scheme_and_a_host_and_no_credentials_or_query() {
        let every = ["api.example.com", "ftp://host", "http://", "https://u:hidden@host/api", "u:hidden@host"];
        for address in
            every.into_iter().chain(["https://host/api?debug=1", "https://host/api#top", "", "https://host?"])
        {
            let problem = wrong_address(address);
            assert!(problem.as_ref().is_some_and(|text| !text.contains("hidden")), "{address}: {problem:?}");
        }
        for address in ["http://127.0.0.1:3030/api", "https://api.example.com", "https://host/"] {
            assert_eq!(wrong_address(address), None, "{address}");
        }
    }

    #[test]
    fn a_secret_can_be_in_a_file() {
        let file = std::env::temp_dir().join(format!("countersign-secret-{}", std::process::id()));
        fs::write(&file, "xoxb-1\n").unwrap();
        let path = file.display().to_string();
        let secrets = [("slack.bot_token".to_owned(), "SLACK_BOT_TOKEN")];
        let environment = |all: &[(&str, &str)]| -> HashMap<String, String> {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let told = |all: &[(&str, &str)]| -> Vec<String> {
            let found = problems(&environment(all), &secrets);
            found.into_iter().map(|Problem { key, what }| format!("{key}: {what}").replace(&path, "PATH")).collect()
        };
        let mounted = environment(&[("SLACK_BOT_TOKEN_FILE", &path)]);
        assert_eq!(value_of(&mounted, "SLACK_BOT_TOKEN"), Some(Ok("xoxb-1".to_owned())));
        assert!(told(&[("SLACK_BOT_TOKEN_FILE", &path)]).is_empty());
        assert_eq!(
            told(&[("SLACK_BOT_TOKEN_FILE", &path), ("SLACK_BOT_TOKEN", "xoxb-2")]),
            ["SLACK_BOT_TOKEN_FILE: both SLACK_BOT_TOKEN and SLACK_BOT_TOKEN_FILE are set; expected one of them"]
        );
        fs::write(&file, "xapp-1").unwrap();
        assert!(told(&[("SLACK_BOT_TOKEN_FILE", &path)])[0].starts_with("SLACK_BOT_TOKEN_FILE: it begins with xapp-"));
        fs::remove_file(&file).unwrap();
        assert!(told(&[("SLACK_BOT_TOKEN_FILE", &path)])[0].contains("the file PATH can't be read"));
    }
}
