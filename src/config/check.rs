//! The checks of settings that could be parsed.

use std::{collections::BTreeSet, path::Path, time::Duration};

use secrecy::ExposeSecret as _;

use super::{
    Approvals, Config, Problem, Rule, Stream, digest_key, email, log, nearest::nearest, secrets::wrong_address,
};

/// The kinds of accounts that can be admitted in addition to full members of the workspace.
const OUTSIDERS: [&str; 4] = ["guests", "external", "bots", "deactivated"];

/// The fields of the record that the default settings mention. There are others, such as the parameters of a change.
const RECORDED: [&str; 3] = ["text", "reason", "parameters"];

/// Returns all problems with the values, in the order of the sections.
pub(super) fn problems(config: &Config) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut expect = |holds: bool, key: &str, what: String| {
        if !holds {
            found.push(Problem { key: key.to_owned(), what });
        }
    };
    if let Some(wrong) = wrong_address(&config.slack.api_url) {
        expect(false, "slack.api_url", wrong);
    }
    for wrong in log::problems(&config.server.log) {
        expect(false, "server.log", wrong);
    }
    let no_path = |path: &Path| path.as_os_str().is_empty();
    expect(!no_path(&config.store.path), "store.path", "found nothing; expected a file".to_owned());
    let store = &config.store;
    for (key, path) in [("ca_file", &store.ca_file), ("cert_file", &store.cert_file), ("key_file", &store.key_file)] {
        let is_empty = path.as_deref().is_some_and(no_path);
        expect(!is_empty, &format!("store.{key}"), "found nothing; expected a file".to_owned());
    }
    expect(
        store.cert_file.is_some() == store.key_file.is_some(),
        "store.cert_file",
        "cert_file and key_file belong together; expected both, or neither".to_owned(),
    );
    let connections = config.slack.connections;
    expect(
        (1..=10).contains(&connections),
        "slack.connections",
        format!("found {connections}; expected 1 to 10, which is as many as Slack allows"),
    );
    if let Some(connections) = config.server.connections {
        let right = "expected 16 to 4096; leave it unset for as many as the open-file limit allows";
        expect((16..=4096).contains(&connections), "server.connections", format!("found {connections}; {right}"));
    }
    let workers = &config.workers;
    let nodes = usize::try_from(config.plans.nodes).unwrap_or(usize::MAX);
    for (key, number) in
        [("workers.threads", workers.threads), ("workers.senders", workers.senders), ("plans.nodes", nodes)]
    {
        expect((1..=10_000).contains(&number), key, format!("found {number}; expected 1 to 10000"));
    }
    for (key, time, least, most) in [
        ("slack.timeout", config.slack.timeout, 1, 60),
        ("server.header_timeout", config.server.header_timeout, 1, 120),
        ("server.body_timeout", config.server.body_timeout, 1, 120),
        ("server.idle_timeout", config.server.idle_timeout, 1, 3600),
        ("workers.lease", workers.lease, 1, 3600),
        ("workers.step_timeout", workers.step_timeout, 1, 3600),
        ("workers.status_after", workers.status_after, 0, 3600),
        ("workers.drain", workers.drain, 1, 600),
        ("plans.run_time", config.plans.run_time, 1, 86_400),
        ("record.stream_timeout", config.record.stream_timeout, 1, 60),
        ("approvals.expires_after", config.approvals.expires_after, 1, 30 * 24 * 3600),
        ("approvals.remind_before", config.approvals.remind_before, 0, 30 * 24 * 3600),
        ("approvals.escalate_after", config.approvals.escalate_after, 1, 30 * 24 * 3600),
    ] {
        if let Some(wrong) = between(time, least, most) {
            expect(false, key, wrong);
        }
    }
    let mb = config.slack.max_answer_mb;
    expect((1..=1024).contains(&mb), "slack.max_answer_mb", format!("found {mb}; expected 1 to 1024 megabytes"));
    let sweep = workers.sweep_every;
    expect(
        // A lease that is itself wrong is not used as a bound.
        workers.lease < Duration::from_secs(1) || (Duration::from_millis(10)..=workers.lease).contains(&sweep),
        "workers.sweep_every",
        format!("found {}; expected between 10ms and the lease, {}", format_time(sweep), format_time(workers.lease)),
    );
    if let Some(keep) = config.record.keep {
        let right =
            "expected at least 1day, because deliveries can repeat for that long; leave it unset to keep them forever";
        expect(keep >= Duration::from_secs(24 * 3600), "record.keep", format!("found {}; {right}", format_time(keep)));
    }
    for (key, named) in
        [("approvals.outsiders", &config.approvals.outsiders), ("slack.outsiders", &config.slack.outsiders)]
    {
        for name in named {
            let right = "expected guests, external, bots or deactivated";
            expect(OUTSIDERS.contains(&name.as_str()), key, format!("found `{name}`; {right}"));
        }
    }
    for name in config.record.redact.iter().filter(|name| !RECORDED.contains(&name.as_str())) {
        // Any name can be a field's name, but a misspelled one would hide nothing, and nobody would notice before the
        // export.
        if let Some(near) = nearest(name, RECORDED.into_iter()) {
            expect(false, "record.redact", format!("found `{name}`; did you mean `{near}`?"));
        }
    }
    if let Some(wrong) = config.record.stream.as_ref().and_then(Stream::problem) {
        expect(false, "record.stream", wrong);
    }
    digest_keys(config, &mut expect);
    approvals(config, &mut expect);
    envelopes(&config.approvals, &mut expect);
    found.extend(config.model.problems());
    found.extend(email::problems(&config.email));
    found.extend(config.telemetry.problems());
    found.extend(config.sections.0.values().flat_map(|section| section.problems()));
    found
}

/// Describes the problem with a duration that is not between these numbers of seconds.
pub fn between(time: Duration, least: u64, most: u64) -> Option<String> {
    let (least, most) = (Duration::from_secs(least), Duration::from_secs(most));
    let right = || format!("expected between {} and {}", format_time(least), format_time(most));
    (!(least..=most).contains(&time)).then(|| format!("found {}; {}", format_time(time), right()))
}

/// Formats a duration as in the settings, such as `10s`.
pub(super) fn format_time(time: Duration) -> String {
    humantime_serde::re::humantime::format_duration(time).to_string()
}

/// Checks that each digest key is valid. The problems do not contain the keys.
fn digest_keys(config: &Config, expect: &mut impl FnMut(bool, &str, String)) {
    let Some(keys) = &config.approvals.digest_keys else { return };
    for (n, key) in keys.expose_secret().split(',').enumerate() {
        if let Err(what) = digest_key(key.trim()) {
            expect(false, "COUNTERSIGN_DIGEST_KEYS", format!("key {}: {what}", n + 1));
        }
    }
}

fn approvals(config: &Config, expect: &mut impl FnMut(bool, &str, String)) {
    let settings = &config.approvals;
    let general = Rule {
        approvers: Some(settings.approvers.clone()),
        needed: Some(settings.needed),
        escalate_to: Some(settings.escalate_to.clone()),
        own_request: None,
    };
    expect_approvers(settings, expect);
    for (key, rule) in std::iter::once(("approvals".to_owned(), general)).chain(settings.rules()) {
        for (field, names) in [("approvers", &rule.approvers), ("escalate_to", &rule.escalate_to)] {
            for name in names.iter().flatten() {
                let known = matches!(name.as_str(), "channel" | "requester") || is_slack_id(name);
                let right = "expected channel, requester, a user id (U…) or a user group id (S…)";
                expect(known, &format!("{key}.{field}"), format!("found `{name}`; {right}"));
            }
        }
        if let Some(needed) = rule.needed {
            expect(needed >= 1, &format!("{key}.needed"), format!("found {needed}; expected 1 or more"));
        }
    }
    let (after, open) = (settings.escalate_after, settings.expires_after);
    expect(
        settings.named_in_escalations().is_empty() || after < open,
        "approvals.escalate_after",
        format!("found {}; expected less than expires_after, {}", format_time(after), format_time(open)),
    );
}

/// Checks that the limits are valid, and that changes beyond them can still be approved.
fn envelopes(settings: &Approvals, expect: &mut impl FnMut(bool, &str, String)) {
    for (name, envelope) in &settings.envelopes {
        for (key, what) in envelope.problems(settings.measures) {
            expect(false, &format!("approvals.envelopes.{name}.{key}"), what);
        }
        let most = max_approvers(&settings.approvers, false).filter(|_| !settings.approvers.is_empty());
        let what = "a change outside it needs two people other than the requester, but fewer can approve; expected more approvers";
        expect(most.is_none_or(|most| most >= 2), &format!("approvals.envelopes.{name}"), what.to_owned());
    }
}

/// Checks that enough people can approve. An empty list is allowed and means that nobody can.
fn expect_approvers(settings: &Approvals, expect: &mut impl FnMut(bool, &str, String)) {
    for (key, rule) in std::iter::once(("approvals".to_owned(), Rule::default())).chain(settings.rules()) {
        let approvers = rule.approvers.as_ref().unwrap_or(&settings.approvers);
        let needed = rule.needed.unwrap_or(settings.needed);
        let own = rule.own_request.unwrap_or(settings.own_request || settings.own_irreversible);
        let most = max_approvers(approvers, own).filter(|most| *most < needed as usize && !approvers.is_empty());
        let left = match most {
            Some(0) => "nobody".to_owned(),
            Some(1) => "1 person".to_owned(),
            Some(people) => format!("{people} people"),
            None => continue,
        };
        let what = format!("found needed = {needed}, but approvers and own_request leave only {left} who can approve");
        expect(false, &key, format!("{what}; expected more approvers, or fewer needed"));
    }
}

/// Returns the maximum number of people who can approve the same change; `None` if it is unknown.
fn max_approvers(approvers: &[String], own: bool) -> Option<usize> {
    let approvers: BTreeSet<_> = approvers.iter().map(String::as_str).collect();
    let countable = !approvers.iter().any(|name| *name == "channel" || name.starts_with('S'));
    let not_counted = usize::from(!own && approvers.contains("requester"));
    countable.then(|| approvers.len() - not_counted)
}

fn is_slack_id(name: &str) -> bool {
    name.len() > 1
        && name.starts_with(['U', 'W', 'S'])
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}
