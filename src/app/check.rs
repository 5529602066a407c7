//! `countersign check`: checks every outside system once and reports each in one line.

use std::{fmt, sync::Arc, time::Duration};

use countersign_capabilities::{ChangingOffer, Tell, changing};
use countersign_config::{Config, SlackMode, StoreKind};
use countersign_core::clock::{Clock as _, SystemClock};
use countersign_graph::store::{Store, ThreadFilter};
use countersign_services::http;
use countersign_slack::{client::SlackClient, refusal::Refusal};
use countersign_standing as standing;
use futures_util::future::join_all;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use url::Url;

use super::{
    check_api, check_approvers, check_mail, check_messages, check_models, check_scopes, check_store, dependencies,
    installed, keys, mail, spans, stdout::describe_error,
};

/// The manifest of the app. The one for HTTP differs only in the delivery of events.
const MANIFEST: &str = include_str!("../../deploy/slack-manifest.socket.json");

/// By how much the last change in the store may be after the time here: the clocks of several processes differ.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(6);

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckLine {
    /// The subject of the check.
    pub what: &'static str,
    /// The state of the subject, or the problem and its remedy.
    pub result: Result<String, String>,
    /// What would make it better, although it works.
    pub advice: Option<String>,
}

impl CheckLine {
    /// Creates a line without advice.
    pub fn new(what: &'static str, result: Result<String, String>) -> Self {
        Self { what, result, advice: None }
    }

    /// Returns the line as JSON. A problem and its remedy are separated by the first semicolon.
    fn to_json(&self) -> Value {
        let (status, what, remedy) = match (&self.result, &self.advice) {
            (Ok(how), None) => ("ok", how.as_str(), None),
            (Ok(how), Some(advice)) => ("warning", how.as_str(), Some(advice.as_str())),
            (Err(wrong), _) => match wrong.split_once("; ") {
                Some((what, remedy)) => ("failed", what, Some(remedy)),
                None => ("failed", wrong.as_str(), None),
            },
        };
        json!({ "name": self.what, "status": status, "what": what, "remedy": remedy })
    }
}

impl fmt::Display for CheckLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, result, advice } = self;
        match (result, advice) {
            (Ok(how), None) => write!(f, "ok    {what:<8} {how}"),
            (Ok(how), Some(advice)) => write!(f, "ok    {what:<8} {how}; {advice}"),
            (Err(wrong), _) => write!(f, "wrong {what:<8} {wrong}"),
        }
    }
}

/// Returns the report as one JSON object.
pub fn report(lines: &[CheckLine]) -> Value {
    let checks: Vec<Value> = lines.iter().map(CheckLine::to_json).collect();
    json!({ "ok": lines.iter().all(|line| line.result.is_ok()), "checks": checks })
}

/// Returns the line about the settings.
pub fn of_settings(wrong: &[String]) -> CheckLine {
    let result = match wrong {
        [] => Ok("all valid, and the files that they name can be read".to_owned()),
        wrong => Err(wrong.join("; ")),
    };
    CheckLine::new("settings", result)
}

/// Checks everything that the settings name.
pub async fn run(config: &Config) -> Vec<CheckLine> {
    let (store, opened) = check_store::run(config).await;
    let key = keys::check(config, opened.as_deref()).await;
    drop(opened);
    let mut lines = vec![
        CheckLine::new("slack", slack(config).await),
        CheckLine::new("scopes", scopes(config).await),
        CheckLine::new("events", events(config).await),
        store,
        CheckLine::new("digest key", key),
        CheckLine::new("messages", check_messages::run(config).await),
    ];
    lines.extend(models(config).await);
    lines.extend(services(config).await);
    let mail = check_mail::run(config).await.into_iter();
    lines.extend(mail.map(|(what, result)| CheckLine::new(what, result)));
    let traces = spans::check(&config.telemetry).await.into_iter();
    lines.extend(traces.map(|result| CheckLine::new("traces", result)));
    lines.push(CheckLine::new("actions", actions(config)));
    lines.push(CheckLine::new("approvers", check_approvers::run(config).await));
    lines.extend(check_api::run(config, true).await);
    if check_scopes::names_any(config) {
        lines.push(CheckLine::new("contexts", check_scopes::run(config).await));
    }
    lines
}

/// Checks what needs no network: the settings, the store if it is a file, the digest keys, and the clock.
pub async fn offline(config: &Config) -> Vec<CheckLine> {
    let mut lines = vec![of_settings(&settings(config))];
    let opened = match config.store_kind() {
        StoreKind::Sqlite => {
            let (store, opened) = check_store::run(config).await;
            lines.extend([store, CheckLine::new("messages", check_messages::run(config).await)]);
            opened
        }
        StoreKind::Redis => {
            lines.push(CheckLine::new("store", Ok("Redis, which is not asked without the network".to_owned())));
            None
        }
    };
    lines.push(CheckLine::new("digest key", keys::check(config, opened.as_deref()).await));
    lines.push(CheckLine::new("clock", clock(opened.as_deref()).await));
    lines.push(CheckLine::new("actions", actions(config)));
    lines.extend(check_api::run(config, false).await);
    lines
}

/// Compares the clock with the last change in the store.
async fn clock(store: Option<&dyn Store>) -> Result<String, String> {
    let now = SystemClock.now();
    let latest = match store {
        Some(store) => store.threads(ThreadFilter::All, 1).await.map_err(|error| error.to_string())?,
        None => Vec::new(),
    };
    match latest.first().map(|thread| thread.updated_at) {
        Some(changed) if changed > now + CLOCK_TOLERANCE => Err(format!(
            "it is {now} here, before the last change in the store, of {changed}; set the clock, and run an NTP client"
        )),
        _ => Ok(format!("{now}")),
    }
}

/// Returns every problem with the settings that can be found without contacting other systems.
pub fn settings(config: &Config) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut note = |result: Result<(), anyhow::Error>| wrong.extend(result.err().map(|error| describe_error(&error)));
    note(dependencies::slack(config).map(drop));
    note(check_event_secret(config).map_err(anyhow::Error::msg));
    note(dependencies::redis_url(config).map(drop));
    note(dependencies::redis_access(config).map(drop));
    note(dependencies::models(config, Arc::default()).map(drop));
    note(dependencies::embeddings(config).map(drop));
    note(dependencies::capabilities(config, Arc::new(SystemClock)).map(drop));
    note(mail::ensure_complete(config));
    wrong
}

async fn slack(config: &Config) -> Result<String, String> {
    let client = dependencies::slack(config).map_err(|error| describe_error(&error))?;
    let account = client.auth_test().await.map_err(|error| match client.token_health().refusal() {
        Some(refusal) => refusal.to_string(),
        None => format!("{error} (SLACK_API_URL is {})", config.slack.api_url),
    })?;
    Ok(format!("{} ({}), as {}", account.team_name, account.team, account.identity.user))
}

/// Checks that the app has every scope in the manifest in `deploy/`. Slack returns the granted scopes in a header of
/// every answer.
async fn scopes(config: &Config) -> Result<String, String> {
    let token = config.slack.bot_token.as_ref().ok_or("SLACK_BOT_TOKEN is not set")?;
    let base = config.slack.api_url.trim_end_matches('/');
    let url: Url = format!("{base}/auth.test").parse().map_err(|_| format!("`{base}` isn't a valid URL"))?;
    let client = http::client(&url, config.slack.timeout).map_err(|error| error.to_string())?;
    let answer = client.post(url).bearer_auth(token.expose_secret()).send().await;
    let answer = answer.map_err(|_| format!("Slack isn't answering (SLACK_API_URL is {})", config.slack.api_url))?;
    let granted = answer.headers().get("x-oauth-scopes").and_then(|granted| granted.to_str().ok()).unwrap_or_default();
    let granted: Vec<&str> = granted.split(',').map(str::trim).filter(|scope| !scope.is_empty()).collect();
    if granted.is_empty() {
        return Err("Slack reported no scopes for this token".to_owned());
    }
    let manifest: Value = serde_json::from_str(MANIFEST).expect("a test parses the manifest, too");
    let wanted = manifest["oauth_config"]["scopes"]["bot"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing: Vec<&str> = wanted.filter(|scope| !granted.contains(scope)).collect();
    if missing.is_empty() {
        return Ok(format!("{}, all required scopes", granted.len()));
    }
    Err(format!(
        "the app lacks {}; add the missing scopes under OAuth & Permissions, then reinstall the app",
        missing.join(", ")
    ))
}

async fn events(config: &Config) -> Result<String, String> {
    check_event_secret(config)?;
    match (config.slack_mode(), &config.slack.app_token) {
        (SlackMode::Socket, Some(token)) => socket_mode(config, token).await,
        _ => Ok(format!("over HTTP on {}:{}", config.server.address, config.server.port)),
    }
}

/// Checks that the secret for the configured source of events is set.
fn check_event_secret(config: &Config) -> Result<(), String> {
    match (config.slack_mode(), &config.slack.app_token, &config.slack.signing_secret) {
        (SlackMode::Socket, Some(_), _) | (SlackMode::Http, _, Some(_)) => Ok(()),
        (SlackMode::Socket, None, _) => Err("slack.mode is \"socket\", but SLACK_APP_TOKEN is not set".to_owned()),
        (SlackMode::Http, _, None) => {
            Err("set SLACK_APP_TOKEN (xapp-…) for Socket Mode, or SLACK_SIGNING_SECRET for HTTP".to_owned())
        }
    }
}

async fn socket_mode(config: &Config, app_token: &SecretString) -> Result<String, String> {
    let config = &config.slack;
    let client = SlackClient::new(&config.api_url, app_token, config.timeout).map_err(|error| error.to_string())?;
    client.connections_open().await.map_err(|error| match Refusal::of(&error) {
        Some(refusal) => refusal.to_string(),
        None => format!("{error} (SLACK_API_URL is {})", config.api_url),
    })?;
    Ok("over Socket Mode".to_owned())
}

/// Checks the configured models and the source of embeddings.
pub async fn models(config: &Config) -> Vec<CheckLine> {
    check_models::run(config).await
}

/// Checks the outside systems of the capabilities.
async fn services(config: &Config) -> Vec<CheckLine> {
    let all = match installed::capabilities(config, Arc::new(SystemClock)) {
        Ok(all) => all,
        Err(error) => {
            let wrong = describe_error(&error);
            let of = installed::SETTINGS.sections.iter().find(|section| wrong.starts_with(section.name));
            return vec![CheckLine::new(of.map_or("capabilities", |section| section.name), Err(wrong))];
        }
    };
    let lines = join_all(all.iter().map(|capability| capability.check())).await;
    join_all(changing(&all).map(ChangingOffer::close)).await;
    lines.into_iter().flatten().map(|(what, result)| CheckLine::new(what, result)).collect()
}

/// Shows what the outside systems offer that must be accepted, such as tools, and accepts it if `keep` is true. `tell`
/// shows at once what the operator has to do first.
pub async fn accept(config: &Config, keep: bool, tell: &Tell<'_>) -> Vec<CheckLine> {
    let all = match installed::capabilities(config, Arc::new(SystemClock)) {
        Ok(all) => all,
        Err(error) => return vec![CheckLine::new("capabilities", Err(describe_error(&error)))],
    };
    let shown = join_all(changing(&all).map(|offer| offer.accept(keep, tell))).await;
    join_all(changing(&all).map(ChangingOffer::close)).await;
    let lines = shown.into_iter().flatten().flat_map(|(what, result)| match result {
        Ok(lines) => lines.into_iter().map(|line| CheckLine::new(what, Ok(line))).collect(),
        Err(wrong) => vec![CheckLine::new(what, Err(wrong))],
    });
    lines.collect()
}

fn actions(config: &Config) -> Result<String, String> {
    let registry = dependencies::capabilities(config, Arc::new(SystemClock)).map_err(|error| describe_error(&error))?;
    let known = registry.actions.len() + standing::ACTIONS.len(); // as `/countersign settings` lists them
    match config.approvals.rules().len() {
        0 => Ok(format!("{known}, all approved as set in [approvals]")),
        1 => Ok(format!("{known}, 1 with its own rule")),
        own => Ok(format!("{known}, {own} with their own rules")),
    }
}
