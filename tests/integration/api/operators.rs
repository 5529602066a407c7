//! What operators do and see: keys that are added and revoked while the bot runs, and what `countersign check` understood.

use std::path::Path;

use countersign::{
    api::{keys, settings::Api},
    app::check,
    config::Config,
};
use serde_json::json;

use super::{Programs, with_api};
use crate::support::bot::{Setup, TestBot};

fn write(file: &Path, hashes: &[String], more: &str) {
    let hashes: Vec<_> = hashes.iter().map(|hash| format!("\"{hash}\"")).collect();
    let text = format!("{more}\n[api.keys.ci-web]\nhashes = [{}]\nscopes = [\"read\"]\n", hashes.join(", "));
    std::fs::write(file, text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_works_and_ends_as_the_settings_say_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.toml");
    let (key, hash) = keys::create("ci-web");
    write(&file, &[], "");
    let (tell, told) = std::sync::mpsc::channel();
    let path = file.clone();
    let settings = Box::new(move |config: &mut Config| {
        tell.send(with_api(config, 0)).unwrap();
        config.file = Some(path);
    });
    let bot = TestBot::with(Setup { settings, ..Setup::default() }).await;
    let mut secrets = told.recv().unwrap();
    secrets.push(("newer", key));
    let programs = Programs { bot, http: reqwest::Client::new(), secrets };
    let status = async |called: &str| programs.call(Some(called), "GET", "/v1/policies", &[], None).await.status;
    assert_eq!((status("ci").await, status("newer").await), (200, 401));
    write(&file, std::slice::from_ref(&hash), "");
    assert_eq!(
        (status("ci").await, status("newer").await),
        (401, 200),
        "the other secret is no longer in the settings"
    );
    programs.bot.expects_complaints();
    write(&file, &["sha256:zz".to_owned()], "");
    assert_eq!(status("newer").await, 200, "wrong settings change nothing");
    write(&file, &[hash], "this is no file of settings");
    assert_eq!(status("newer").await, 200, "nor do unreadable ones");
    write(&file, &[], "");
    assert_eq!(status("newer").await, 401, "revoked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_says_what_it_understood() {
    let programs = Programs::with(|api| {
        let hook = json!({ "url": "http://127.0.0.1:9/hook", "secret_env": "CI_HOOK_SECRET" });
        api.callbacks.insert("ci-hook".to_owned(), serde_json::from_value(hook).unwrap());
        api.policies.get_mut("two-people").unwrap().channel = "C9".to_owned();
        api.policies.get_mut("private").unwrap().approvers = Some(Vec::new());
        api.keys.get_mut("dashboard").unwrap().expires = Some("2026-01-01".to_owned());
        api.keys.get_mut("other-team").unwrap().hashes.clear();
    })
    .await;
    let mut config = (*programs.bot.config).clone();
    config.sections.get_mut::<Api>().listen = Some(([127, 0, 0, 1], 3100).into());
    let said = |lines: Vec<check::CheckLine>| {
        let lines = lines.into_iter().filter(|line| ["api", "policy", "key", "callback"].contains(&line.what));
        lines.map(|line| line.to_string()).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!("check", said(check::run(&config).await));
    assert!(said(check::offline(&config).await).contains("callback ci-hook: 127.0.0.1"));
    config.sections.get_mut::<Api>().listen = None;
    assert_eq!(said(check::offline(&config).await), "", "there is no API");
}
