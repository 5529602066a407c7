//! The program as whoever tries it out knows it: what its commands say, what they keep, and how they end.

use std::{
    io,
    os::unix::fs::PermissionsExt as _,
    process::Stdio,
    time::{Duration, Instant},
};

use crate::{
    BOUND,
    ports::free_port,
    running::{Running, program},
};

#[test]
fn no_flag_is_ignored_silently() {
    let says = |typed: &[&str]| {
        let output = program().args(typed).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{typed:?}");
        String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        [
            says(&["--port", "8099", "sandbox"]),
            says(&["sandbox", "--config", "x.toml"]),
            says(&["sandbox", "--events-url", "notaurl"]),
            says(&["check"]),
        ],
        [
            "error: the subcommand 'sandbox' cannot be used with '--port <PORT>'",
            "error: unexpected argument '--config' found",
            "error: invalid value 'notaurl' for '--events-url <URL>': found `notaurl`; expected an address that begins with http:// or https://",
            "error: the playground has no command `check`; those for a real workspace are commands of `countersign`, such as \
             `countersign check`",
        ]
    );
}

/// The messages and the experiments of the stand-ins may be real ones: whoever tries something out types what they have.
#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_says_where_it_is_and_keeps_its_files_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (data, ledger) = (folder.path().join("data"), folder.path().join("ledger"));
    let mut command = program();
    command.args(["sandbox", "--slack-port=0", "--upgrade-port=0", "--bridge-port=0", "--data"]).arg(&data);
    let mut sandbox = Running::start(command.arg("--ledger").arg(&ledger).stdout(Stdio::piped()));
    let expected = [
        "SLACK_API_URL",
        "SLACK_BOT_TOKEN",
        "SLACK_APP_TOKEN",
        "SLACK_SIGNING_SECRET",
        "UPGRADE_API_URL",
        "BRIDGE_URL",
        "BRIDGE_JWT_SECRET",
        "COUNTERSIGN__SIMULATION__MODELS",
    ];
    let mut said = sandbox.lines();
    for name in expected {
        let line = said.next().expect("it says more").unwrap();
        assert!(line.split_once('=').is_some_and(|(first, value)| first == name && !value.is_empty()), "{line}");
    }
    assert!(sandbox.ends_at("-TERM").await.success());
    assert!(said.next().is_none(), "and nothing else");
    let files =
        [data.join("slack.json"), data.join("upgrade.json"), ledger.join("slack.jsonl"), ledger.join("upgrade.jsonl")];
    for file in files {
        let rights = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(rights, 0o600, "{}: {rights:o}", file.display());
    }
}

/// As with `countersign-playground 2>&1 | head -1`.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_stops_listening_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let nobody = || io::pipe().unwrap().1;
    let mut command = program();
    command.args(["--port", &port.to_string(), "--data"]).arg(folder.path()).stdout(nobody()).stderr(nobody());
    let playground = Running::start(&mut command);
    let began = Instant::now();
    while page_at(port).await.is_none() {
        assert!(began.elapsed() < BOUND, "its page does not open");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(playground.ends_at("-TERM").await.success());
}

/// The page at this port, if there is one.
async fn page_at(port: u16) -> Option<String> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = reqwest::Client::builder().no_proxy().timeout(BOUND).build().unwrap();
    client.get(format!("http://127.0.0.1:{port}")).send().await.ok()?.text().await.ok()
}
