//! A workspace that is stopped and started again.

use countersign_sandbox::slack::{Options, SandboxSlack};
use serde_json::json;

use super::{buttons, call, http, post, quick};

#[tokio::test]
async fn a_restart_loses_nothing_and_time_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let options = || Options {
        persist: Some(folder.path().join("workspace.json")),
        ledger: Some(folder.path().join("ledger.jsonl")),
        ..quick()
    };
    let slack = SandboxSlack::start(options()).await.unwrap();
    let root = slack.says("ana", "C1", "hello", None).unwrap();
    let card =
        post(&slack, json!({ "channel": "C1", "text": "?", "blocks": buttons(&["Go"]), "thread_ts": root })).await;
    let ticket = call(&slack, "files.getUploadURLExternal", json!({ "filename": "a.txt", "length": 3 })).await;
    http().post(ticket["upload_url"].as_str().unwrap()).body("abc").send().await.unwrap();
    let share = json!({ "files": [{ "id": ticket["file_id"] }], "channel_id": "C1", "thread_ts": root });
    call(&slack, "files.completeUploadExternal", share).await;
    slack.stop().await;

    let slack = SandboxSlack::start(options()).await.unwrap();
    let thread = slack.thread("C1", &root);
    assert_eq!(thread.len(), 3);
    assert_eq!(thread[1].ts.as_str(), card);
    assert_eq!(thread[1].button("Go").unwrap().value.as_deref(), Some("key-Go"));
    slack.look(|world| assert_eq!(world.files[&thread[2].files[0]].bytes, b"abc"));
    let later = slack.says("ana", "C1", "again", None).unwrap();
    assert!(later > thread[2].ts);
    slack.stop().await;
    let lines = std::fs::read_to_string(folder.path().join("ledger.jsonl")).unwrap();
    assert_eq!(lines.lines().filter(|line| line.contains("\"chat.postMessage\"")).count(), 1);
}

#[tokio::test]
async fn timestamps_never_repeat() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let all: Vec<_> = (0..500).map(|_| slack.says("ana", "C1", "x", None).unwrap()).collect();
    assert!(all.is_sorted_by(|a, b| a < b));
}
