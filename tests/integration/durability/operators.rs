//! The program as operators know it: what its commands say, and how they end.

use std::process::{Command, Output};

use super::{
    process::{COUNTERSIGN, Process, serve},
    processes::{By, Given, free_port, given},
};

/// `countersign check` where nothing answers, with the store at this path.
fn check_alone(store: &std::path::Path) -> Command {
    let mut command = Command::new(COUNTERSIGN);
    command
        .arg("check")
        .env_clear()
        .envs([("SLACK_API_URL", "http://127.0.0.1:9/api"), ("UPGRADE_API_URL", "http://127.0.0.1:9/api")])
        .env("COUNTERSIGN__STORE__PATH", store);
    command
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

/// As with `countersign serve 2>&1 | head -1`.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_stops_listening_ends_nothing() {
    let Given { folder, sandbox, settings, page, bot: here } = given(By::Socket, None).await;
    let bot = Process::unheard(serve(&settings));
    page.until("it is ready", async || page.get(&format!("{here}/readyz")).await.is_some_and(|(ok, _)| ok)).await;

    let port = free_port().to_string();
    let mut playground = Command::new(COUNTERSIGN);
    playground.args(["--port", &port, "--data"]).arg(folder.path().join("data")).env_clear();
    let playground = Process::unheard(playground);
    page.until("the page", async || page.get(&format!("http://127.0.0.1:{port}")).await.is_some()).await;

    let mut check = check_alone(&folder.path().join("threads.sqlite"));
    assert_eq!(check.stdout(std::io::pipe().unwrap().1).status().unwrap().code(), Some(2));
    for process in [bot, playground, sandbox] {
        assert!(process.stop().await.success(), "{}", process.log());
    }
}
