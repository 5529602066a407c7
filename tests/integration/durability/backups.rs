//! Backups that were taken while the bot worked, checked and restored; and a store that went back in time.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use countersign::{
    app::{backup, check},
    config::Config,
};
use rusqlite::Connection;
use serde_json::Value;

use super::process::COUNTERSIGN;
use crate::support::bot::TestBot;

/// What `countersign check` says of the store.
async fn store_line(config: &Config) -> Result<String, String> {
    check::run(config).await.into_iter().find(|line| line.what == "store").unwrap().result
}

async fn restored(config: &Config, from: &Path, replace: bool) -> Result<Vec<String>, String> {
    backup::restore(config, from, false, replace).await.map_err(|error| format!("{error:#}"))
}

async fn verified(config: &Config, from: &Path) -> Result<Vec<String>, String> {
    backup::restore(config, from, true, false).await.map_err(|error| format!("{error:#}"))
}

/// The settings of a machine to restore to, with the same digest key.
fn elsewhere(config: &Config, folder: &Path) -> Config {
    let mut config = config.clone();
    config.store.path = folder.join("threads.sqlite");
    config
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_was_taken_under_load_is_one_moment_of_the_store() {
    let bot = TestBot::start().await;
    let (backups, rehearsal) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let there = elsewhere(&bot.config, rehearsal.path());
    let work = async {
        bot.user("ana").says("start Math Hints").await.clicks("bo", "Start experiment").await;
        for ask in ["start Class Hint Rollout", "list experiments", "is UpGrade running?"] {
            bot.user("ana").says(ask).await;
        }
    };
    tokio::pin!(work);
    let (mut taken, mut over) = (Vec::new(), false);
    while !over {
        let file = backups.path().join(format!("{}.sqlite", taken.len()));
        let (config, to) = (bot.config.clone(), file.clone());
        let copying = tokio::task::spawn_blocking(move || backup::back_up(&config, &to));
        tokio::pin!(copying);
        let lines = loop {
            tokio::select! {
                lines = &mut copying => break lines.unwrap().unwrap(),
                () = &mut work, if !over => over = true,
            }
        };
        assert!(lines[1].starts_with("it is sealed with digest key "), "{lines:?}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        taken.push(file);
    }
    assert!(taken.len() > 1, "nothing was written meanwhile");
    for file in &taken {
        let lines = verified(&there, file).await.unwrap();
        assert!(lines[0].starts_with("intact: a backup of 20") && lines[1].contains("all sealed"), "{lines:?}");
        assert_eq!(files(rehearsal.path()), Vec::<String>::new(), "nothing stays");
    }
    bot.settled().await;
    let last = backups.path().join("last.sqlite");
    backup::back_up(&bot.config, &last).unwrap();
    let lines = restored(&there, &last, false).await.unwrap();
    let said: Vec<_> = lines.iter().map(String::as_str).skip(1).collect();
    assert_eq!(said[0].split(',').next(), Some("threads: 4"));
    assert!(said[2].starts_with("newest entry: 20"), "{said:?}");
    assert_eq!(files(rehearsal.path()), ["threads.sqlite", "threads.sqlite.lock"]);
    let line = store_line(&there).await.unwrap();
    assert!(line.starts_with("SQLite "), "{line}");
    assert_eq!(files(backups.path()).len(), taken.len() + 1, "one file each");
    let again = backup::back_up(&bot.config, &last).unwrap_err();
    assert!(format!("{again:#}").contains("there is a file of this name"), "{again:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_is_noticed_until_somebody_has_looked() {
    let mut bot = TestBot::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.sqlite");
    bot.user("ana").says("start Math Hints").await;
    backup::back_up(&bot.config, &file).unwrap();
    let used = restored(&bot.config, &file, true).await.unwrap_err();
    assert!(
        used.starts_with("cannot restore while a bot uses the store: ") && used.contains("stop that one"),
        "{used}"
    );
    bot.user("ana").says("start Class Hint Rollout").await;
    bot.stop().await;
    assert!(store_line(&bot.config).await.is_ok());

    let refused = restored(&bot.config, &file, false).await.unwrap_err();
    assert!(refused.contains("threads.sqlite already; with --replace it is kept"), "{refused}");
    let lines = restored(&bot.config, &file, true).await.unwrap();
    let kept: PathBuf = lines[4].rsplit(' ').next().unwrap().into();
    let threads = |path: &Path| -> i64 {
        let file = Connection::open(path).unwrap();
        file.query_row("SELECT count(*) FROM threads WHERE known", [], |row| row.get(0)).unwrap()
    };
    assert_eq!((threads(&kept), threads(&bot.config.store.path)), (2, 1), "{lines:?}");
    let behind = async |bot: &TestBot| store_line(&bot.config).await.unwrap_err();
    let said = behind(&bot).await;
    assert!(said.starts_with("the store is older than it was: it was seen as of 20"), "{said}");
    assert!(said.contains("“After a restore” in docs/operating.md, then remove "), "{said}");
    bot.run().await;
    bot.user("ana").says("start Class Hint Rollout").await;
    bot.stop().await;
    assert!(behind(&bot).await.contains("older than it was"), "a bot that ran meanwhile does not hide it");
    let seen = said.rsplit(' ').next().unwrap();
    fs::remove_file(seen).unwrap();
    bot.run().await;
    bot.stop().await;
    assert!(Path::new(seen).exists() && store_line(&bot.config).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_is_damaged_or_altered_or_of_another_key_is_not_restored() {
    let mut bot = TestBot::start().await;
    let folder = tempfile::tempdir().unwrap();
    let there = elsewhere(&bot.config, &folder.path().join("new"));
    bot.user("ana").says("start Math Hints").await;
    bot.stop().await;
    let altered = |name: &str, sql: &str| {
        let file = folder.path().join(name);
        backup::back_up(&bot.config, &file).unwrap();
        Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        file
    };
    let shortened = altered("shortened", "DELETE FROM audit WHERE id = (SELECT max(id) FROM audit)");
    let said = restored(&there, &shortened, false).await.unwrap_err();
    assert!(said.contains("shortened is not restored: ") && said.contains("is broken at entry"), "{said}");
    let register = "INSERT INTO registers VALUES ('standing approvals', 1, '{\"grants\":[]}')";
    let said = verified(&there, &altered("register", register)).await.unwrap_err();
    assert!(said.contains("the register `standing approvals` was altered"), "{said}");

    let cut = folder.path().join("cut");
    let bytes = fs::read(&shortened).unwrap();
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let said = verified(&there, &cut).await.unwrap_err();
    assert!(said.contains("cut is not restored: "), "{said}");
    let mut other = there.clone();
    other.approvals.digest_key_file = Some(folder.path().join("other.key"));
    fs::write(folder.path().join("other.key"), "ab".repeat(32)).unwrap();
    let said = verified(&other, &shortened).await.unwrap_err();
    assert!(said.contains("is sealed with digest key ") && said.contains("no such key here"), "{said}");
    assert_eq!(files(&folder.path().join("new")), ["threads.sqlite.lock"], "nothing was put in place");
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_mails_and_contacts_are_in_a_file_beside_the_backup() {
    let bot = TestBot::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mails = bot.config.email.context_file(&bot.config.store.path);
    let open = |path: &Path| Connection::open(path).unwrap();
    let used = open(&mails); // its last write is in the log
    used.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE mails (n); INSERT INTO mails VALUES (7)").unwrap();
    let file = folder.path().join("backup");
    backup::back_up(&bot.config, &file).unwrap();
    assert_eq!(files(folder.path()), ["backup", "backup.mail-context"]);
    let there = elsewhere(&bot.config, &folder.path().join("new"));
    restored(&there, &file, false).await.unwrap();
    let sum = |path: &Path| open(path).query_row("SELECT sum(n) FROM mails", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(sum(&there.email.context_file(&there.store.path)), 7);
    let refused = restored(&there, &file, false).await.unwrap_err();
    assert!(refused.contains(" already; with --replace "), "{refused}");
    restored(&there, &file, true).await.unwrap();
    assert_eq!(files(&folder.path().join("new")).len(), 5, "both old files are kept, and there is a lock");
}

fn countersign(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(COUNTERSIGN);
    command.args(arguments).env_clear().env("COUNTERSIGN__STORE__PATH", folder.join("threads.sqlite"));
    let Output { status, stdout, stderr } = command.env("UPGRADE_API_URL", "http://127.0.0.1:9/api").output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

#[test]
fn redis_is_backed_up_by_other_means() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [["backup", "x"], ["restore", "x"]] {
        let mut command = Command::new(COUNTERSIGN);
        let output = command.args(arguments).env_clear().env("REDIS_URL", "redis://127.0.0.1:9").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("The store is Redis") && said.contains("docs/operating.md"), "{said}");
    }
    let (code, said) = countersign(folder.path(), &["backup", "x"]);
    assert!(code == Some(1) && said.contains("there is no store at "), "{said}");
}

#[test]
fn what_needs_no_network_can_be_checked_alone_and_read_by_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = countersign(folder.path(), &["check", "--offline"]);
    let names: Vec<_> =
        said.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(names, ["wrong settings", "ok store", "ok messages", "ok digest", "ok clock", "ok actions"], "{said}");
    assert_eq!(code, Some(2));
    let (_, said) = countersign(folder.path(), &["check", "--offline", "--json"]);
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&report["ok"], report["checks"].as_array().unwrap().len()), (&Value::Bool(false), 6));
    let line = &report["checks"][0];
    assert_eq!(
        (&line["name"], &line["status"], &line["what"]),
        (&"settings".into(), &"failed".into(), &"SLACK_BOT_TOKEN is not set".into())
    );
    assert!(line["remedy"].as_str().unwrap().starts_with("it begins with xoxb-"), "{line}");
    assert_eq!((&report["checks"][1]["status"], &report["checks"][1]["remedy"]), (&"ok".into(), &Value::Null));

    fs::write(folder.path().join("wrong.toml"), "[server]\nport = \"eighty\"\n").unwrap();
    let wrong = folder.path().join("wrong.toml");
    let (code, said) = countersign(folder.path(), &["check", "--json", "--config", wrong.to_str().unwrap()]);
    let report: Value = serde_json::from_str(&said).unwrap();
    assert!(
        code == Some(2) && report["checks"][0]["what"].as_str().unwrap().starts_with("server.port: found"),
        "{said}"
    );
}
