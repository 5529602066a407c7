//! Environment variables that look like settings but are not.

use std::collections::HashMap;

use config::Config as Tree;

use super::{Additions, Problem, nearest::nearest, secrets::variable_of_file};

/// The keys that appear only in comments of the default settings. `tests/integration/deploy.rs` compares them.
pub const OPTIONAL: &[&str] = &[
    "slack.mode",
    "server.connections",
    "store.kind",
    "store.ca_file",
    "store.cert_file",
    "store.key_file",
    "record.keep",
    "record.stream",
    "model.provider",
    "model.name",
    "model.base_url",
    "model.extra",
    "model.limits",
    "model.prices",
    "model.analyze",
    "model.gather",
    "model.respond",
    "model.classify",
    "model.generate",
    "model.embed",
    "email.channel",
    "email.provider",
    "email.address",
    "email.name",
    "email.expires_after",
    "email.thresholds",
    "email.digest",
    "email.calendar",
    "email.service_account",
    "email.pubsub_topic",
    "email.pubsub_subscription",
    "email.imap_host",
    "email.smtp_host",
    "email.ca_file",
    "email.user",
    "email.context_path",
    "telemetry.otlp_endpoint",
];

/// Returns a problem for each variable with our prefix from which no setting is read.
pub(super) fn unknown(
    environment: &HashMap<String, String>,
    defaults: &Tree,
    sections: &[&str],
    added: &Additions,
    secrets: &[(String, &str)],
) -> Vec<Problem> {
    let known = known(defaults, sections, added);
    let ours = |name: &&String| name.to_ascii_uppercase().starts_with("COUNTERSIGN_");
    let is_secret = |name: &str| secrets.iter().any(|(_, secret)| *secret == name || variable_of_file(secret) == name);
    let unread = |name: &&String| !name.starts_with("COUNTERSIGN__") && !is_secret(name) && !is_set_by_kubernetes(name);
    let mut names: Vec<&String> = environment.keys().filter(ours).filter(unread).collect();
    names.sort();
    let problems = names.into_iter().map(|name| {
        let plain = |name: &str| name.to_ascii_uppercase().replace("__", "_");
        let same = known.iter().map(String::as_str).find(|known| plain(known) == plain(name));
        let near = same.or_else(|| nearest(name, known.iter().map(String::as_str)));
        let right = near.unwrap_or("COUNTERSIGN__SECTION__KEY, such as COUNTERSIGN__WORKERS__LEASE");
        Problem { key: name.clone(), what: format!("no setting is read from this variable; expected {right}") }
    });
    problems.collect()
}

/// Returns the names of all variables from which settings are read, except the secrets.
fn known(defaults: &Tree, sections: &[&str], added: &Additions) -> Vec<String> {
    let of = |section: &&str| {
        let keys: Vec<_> = defaults.get_table(section).unwrap_or_default().into_keys().collect();
        keys.into_iter().map(|key| format!("{section}.{key}")).collect::<Vec<_>>()
    };
    let theirs =
        added.sections.iter().flat_map(|section| section.optional.iter().map(|key| format!("{}.{key}", section.name)));
    let optional = OPTIONAL.iter().map(|key| (*key).to_owned()).chain(theirs);
    let keys = sections.iter().flat_map(of).chain(optional);
    keys.map(|key| format!("COUNTERSIGN__{}", key.to_uppercase().replace('.', "__"))).collect()
}

/// Returns true if Kubernetes sets the variable in every container because of a service named `countersign`.
fn is_set_by_kubernetes(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("COUNTERSIGN_") else { return false };
    rest == "PORT" || rest.starts_with("SERVICE_HOST") || rest.starts_with("SERVICE_PORT") || {
        let mut parts = rest.split('_');
        let number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u16>().is_ok());
        parts.next() == Some("PORT") && number(parts.next()) && matches!(parts.next(), Some("TCP" | "UDP" | "SCTP"))
    }
}
