//! What is handed to operators: the Slack manifests and the settings files.

use std::{collections::HashMap, fs};

use countersign::{app::installed, config::Config};
use serde_json::Value;

fn json(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn both_manifests_obey_slacks_own_schemas() {
    for schema in ["1.0.0", "2.0.0"] {
        let schema = json(&format!("tests/fixtures/slack/manifest-schema/manifest.schema.{schema}.json"));
        let validator = jsonschema::validator_for(&schema).unwrap();
        for variant in ["socket", "http", "agent"] {
            let manifest = json(&format!("deploy/slack-manifest.{variant}.json"));
            let wrong: Vec<_> =
                validator.iter_errors(&manifest).map(|e| format!("{}: {e}", e.instance_path())).collect();
            assert!(wrong.is_empty(), "{variant}: {wrong:?}");
        }
    }
}

#[test]
fn the_variants_differ_in_how_events_come_in_and_nothing_else() {
    let (mut socket, mut http) = (json("deploy/slack-manifest.socket.json"), json("deploy/slack-manifest.http.json"));
    assert_eq!(socket["settings"]["socket_mode_enabled"], true);
    assert_eq!(http["settings"]["socket_mode_enabled"], false);
    for manifest in [&mut socket, &mut http] {
        manifest["settings"].as_object_mut().unwrap().remove("socket_mode_enabled");
        for place in ["event_subscriptions", "interactivity"] {
            manifest["settings"][place].as_object_mut().unwrap().remove("request_url");
        }
        for command in manifest["features"]["slash_commands"].as_array_mut().unwrap() {
            command.as_object_mut().unwrap().remove("url");
        }
    }
    assert_eq!(socket, http);
}

/// What an agent app has besides; the rest is as without.
#[test]
fn the_agent_variant_adds_what_its_features_need() {
    let (socket, mut agent) = (json("deploy/slack-manifest.socket.json"), json("deploy/slack-manifest.agent.json"));
    assert!(agent["features"].as_object_mut().unwrap().remove("agent_view").is_some());
    let added = |agent: &mut Value, list: &str, name: &str| {
        let list = agent.pointer_mut(list).unwrap().as_array_mut().unwrap();
        let before = list.len();
        list.retain(|entry| entry != name);
        assert_eq!(list.len() + 1, before, "{name}");
    };
    added(&mut agent, "/oauth_config/scopes/bot", "assistant:write");
    added(&mut agent, "/settings/event_subscriptions/bot_events", "agent_session_stopped");
    assert_eq!(socket, agent);
}

/// Each capability brings the defaults of its own section; the page for operators has all of them.
#[test]
fn the_page_of_all_settings_is_made_of_its_parts() {
    let bots = fs::read_to_string("src/config/default.toml").unwrap();
    let own = installed::SETTINGS.sections.iter().map(|section| section.defaults);
    let parts: Vec<&str> = std::iter::once(bots.as_str()).chain(own).collect();
    let page = fs::read_to_string("config/default.toml").unwrap();
    assert!(page == parts.join("\n"), "write config/default.toml anew: the parts, with a blank line between them");
}

/// The example of each setting that is commented out is valid as well.
#[test]
fn the_default_settings_are_valid_with_every_example_in_them() {
    let text = fs::read_to_string("config/default.toml").unwrap();
    let uncommented: String = text
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') || rest.contains(" = ") => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.toml");
    fs::write(&file, uncommented).unwrap();
    let secrets = ["FILES_API_KEY", "FILES_SECRET", "NOTES_KEY"];
    let mut environment: std::collections::HashMap<_, _> =
        secrets.map(|name| (name.to_owned(), "secret".to_owned())).into();
    environment.insert("CI_HOOK_SECRET".to_owned(), "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3".to_owned());
    let config =
        Config::load(Some(&file), &environment, &installed::SETTINGS).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(config.approvals.actions["delete_experiment"].needed, Some(2));
}

/// The file to begin with is valid, and short enough to be read at once.
#[test]
fn the_example_of_a_settings_file_is_valid_and_short() {
    let file = std::path::Path::new("config/example.toml");
    assert!(fs::read_to_string(file).unwrap().lines().count() <= 30);
    let config =
        Config::load(Some(file), &HashMap::new(), &installed::SETTINGS).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(config.approvals.actions["delete_experiment"].needed, Some(2));
}

fn problems(toml: &str, environment: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    fs::write(&file, toml).unwrap();
    let environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Config::load(Some(&file), &environment, &installed::SETTINGS).map(drop).unwrap_err().to_string()
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    insta::assert_snapshot!(problems(
        r#"
        [server]
        port = "eighty"
        colour = "green"
        [workers]
        lease = "soon"
        threads = 0
        [approvals]
        approvers = ["everybody"]
        [slack]
        bot_token = "xoxb-secret"
        [databse]
        url = "x"
        "#,
        &[("UPGRADE_API_URL", "upgrade.example.com"), ("COUNTERSIGN__SLACK__CONNECTIONS", "12")],
    ), @r#"
    databse: there is no such section; the sections are slack, server, store, workers, approvals, plans, record, model, email, telemetry, upgrade, simulation, watches, mcp, api
    slack.bot_token: secrets come from the environment only; set SLACK_BOT_TOKEN there and remove this
    server.colour: found `green` (unknown field `colour`, expected one of `address`, `port`, `connections`, `header_timeout`, `body_timeout`, `idle_timeout`, `log`, `log_format`)
    server.port: found `"eighty"` (invalid type: string "eighty", expected a whole number); expected something like `3000`
    workers.lease: found `soon` (invalid value: string "soon", expected a duration); expected something like `30s`
    slack.connections: found 12; expected 1 to 10, which is as many as Slack allows
    workers.threads: found 0; expected 1 to 10000
    approvals.approvers: found `everybody`; expected channel, requester, a user id (U…) or a user group id (S…)
    upgrade.api_url: found `upgrade.example.com`; expected an address that begins with http:// or https://
    "#);
}

#[test]
fn a_secret_that_cannot_be_sent_is_told_without_it() {
    let broken = problems("", &[("ANTHROPIC_API_KEY", "sk-\nant"), ("SLACK_BOT_TOKEN", "xoxb-fine\n")]);
    assert_eq!(broken, "ANTHROPIC_API_KEY: it contains a line break or a space; expected one word");
}

#[test]
fn a_wrong_time_is_said_as_it_is_written() {
    let wrong = "workers.lease: found 0s; expected between 1s and 1h";
    assert_eq!(problems("[workers]\nlease = \"0s\"", &[]), wrong);
}

#[test]
fn somebody_must_be_able_to_approve() {
    insta::assert_snapshot!(problems(
        r#"
        [approvals]
        approvers = ["requester"]
        own_request = false
        [approvals.actions.delete_experiment]
        approvers = ["U1", "U1"]
        needed = 2
        [approvals.actions.create_experiment]
        own_request = true
        [approvals.actions.update_experiment]
        approvers = []
        [approvals.actions.mark_decision_point]
        approvers = ["requester", "S1"]
        needed = 3
        "#,
        &[],
    ), @"
    approvals: found needed = 1, but approvers and own_request leave only nobody who can approve; expected more approvers, or fewer needed
    approvals.actions.delete_experiment: found needed = 2, but approvers and own_request leave only 1 person who can approve; expected more approvers, or fewer needed
    ");
}

#[test]
fn there_is_one_way_to_sign_in() {
    let both = problems("[upgrade]\nservice_account = \"key.json\"", &[("UPGRADE_AUTH_TOKEN", "t")]);
    assert_eq!(both, "upgrade.service_account: UPGRADE_AUTH_TOKEN is set as well; expected one of them");
    insta::assert_snapshot!(problems("[upgrade]\ntoken_uri = \"oauth2.example\"", &[]), @"
    upgrade.token_uri: found `oauth2.example`; expected an address that begins with http:// or https://
    upgrade.token_uri: it says where the tokens of a service account come from, but upgrade.service_account is not set
    ");
}

#[test]
fn secrets_do_not_show() {
    let environment = [("SLACK_BOT_TOKEN", "xoxb-secret"), ("REDIS_URL", "redis://:secret@127.0.0.1")];
    let environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let config = Config::load(None, &environment, &installed::SETTINGS).unwrap();
    assert!(!format!("{config:?}").contains("secret@") && !format!("{config:?}").contains("xoxb-secret"));
}

#[test]
fn the_environment_says_which_store_and_which_way_in() {
    use countersign::config::{SlackMode, StoreKind};
    let load = |pairs: &[(&str, &str)]| {
        let environment = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Config::load(None, &environment, &installed::SETTINGS).unwrap_or_else(|problems| panic!("{problems}"))
    };
    let config = load(&[("SLACK_APP_TOKEN", "xapp-1"), ("PORT", "4000"), ("COUNTERSIGN__WORKERS__LEASE", "5s")]);
    assert_eq!((config.slack_mode(), config.store_kind()), (SlackMode::Socket, StoreKind::Sqlite));
    assert_eq!((config.server.port, config.workers.lease.as_secs()), (4000, 5));
    let config = load(&[("SLACK_SIGNING_SECRET", "s"), ("REDIS_URL", "redis://127.0.0.1")]);
    assert_eq!((config.slack_mode(), config.store_kind()), (SlackMode::Http, StoreKind::Redis));
}

/// Each with the key, what was found or how it begins, and what would be right.
#[test]
fn nothing_wrong_passes_in_silence() {
    let every = [
        ("COUNTERSIGN__SERVER__LOG", "inf", "server.log", "did you mean info?"),
        ("COUNTERSIGN__SERVER__LOG", "info,countersign::slak=debug", "server.log", "did you mean countersign::slack?"),
        ("COUNTERSIGN__SLACK__RATE_LIMITS", "5", "slack.rate_limits", "expected a boolean"),
        ("COUNTERSIGN__SLACK__RATE_LIMITS", "yes", "slack.rate_limits", "expected a boolean"),
        ("COUNTERSIGN__WORKERS__THREADS", "-1", "workers.threads", "expected a whole number"),
        ("COUNTERSIGN__WORKERS__DRAIN", "-5s", "workers.drain", "expected a duration"),
        ("COUNTERSIGN__WORKERS__DRAIN", "0s", "workers.drain", "between 1s and 10m"),
        ("COUNTERSIGN__WORKERS__LEESE", "5s", "workers.leese", "did you mean `lease`?"),
        ("COUNTERSIGN__WORKER__LEASE", "5s", "worker", "did you mean workers?"),
        ("COUNTERSIGN__WORKERS", "5", "workers", "expected a section"),
        ("COUNTERSIGN__SLACK", "1", "slack", "expected a section"),
        (
            "COUNTERSIGN__APPROVALS__REMIND_BEFORE",
            "13h",
            "approvals.remind_before",
            "at most half of approvals.expires_after, 12h",
        ),
        ("COUNTERSIGN__RECORD__REDACT", "txt", "record.redact", "did you mean `text`?"),
        ("COUNTERSIGN_WORKERS_LEASE", "5s", "COUNTERSIGN_WORKERS_LEASE", "COUNTERSIGN__WORKERS__LEASE"),
        ("countersign__workers__lease", "5s", "countersign__workers__lease", "COUNTERSIGN__WORKERS__LEASE"),
        ("COUNTERSIGN_STORE__KIND", "redis", "COUNTERSIGN_STORE__KIND", "COUNTERSIGN__STORE__KIND"),
        ("UPGRADE_API_URL", "http://127.0.0.1/api?x=1", "upgrade.api_url", "expected `http://127.0.0.1/api`"),
        ("SLACK_API_URL", "https://u:hidden@slack.com/api", "slack.api_url", "a name or a password in it"),
        ("SLACK_BOT_TOKEN", "xapp-hidden", "SLACK_BOT_TOKEN", "a Slack app-level token"),
        ("SLACK_APP_TOKEN", "", "SLACK_APP_TOKEN", "set, but empty"),
        ("UPGRADE_SERVICE_ACCOUNT", "", "upgrade.service_account", "it is empty"),
    ];
    for (name, value, key, right) in every {
        let told = problems("", &[(name, value)]);
        assert!(told.starts_with(&format!("{key}: ")) && told.contains(right), "{name}={value}: {told}");
        assert!(!told.contains("hidden") && !told.contains('\n'), "{name}={value}: {told}");
    }
    let hidden = problems("", &[("COUNTERSIGN__SLACK", "1"), ("SLACK_API_URL", "https://slack.com/api")]);
    assert_eq!(hidden, "slack: found `1`; expected a section, [slack], with keys of its own");
    let hidden = problems("slack = 1", &[("SLACK_API_URL", "https://slack.com/api")]);
    assert_eq!(hidden, "slack: found `1`; expected a section, [slack], with keys of its own");
    let quoted = problems("[server]\nport = \"3000\"", &[]);
    assert!(quoted.starts_with("server.port: found `\"3000\"` ("), "{quoted}");
    let toml = problems("[slack]\nrate_limits = 5\n[approvals.actions.delete_experiment]\nown_request = 1", &[]);
    assert!(toml.contains("slack.rate_limits: found `5`") && toml.contains("approvals.actions: found"), "{toml}");
}

#[test]
fn what_is_right_stays_right() {
    let environment = [
        ("COUNTERSIGN__STORE__PATH", "2027"),
        ("COUNTERSIGN__APPROVALS__APPROVERS", "U1,U2"),
        ("COUNTERSIGN__APPROVALS__ESCALATE_TO", ""),
        ("COUNTERSIGN__APPROVALS__OUTSIDERS", "guests"),
        ("COUNTERSIGN__APPROVALS__ACTIONS__DELETE_EXPERIMENT__APPROVERS", "U5, U6"),
        ("COUNTERSIGN__SLACK__OUTSIDERS", "guests,external"),
        ("COUNTERSIGN__SLACK__RATE_LIMITS", "false"),
        ("COUNTERSIGN_DIGEST_KEYS", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"),
        ("COUNTERSIGN__APPROVALS__EXPIRES_AFTER", "30m"), // the usual reminder is at half of that
        ("COUNTERSIGN__RECORD__REDACT", "text,reason,parameters,user,conditionCode"),
        ("COUNTERSIGN_SERVICE_HOST", "10.0.0.1"),
        ("COUNTERSIGN_PORT", "tcp://10.0.0.1:3000"),
        ("COUNTERSIGN_PORT_3000_TCP_ADDR", "10.0.0.1"),
    ];
    let environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let config = Config::load(None, &environment, &installed::SETTINGS).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(config.store.path.display().to_string(), "2027");
    assert_eq!(config.approvals.approvers, ["U1", "U2"]);
    assert!(config.approvals.escalate_to.is_empty());
    assert_eq!(config.approvals.outsiders, ["guests"]);
    let delete = &config.approvals.actions["delete_experiment"];
    assert_eq!(delete.approvers.as_deref(), Some(&["U5".to_owned(), "U6".to_owned()][..]));
    assert_eq!(config.slack.outsiders, ["guests", "external"]);
    assert!(config.approvals.digest_keys.is_some());
    assert!(!config.slack.rate_limits);
}

#[test]
fn a_file_that_cannot_be_read_hides_nothing_else() {
    let told = problems("[slack\n", &[("SLACK_BOT_TOKEN", "xapp-hidden"), ("COUNTERSIGN_PROT", "80")]);
    assert!(told.contains("wrong.toml: ") && told.contains("SLACK_BOT_TOKEN: ") && told.contains("COUNTERSIGN_PROT: "));
    assert!(!told.contains(" in ") && told.lines().all(|line| line == line.trim_end()), "{told}");
}

#[test]
fn a_folder_is_no_settings_file() {
    let told =
        Config::load(Some(std::path::Path::new(".")), &HashMap::new(), &installed::SETTINGS).unwrap_err().to_string();
    assert_eq!(told, ".: found a folder; expected a file with settings in it");
}

#[test]
fn what_the_settings_know_by_name_is_what_there_is() {
    let parts_in = |folder: &str| {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let names = entries.map(|name| name.to_string_lossy().trim_end_matches(".rs").to_owned());
        let is_none = |name: &String| matches!(name.as_str(), "lib" | "main" | "core" | "Cargo.toml");
        let is_apart = |name: &String| matches!(name.as_str(), "sandbox" | "playground"); // not in the program
        names.filter(|name| !is_none(name) && !is_apart(name)).collect::<Vec<_>>()
    };
    let mut modules = [parts_in("src"), parts_in("src/core")].concat();
    modules.push("this_machine".to_owned());
    modules.sort();
    modules.dedup(); // a module may have a folder beside its file
    assert_eq!(modules, countersign::config::LOG_MODULES, "server.log names modules");
    let text = fs::read_to_string("config/default.toml").unwrap();
    // The keys of entries that operators name are no fixed ones.
    let of_entries = |section: &str| {
        let named = installed::SETTINGS.sections.iter().find(|spec| spec.name == section);
        section == "approvals" || section == "api" || named.is_some_and(|spec| spec.entry_secret.is_some())
    };
    let mut section = "";
    let mut optional = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        }
        let commented = line.strip_prefix("# ").and_then(|line| line.split_once(" = "));
        if let Some((key, _)) = commented.filter(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
            && !of_entries(section)
        {
            optional.push(format!("{section}.{key}"));
        }
    }
    let of_capabilities = installed::SETTINGS
        .sections
        .iter()
        .filter(|section| section.name != "api")
        .flat_map(|section| section.optional.iter().map(|key| format!("{}.{key}", section.name)));
    let known = countersign::config::OPTIONAL.iter().map(|key| (*key).to_owned());
    assert_eq!(optional, known.chain(of_capabilities).collect::<Vec<_>>());
}

/// A service manager that waits for less long than the bot drains would kill it in the middle.
#[test]
fn the_bot_has_ended_before_the_service_manager_kills_it() {
    let seconds = |file: &str, key: &str| -> u64 {
        let text = fs::read_to_string(file).unwrap();
        let line = text.lines().find_map(|line| line.trim().strip_prefix(key)).expect(key);
        line.trim().trim_end_matches('s').parse().unwrap()
    };
    let drain = Config::load(None, &HashMap::new(), &installed::SETTINGS).unwrap().workers.drain.as_secs();
    for waits in
        [seconds("deploy/countersign.service", "TimeoutStopSec="), seconds("deploy/compose.yaml", "stop_grace_period:")]
    {
        assert!(waits >= drain + 5, "it drains for {drain} s and is killed after {waits} s");
    }
    assert!(seconds("deploy/countersign.service", "LimitNOFILE=") >= 16_384);
    assert!(seconds("deploy/compose.yaml", "nofile:") >= 16_384);
}
