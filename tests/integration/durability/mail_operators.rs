//! The team's mail as operators see it: `check`, `mail report`, `/readyz` and `/metrics`.

use std::{path::Path, process::Command};

use countersign_playground::mail_stand_in::{MailOptions, MailStandIn};
use countersign_sandbox::gmail::Letter;
use serde_json::Value;

use super::process::COUNTERSIGN;
use crate::support::bot::{Setup, TestBot, eventually};

async fn stand_in() -> MailStandIn {
    MailStandIn::start(&MailOptions::default(), "C1".into()).await.unwrap()
}

/// A command of the program with the settings of the stand-ins and others.
fn command(words: &[&str], store: &Path, settings: &[(&str, String)]) -> Command {
    let mut command = Command::new(COUNTERSIGN);
    command.args(words).env_clear();
    command.envs([("SLACK_API_URL", "http://127.0.0.1:9/api"), ("UPGRADE_API_URL", "http://127.0.0.1:9/api")]);
    command.env("COUNTERSIGN__STORE__PATH", store).envs(settings.iter().map(|(name, value)| (*name, value)));
    command
}

/// The lines of `check` about mail, without the folder.
fn lines(folder: &Path, settings: &[(&str, String)]) -> String {
    let output = command(&["check"], &folder.join("threads.sqlite"), settings).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).replace(&folder.display().to_string(), "…");
    let about_mail = ["email", "context", "contacts", "calendar", "embeddings", "automatic"];
    let is_about_mail = |line: &&str| line.split_whitespace().nth(1).is_some_and(|what| about_mail.contains(&what));
    said.lines().filter(is_about_mail).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn check_has_a_line_for_each_system_that_mail_needs() {
    let (folder, mail) = (tempfile::tempdir().unwrap(), stand_in().await);
    insta::assert_snapshot!(lines(folder.path(), &[]), @"ok    email    none (email.channel is not set)");
    insta::assert_snapshot!(lines(folder.path(), &mail.variables()), @"
    ok    email    Gmail as support@sandbox.example, 0 messages, without notifications
    ok    context  none yet; it will be created at …/mail-context.sqlite
    ok    contacts HubSpot answers, and the token may read contacts
    ok    calendar Google Calendar answers, and the events can be read
    ok    embeddings none (no OpenAI or Gemini key is set): similar emails are found by keywords
    ok    automatic off: every reply waits for review (email.automatic)
    ");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a check makes nothing");
    let on = [mail.variables(), vec![("COUNTERSIGN__EMAIL__AUTOMATIC", "true".to_owned())]].concat();
    let on = lines(folder.path(), &on);
    assert!(on.contains("automatic ON: replies are sent without review at a confidence of 0.8 or higher"), "{on}");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_an_account_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let settings = [("GOOGLE_REFRESH_TOKEN", "1//token".to_owned()), ("SLACK_BOT_TOKEN", "xoxb-1".to_owned())];
    let output = command(&["serve"], &folder.path().join("threads.sqlite"), &settings).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    for missing in ["email.channel: ", "GOOGLE_CLIENT_ID: it is not set", "GOOGLE_CLIENT_SECRET: it is not set"] {
        assert!(said.contains(missing), "{missing}: {said}");
    }
    assert!(!said.contains("1//token"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_and_metrics_tell_how_mail_is() {
    let mail = std::sync::Arc::new(stand_in().await);
    let applied = mail.clone();
    let settings = Box::new(move |config: &mut countersign::config::Config| applied.apply_to(config));
    let bot = TestBot::with(Setup { settings, ..Setup::default() }).await;
    mail.gmail.receives(&Letter::new("Dana <dana@customer.example>", "Prices", "How much is the small plan?"));
    let has_card = || {
        let roots = bot.slack.messages("experiments");
        let answered = |root: &countersign_sandbox::slack::world::message::Message| {
            bot.slack.thread("experiments", &root.ts).iter().any(|message| !message.buttons().is_empty())
        };
        roots.iter().any(answered)
    };
    eventually("a card", has_card).await;
    bot.settled().await;
    let get =
        async |path: &str| reqwest::get(format!("http://{}{path}", bot.address())).await.unwrap().text().await.unwrap();
    let ready: Value = serde_json::from_str(&get("/readyz").await).unwrap();
    assert_eq!((&ready["mail"]["ok"], &ready["mail"]["waiting"]), (&Value::Bool(true), &Value::from(1)), "{ready}");

    let report = command(&["mail", "report"], &bot.config.store.path, &mail.variables()).output().unwrap();
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.starts_with("1 email, 1 processed: 0.0% answered, 100.0% waiting for review."), "{report}");
    assert!(report.lines().any(|line| line.starts_with("classify ")), "{report}");
    assert!(!report.contains("dana") && !report.contains("Prices"), "{report}");
    bot.finish().await;
}
