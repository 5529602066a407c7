//! The program as operators know it: what its commands say, and how they end.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
    sync::Arc,
};

use countersign::{clock::SystemClock, store::sqlite::SqliteStore};
use countersign_sandbox::{google::SandboxGoogle, upgrade, upgrade::SandboxUpgrade};
use serde_json::Value;

use super::{
    process::{COUNTERSIGN, Process, serve},
    processes::{By, Given, given},
};

/// `countersign check` where nothing answers, with the store at this path.
fn check_alone(store: &Path) -> Command {
    let mut command = Command::new(COUNTERSIGN);
    command
        .arg("check")
        .env_clear()
        .envs([("SLACK_API_URL", "http://127.0.0.1:9/api"), ("UPGRADE_API_URL", "http://127.0.0.1:9/api")])
        .env("COUNTERSIGN__STORE__PATH", store);
    command
}

/// `countersign trace` of the store at this path.
fn trace(store: &Path, thread: &[&str]) -> Output {
    let mut command = Command::new(COUNTERSIGN);
    command.arg("trace").args(thread).env_clear().env("COUNTERSIGN__STORE__PATH", store);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn what_is_wrong_is_said_and_ends_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let output = check_alone(&folder.path().join("threads.sqlite")).output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("wrong slack    SLACK_BOT_TOKEN is not set"), "{said}");
    assert!(said.contains("wrong upgrade"), "{said}");
}

/// Before Slack is asked, so that a rule that would never count is not found out by the first card.
#[test]
fn a_rule_for_no_action_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.toml");
    std::fs::write(&file, "[approvals.actions.delete_experiments]\nneeded = 2\n").unwrap();
    let refused = "approvals.actions.delete_experiments: there is no such action; the nearest is delete_experiment";
    let checked = said(&check_alone(&folder.path().join("a.sqlite")).arg("--config").arg(&file).output().unwrap());
    assert!(checked.contains(&format!("wrong actions  {refused}")), "{checked}");
    let mut serve = Command::new(COUNTERSIGN);
    serve.arg("serve").arg("--config").arg(&file).env_clear().env("SLACK_BOT_TOKEN", "xoxb-1");
    serve
        .env("SLACK_API_URL", "http://127.0.0.1:9/api")
        .env("COUNTERSIGN__STORE__PATH", folder.path().join("b.sqlite"));
    let served = said(&serve.env("PORT", "0").output().unwrap());
    let unknown = "delete_experiments: there is no such action here; those of a platform exist once its address is set";
    assert!(served.contains(unknown), "{served}");
    let served = said(&serve.env("UPGRADE_API_URL", "http://127.0.0.1:9/api").output().unwrap());
    assert!(served.contains(refused), "{served}");
}

#[test]
fn serve_tells_all_that_is_missing_and_ends_as_check_does() {
    let output = Command::new(COUNTERSIGN).arg("serve").env_clear().env("PORT", "0").output().unwrap();
    insta::assert_snapshot!(said(&output), @"
    The settings are invalid:
      SLACK_BOT_TOKEN is not set; it begins with xoxb- and is on the app's page under OAuth & Permissions
      set SLACK_APP_TOKEN (xapp-…) for Socket Mode, or SLACK_SIGNING_SECRET for HTTP
    Every setting is explained in config/default.toml.
    ");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_wrong_setting_does_not_hide_what_is_missing() {
    let mut serve = Command::new(COUNTERSIGN);
    serve.arg("serve").env_clear().envs([("PORT", "0"), ("COUNTERSIGN__SERVER__LOG", "inf")]);
    let output = serve.env("COUNTERSIGN__STORE__KIND", "redis").output().unwrap();
    let said = said(&output);
    for told in
        ["server.log: found `inf`", "SLACK_BOT_TOKEN is not set", "SLACK_SIGNING_SECRET", "REDIS_URL is not set"]
    {
        assert!(said.contains(told), "{told}: {said}");
    }
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn no_flag_is_ignored_silently_and_every_command_has_its_program() {
    let says = |typed: &[&str]| {
        let output = Command::new(COUNTERSIGN).args(typed).env_clear().output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{typed:?}");
        said(&output).lines().next().unwrap_or_default().to_owned()
    };
    let said = [
        says(&["--port", "8099", "serve"]),
        says(&["audit", "verify", "x.jsonl", "--config", "x.toml"]),
        says(&["playground"]),
        says(&["sandbox", "--mail"]),
        says(&["evaluate", "cases.json"]),
        says(&["chek"]),
    ];
    insta::assert_snapshot!(said.join("\n"), @"
    error: unexpected argument '--port' found
    error: `audit` doesn't take --config: it reads no settings file
    error: `playground` is done by another program; run `countersign-playground` instead
    error: `sandbox` is done by another program; run `countersign-playground sandbox` instead
    error: `evaluate` is done by another program; run `countersign-playground evaluate` instead
    error: unrecognized subcommand 'chek'
    ");
}

#[test]
fn without_a_command_there_is_help_that_names_the_playground() {
    let output = Command::new(COUNTERSIGN).env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.contains("Runs the bot in a real workspace"), "{said}");
    let last = "To try the bot without a workspace, run `countersign-playground`: it opens one in the browser.";
    assert_eq!(said.trim().lines().last(), Some(last));
}

/// The platform asks for the tokens of a service account; the key is right, wrong, or not where it should be.
#[tokio::test(flavor = "multi_thread")]
async fn how_the_bot_signs_in_is_tried_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let google = SandboxGoogle::start().await.unwrap();
    let minted = Some(google.tokens());
    let upgrade = SandboxUpgrade::start(upgrade::Options { minted, ..upgrade::Options::default() }).await.unwrap();
    let key = folder.path().join("key.json");
    std::fs::write(&key, google.key_file().to_string()).unwrap();
    let looks = |name: &str, value: &Path| {
        let mut check = check_alone(&folder.path().join("threads.sqlite"));
        let said = said(&check.env("UPGRADE_API_URL", upgrade.url()).env(name, value).output().unwrap());
        let line = said.lines().find(|line| line.contains(" upgrade ")).unwrap_or_default().to_owned();
        line.replace(&folder.path().display().to_string(), "…")
    };
    let said = [
        looks("UPGRADE_SERVICE_ACCOUNT", &key),
        looks("UPGRADE_SERVICE_ACCOUNT", &folder.path().join("none.json")),
        looks("UPGRADE_AUTH_TOKEN", Path::new("old")),
        looks("NOTHING", Path::new("")),
    ];
    insta::assert_snapshot!(said.join("\n"), @"
    ok    upgrade  A/B Testing Backend 6.5.0, as countersign@sandbox.iam.gserviceaccount.com, with tokens from 127.0.0.1
    wrong upgrade  upgrade.service_account: cannot read the key file …/none.json: No such file or directory (os error 2)
    wrong upgrade  A/B Testing Backend 6.5.0 answers, but does not accept UPGRADE_AUTH_TOKEN; renew it
    wrong upgrade  A/B Testing Backend 6.5.0 answers, but requires a token; set UPGRADE_SERVICE_ACCOUNT or UPGRADE_AUTH_TOKEN
    ");
    assert_eq!(google.tokens().count(), 1);
}

#[test]
fn looking_makes_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/threads.sqlite");
    let checked = said(&check_alone(&path).output().unwrap());
    let ok = format!(
        "ok    store    none yet; it will be created at {}, and {} is writable",
        path.display(),
        folder.path().display()
    );
    assert!(checked.contains(&ok), "{checked}");
    let traced = trace(&path, &[]);
    assert_eq!(traced.status.code(), Some(1));
    assert!(said(&traced).contains(&format!("there is no store at {}", path.display())), "{}", said(&traced));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let file = tempfile::NamedTempFile::new().unwrap();
    let checked = said(&check_alone(&file.path().join("threads.sqlite")).output().unwrap());
    assert!(checked.contains("wrong store    none yet, and it cannot be created"), "{checked}");
}

/// The line of `countersign check` about the store at this path, without the folder.
fn store_line(path: &Path) -> String {
    let said = said(&check_alone(path).output().unwrap());
    let line = said.lines().find(|line| line.contains(" store ")).unwrap_or_default();
    line.replace(&path.parent().unwrap().display().to_string(), "…")
}

#[test]
fn a_store_that_is_gone_is_not_taken_for_one_that_was_never_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.sqlite");
    let store = SqliteStore::open(&path, Arc::new(SystemClock)).unwrap();
    std::fs::remove_file(&path).unwrap();
    let while_used = store_line(&path);
    drop(store);
    let [log, index] = ["threads.sqlite-wal", "threads.sqlite-shm"].map(|name| folder.path().join(name));
    std::fs::remove_file(index).ok();
    std::fs::write(&log, "the newest changes").unwrap();
    let with_its_log = store_line(&path);
    assert!(log.exists() && !path.exists(), "looking changes nothing");
    std::fs::remove_file(&log).unwrap();
    insta::assert_snapshot!([while_used, with_its_log, store_line(&path)].join("\n"), @"
    wrong store    …/threads.sqlite is gone, but a running Countersign holds …/threads.sqlite.lock: it was deleted or moved, and nothing is stored or acknowledged; put it back. Restarting would create an empty store, without its threads and open cards
    wrong store    …/threads.sqlite is gone, but …/threads.sqlite-wal is still there; put it back. Restarting would create an empty store, without its threads and open cards; if that is what you want, remove …/threads.sqlite-wal
    ok    store    none yet; it will be created at …/threads.sqlite, and … is writable
    ");
}

#[test]
fn a_store_that_others_can_read_is_objected_to_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.sqlite");
    let rights = |rights| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(rights)).unwrap();
    drop(SqliteStore::open(&path, Arc::new(SystemClock)).unwrap());
    assert!(store_line(&path).starts_with("ok    store    SQLite "), "{}", store_line(&path));
    rights(0o644);
    let wrong = "wrong store    …/threads.sqlite, permissions 644: others on this machine can read it; expected `chmod 600 \
                 …/threads.sqlite`";
    assert_eq!([store_line(&path), store_line(&path)], [wrong, wrong], "it is not mended in passing");
    rights(0o600);
    assert!(store_line(&path).starts_with("ok    store    SQLite "), "{}", store_line(&path));
}

#[test]
fn a_port_that_is_taken_is_said_with_its_settings() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut serve = Command::new(COUNTERSIGN);
    serve.arg("serve").env_clear().env("SLACK_BOT_TOKEN", "xoxb-1").env("SLACK_SIGNING_SECRET", "s".repeat(32));
    serve.env("COUNTERSIGN__SERVER__ADDRESS", "127.0.0.1").env("PORT", port);
    let served = serve.env("COUNTERSIGN__STORE__PATH", folder.path().join("threads.sqlite")).output().unwrap();
    let said = said(&served);
    assert!(said.contains("choose another port with server.port (or PORT)"), "{said}");
    assert_eq!(served.status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_traced_while_the_bot_works_and_after_it_was_killed() {
    let Given { folder, sandbox: _sandbox, settings, page, bot: _ } = given(By::Socket, None).await;
    let bot = Process::start(serve(&settings), &folder.path().join("bot.log"));
    page.until("it is up", async || bot.is_up()).await;
    let root = page.says("ana", "@countersign start the Math Hints experiment").await;
    page.message_with(&root, "approve").await;

    let store = Path::new(&settings["COUNTERSIGN__STORE__PATH"]);
    let look = || {
        let threads: Value = serde_json::from_slice(&trace(store, &[]).stdout).unwrap();
        let thread = threads["threads"][0]["thread"].as_str().unwrap();
        assert!(thread.ends_with(&root), "{threads:#}");
        let traced = trace(store, &[thread]);
        assert!(said(&traced).contains(r#""name": "update_experiment_status""#), "{}", said(&traced));
    };
    look();
    bot.kill();
    look();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_token_that_slack_refuses_ends_the_bot() {
    let Given { folder, sandbox: _sandbox, mut settings, page, bot: _ } = given(By::Socket, None).await;
    settings.insert("SLACK_APP_TOKEN".to_owned(), "xapp-wrong".to_owned());
    let refused = "Slack refused the app token (invalid_auth): ";
    let check = Command::new(COUNTERSIGN).arg("check").env_clear().envs(&settings).output().unwrap();
    assert!(said(&check).contains(&format!("wrong events   {refused}")), "{}", said(&check));

    let bot = Process::start(serve(&settings), &folder.path().join("refused.log"));
    page.until("its end", async || bot.ended().is_some()).await;
    assert_eq!(bot.ended().unwrap().code(), Some(1));
    assert_eq!(bot.log().matches(&refused).count(), 1, "{}", bot.log());
}

/// As with `countersign serve 2>&1 | head -1`.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_stops_listening_ends_nothing() {
    let Given { folder, sandbox: _sandbox, settings, page, bot: here } = given(By::Socket, None).await;
    let bot = Process::unheard(serve(&settings));
    page.until_ready(&bot, &here).await;

    let mut check = check_alone(&folder.path().join("threads.sqlite"));
    assert_eq!(check.stdout(std::io::pipe().unwrap().1).status().unwrap().code(), Some(2));
    assert!(bot.stop().await.success());
}
