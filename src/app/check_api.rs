//! Checks the API for programs: says what the settings mean, and looks at Slack and the receivers of callbacks.

use std::sync::Arc;

use countersign_api::{
    callback,
    settings::{Api, Callback, Key, Policy, Scope},
};
use countersign_config::Config;
use countersign_core::{
    clock::{Clock as _, SystemClock},
    ids::ChannelId,
};
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};

use super::{check::CheckLine, dependencies, stdout::describe_error};

/// The number of days before the end of a key from which on it is mentioned.
const SOON: i64 = 14;

/// Returns the lines about the API; none if there is none. The network is used if `is_online`.
pub(super) async fn run(config: &Config, is_online: bool) -> Vec<CheckLine> {
    let api: &Api = config.sections.get();
    let Some(listen) = api.listen else { return Vec::new() };
    let (url, tools) = (api.url(), if api.mcp { ", with tools for agents at /mcp" } else { "" });
    let mut lines = vec![CheckLine::new("api", Ok(format!("{url}, on {listen}{tools}")))];
    for (name, policy) in &api.policies {
        let (needed, approvers) = (api.needed(policy, &config.approvals), api.approvers(policy, &config.approvals));
        let result = match (who(needed, approvers), is_online) {
            (Some(who), true) => in_channel(config, policy).await.map(|()| who),
            (Some(who), false) => Ok(who),
            (None, _) => Err("nobody can approve; expected approvers in it, or in [approvals]".to_owned()),
        };
        let about = |what: String| format!("{name} in {}: {what}", policy.channel);
        lines.push(CheckLine::new("policy", result.map(about).map_err(|wrong| format!("{name}: {wrong}"))));
    }
    lines.extend(api.keys.iter().map(|(name, key)| of_key(name, key)));
    let settings = Arc::new(api.clone());
    for (name, callback) in &api.callbacks {
        lines.push(CheckLine::new("callback", of_callback(&settings, name, callback, is_online).await));
    }
    lines
}

/// Says who approves, such as `2 approvals, by S0DEPLOYERS or U0ANA`; `None` if nobody does.
fn who(needed: u32, approvers: &[String]) -> Option<String> {
    let approvals = if needed == 1 { "1 approval".to_owned() } else { format!("{needed} approvals") };
    let named = approvers.iter().map(|name| if name == "channel" { "anyone in the channel" } else { name });
    (!approvers.is_empty()).then(|| format!("{approvals}, by {}", named.collect::<Vec<_>>().join(" or ")))
}

/// Checks that the bot can post in the channel of a policy.
async fn in_channel(config: &Config, policy: &Policy) -> Result<(), String> {
    let slack = dependencies::slack(config).map_err(|error| describe_error(&error))?;
    let bot = slack.auth_test().await.map_err(|error| error.to_string())?.identity;
    let channel = ChannelId::from(&*policy.channel);
    match slack.is_member(&channel, &bot.user).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("the bot is not in {channel}; invite it there")),
        Err(error) => Err(format!("cannot look at {channel} ({error}); expected a channel that the bot is in")),
    }
}

/// Returns the line about a key.
fn of_key(name: &str, key: &Key) -> CheckLine {
    let scopes: Vec<_> = key.scopes.iter().copied().map(Scope::name).collect();
    let policies = if key.policies.is_empty() { "no policy".to_owned() } else { key.policies.join(", ") };
    let until = key.expires.as_deref().map(|day| format!(", until {day}")).unwrap_or_default();
    let what = format!(
        "{name}: {} for {policies}{until}",
        if scopes.is_empty() { "nothing".to_owned() } else { scopes.join(", ") }
    );
    let now = Timestamp::from_millisecond(SystemClock.now().millis()).unwrap_or_default();
    let today = now.to_zoned(TimeZone::UTC).date();
    let soon = today.saturating_add(SOON.days());
    match key.last_day() {
        _ if key.hashes.is_empty() => CheckLine::new("key", Ok(format!("{name}: revoked"))),
        Some(last) if last < today => {
            let remedy = format!("`countersign key rotate {name}` makes a new secret, and expires needs a later day");
            CheckLine::new("key", Err(format!("{name} ended on {last}; {remedy}")))
        }
        Some(last) if last <= soon => {
            let advice = Some(format!("it ends soon; `countersign key rotate {name}` makes a new secret"));
            CheckLine { advice, ..CheckLine::new("key", Ok(what)) }
        }
        _ => CheckLine::new("key", Ok(what)),
    }
}

/// Checks that the receiver of a callback is there.
async fn of_callback(api: &Arc<Api>, name: &str, callback: &Callback, is_online: bool) -> Result<String, String> {
    let host = callback.host().unwrap_or_default();
    if !is_online {
        return Ok(format!("{name}: {host}"));
    }
    match callback::is_there(api, callback).await {
        Ok(()) => Ok(format!("{name}: {host}, which answers")),
        Err(why) => {
            Err(format!("{name}: {host} is not reached ({why}); expected a receiver at api.callbacks.{name}.url"))
        }
    }
}
