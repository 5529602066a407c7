//! The directives in `server.log`, which set log levels.

use super::nearest::nearest;

/// The log levels.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The parts of the program whose level can be set, as `countersign::<part>`. `tests/integration/deploy.rs` compares
/// them with `src/`.
pub const MODULES: &[&str] = &[
    "addresses",
    "api",
    "app",
    "assistant",
    "capabilities",
    "cause",
    "clock",
    "config",
    "conversation",
    "draft",
    "email",
    "emoji",
    "graph",
    "hash",
    "http_log",
    "ids",
    "model",
    "planner",
    "private_file",
    "recent",
    "reply",
    "send_permit",
    "services",
    "slack",
    "spans",
    "status_line",
    "store",
    "this_machine",
    "understanding",
    "units",
    "wire",
];

/// The parts that are modules of the crate `core`.
const CORE_MODULES: &[&str] = &[
    "addresses",
    "cause",
    "clock",
    "emoji",
    "hash",
    "http_log",
    "ids",
    "private_file",
    "recent",
    "reply",
    "send_permit",
    "spans",
    "status_line",
    "units",
];

/// Converts the directives of `server.log` for the logging library: each part is replaced by the path of its crate.
pub fn directives(log: &str) -> String {
    log.split(',').map(|directive| to_target(directive.trim())).collect::<Vec<_>>().join(",")
}

/// Replaces the part in a directive by the path of its crate. Each capability is a crate of its own.
fn to_target(directive: &str) -> String {
    let Some(path) = directive.strip_prefix("countersign::") else { return directive.to_owned() };
    let path = path.strip_prefix("capabilities::").unwrap_or(path);
    match path.split([':', '=']).next().unwrap_or_default() {
        "app" => directive.to_owned(),
        "this_machine" => format!("countersign_wire::{path}"),
        module if CORE_MODULES.contains(&module) => format!("countersign_core::{path}"),
        _ => format!("countersign_{path}"),
    }
}

/// The libraries with useful log lines.
const LIBRARIES: &[&str] =
    &["axum", "h2", "hyper", "hyper_util", "redis", "reqwest", "rustls", "tokio", "tokio_util", "tower"];

/// Describes the problem with each wrong directive.
pub(super) fn problems(log: &str) -> Vec<String> {
    let right = "expected a level such as info, or levels by module such as info,countersign::slack=debug";
    if log.trim().is_empty() {
        return vec![format!("found nothing; {right}")];
    }
    log.split(',').map(str::trim).filter_map(wrong).map(|wrong| format!("{wrong}; {right}")).collect()
}

/// Describes the problem with a directive, if there is one.
fn wrong(directive: &str) -> Option<String> {
    let (target, level) = match directive.rsplit_once('=') {
        Some((target, level)) => (Some(target.trim()), level.trim()),
        None if is_level(directive) => return None,
        None if is_known(directive) => return Some(format!("found `{directive}` without a level")),
        None => (None, directive),
    };
    if !is_level(level) {
        return Some(format!("found `{directive}`, and `{level}` isn't a level{}", did_you_mean(level, &LEVELS)));
    }
    let target = target?;
    match target.split("::").next().unwrap_or_default() {
        "slack_morphism" => {
            Some(format!("found `{directive}`, but the Slack library is never logged: it writes secrets"))
        }
        library if LIBRARIES.contains(&library) && matches!(level.to_ascii_lowercase().as_str(), "debug" | "trace") => {
            Some(format!(
                "found `{directive}`, but what libraries write below info is never logged: it may hold secrets"
            ))
        }
        _ if is_known(target) => None,
        _ => {
            let known: Vec<String> = MODULES.iter().map(|module| format!("countersign::{module}")).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).chain(LIBRARIES.iter().copied()).collect();
            let meant = did_you_mean(target, &[known.as_slice(), &["countersign"]].concat());
            Some(format!("found `{directive}`, and there is no module `{target}`{meant}"))
        }
    }
}

fn is_level(word: &str) -> bool {
    LEVELS.contains(&word.to_ascii_lowercase().as_str())
}

/// Returns true if the target is one of our modules, or belongs to one of [`LIBRARIES`].
fn is_known(target: &str) -> bool {
    let mut path = target.split("::");
    match path.next() {
        Some("countersign") => path.next().is_none_or(|module| MODULES.contains(&module)),
        // The name of a crate, as it appears in log lines. The crates of the capabilities are not known here.
        Some(name) => name.starts_with("countersign_") || LIBRARIES.contains(&name),
        None => false,
    }
}

fn did_you_mean(found: &str, known: &[&str]) -> String {
    nearest(found, known.iter().copied()).map(|near| format!(" (did you mean {near}?)")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_named_by_its_crate() {
        let log = "info, countersign=debug,countersign::slack::sink=trace,countersign::clock=off,countersign::app=warn";
        let targets =
            "info,countersign=debug,countersign_slack::sink=trace,countersign_core::clock=off,countersign::app=warn";
        assert_eq!(directives(log), targets);
        let capability = "countersign::http_log=debug,countersign::capabilities::experiments::upgrade=debug";
        assert_eq!(directives(capability), "countersign_core::http_log=debug,countersign_experiments::upgrade=debug");
        assert_eq!(problems(capability), Vec::<String>::new());
        assert_eq!(problems("countersign_slack::sink=trace,countersign_core=info"), Vec::<String>::new());
    }

    #[test]
    fn every_directive_is_looked_at() {
        for fine in
            ["info", "INFO", "off", "info,countersign=debug", "warn, countersign::slack::sink=trace ,hyper=info"]
        {
            assert_eq!(problems(fine), Vec::<String>::new(), "{fine}");
        }
        let wrong = |log: &str| problems(log).join(" | ");
        assert!(wrong("inf").contains("did you mean info?"), "{}", wrong("inf"));
        assert!(wrong("countersign=tarce").contains("did you mean trace?"));
        assert!(wrong("info,counterSign::slak=debug").contains("did you mean countersign::slack?"));
        assert!(wrong("5").contains("`5` isn't a level"));
        assert!(wrong("countersign").contains("without a level"));
        assert!(wrong("info,slack_morphism=debug").contains("never logged"));
        assert!(wrong("info,h2=trace").contains("never logged"));
        assert!(wrong("").contains("found nothing") && wrong("info,").contains("isn't a level"));
        assert!(wrong("[advance{fence=1}]=debug").contains("there is no module"));
        assert_eq!(problems("a=b,c=d").len(), 2);
    }
}
