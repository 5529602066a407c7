//! The interface of the page.

use countersign::ids::UserId;
use countersign_sandbox::slack::{Options, SandboxSlack, Shortcut, ShortcutKind};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{SOON, act, buttons, call, http, modal, post, quick, see};

#[tokio::test]
async fn the_state_shows_one_persons_workspace() {
    let shortcut = Shortcut { callback_id: "ask".to_owned(), name: "Ask".to_owned(), kind: ShortcutKind::Message };
    let slack = SandboxSlack::start(Options { shortcuts: vec![shortcut], ..quick() }).await.unwrap();
    let state = see(&slack, "state?as=U1").await;
    assert_eq!(state["team"], json!({ "id": "T1", "name": "Learning Lab" }));
    assert_eq!(state["me"], "U1");
    let channels: Vec<&Value> = state["channels"].as_array().unwrap().iter().map(|channel| &channel["id"]).collect();
    assert_eq!(channels, ["C1", "C2", "D1"]);
    assert_eq!(state["channels"][2]["with"], "U_BOT");
    assert_eq!(state["users"][0]["real_name"], "Ana");
    assert_eq!(state["commands"][0]["command"], "/upgrade");
    assert_eq!(state["shortcuts"][0], json!({ "callback_id": "ask", "name": "Ask", "type": "message" }));
}

#[tokio::test]
async fn what_is_typed_is_said_and_read() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let said = act(&slack, "post", json!({ "as": "U1", "channel": "C1", "text": "@countersign a < b, @bo" })).await;
    assert_eq!(said["ok"], true);
    let reply = json!({ "as": "U2", "channel": "C1", "text": "yes", "thread_ts": said["ts"] });
    assert_eq!(act(&slack, "post", reply).await["ok"], true);

    let messages = see(&slack, "messages?as=U2&channel=C1").await["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 1);
    assert_eq!(messages[0]["text"], "<@U_BOT> a &lt; b, <@U2>");
    assert_eq!((&messages[0]["reply_count"], &messages[0]["reply_users"]), (&json!(1), &json!(["U2"])));
    let thread = see(&slack, &format!("thread?as=U1&channel=C1&ts={}", said["ts"].as_str().unwrap())).await;
    assert_eq!(thread["messages"][1]["text"], "yes");

    let unread = async |user: &str| see(&slack, &format!("state?as={user}")).await["channels"][0].clone();
    let cy = unread("U3").await;
    assert_eq!((&cy["unread"], &cy["mentions"]), (&json!(1), &json!(0)));
    act(&slack, "read", json!({ "as": "U3", "channel": "C1" })).await;
    assert_eq!(unread("U3").await["unread"], 0);
    call(&slack, "chat.postMessage", json!({ "channel": "C1", "text": "<@U3>!", "thread_ts": said["ts"] })).await;
    let cy = unread("U3").await;
    assert_eq!((&cy["unread"], &cy["mentions"]), (&json!(1), &json!(1)), "a mention in a thread counts");
}

#[tokio::test]
async fn a_command_in_a_thread_is_refused_by_slack_itself() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let root = slack.says("ana", "C1", "hi", None).unwrap();
    let line = json!({ "as": "U1", "channel": "C1", "text": "/upgrade status", "thread_ts": root });
    assert_eq!(act(&slack, "post", line).await["command"], true);
    let thread = see(&slack, &format!("thread?as=U1&channel=C1&ts={root}")).await;
    assert_eq!(thread["messages"][1]["text"], "/upgrade is not supported in threads. Sorry!");
    assert_eq!(thread["messages"][1]["ephemeral"], true);
    let others = see(&slack, &format!("thread?as=U2&channel=C1&ts={root}")).await;
    assert_eq!(others["messages"].as_array().unwrap().len(), 1);
    assert!(slack.ledger().deliveries("command").is_empty());
    act(&slack, "post", json!({ "as": "U1", "channel": "C1", "text": "/dance" })).await;
    assert_eq!(slack.ephemerals("ana").last().unwrap().text, "/dance is not a valid command.");
}

#[tokio::test]
async fn an_app_that_does_not_respond_is_shown_as_such() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let ts = post(&slack, json!({ "channel": "C1", "text": "?", "blocks": buttons(&["Go"]) })).await;
    let press = json!({
        "as": "U1", "channel": "C1", "message_ts": ts, "block_id": "answers", "action_id": "do_Go", "value": "key-Go",
    });
    assert_eq!(act(&slack, "action", press).await, json!({ "ok": false, "error": "the app did not respond" }));
    let wrong = json!({ "as": "U1", "channel": "C1", "message_ts": ts, "block_id": "answers", "action_id": "no" });
    assert_eq!(act(&slack, "action", wrong).await["ok"], false);
    assert_eq!(slack.ledger().deliveries("interaction").len(), 1, "Slack does not ask about what is not there");
}

#[tokio::test]
async fn a_form_is_checked_before_the_app_sees_it() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    slack.command("ana", "C1", "/upgrade x").await.ok();
    let trigger = slack.look(|world| world.triggers.keys().next().unwrap().clone());
    let view =
        call(&slack, "views.open", json!({ "trigger_id": trigger, "view": modal("Why?") })).await["view"].clone();
    let answer = act(&slack, "view_submit", json!({ "as": "U1", "view_id": view["id"], "values": {} })).await;
    assert_eq!((&answer["ok"], &answer["closed"]), (&json!(true), &json!(false)));
    assert!(answer["errors"]["reason"].is_string());
    let others = json!({ "as": "U2", "view_id": view["id"], "values": {} });
    assert_eq!(act(&slack, "view_submit", others).await["ok"], false, "not theirs");
    assert_eq!(act(&slack, "view_close", json!({ "as": "U1", "view_id": view["id"] })).await["ok"], true);
}

#[tokio::test]
async fn a_press_carries_what_is_filled_in_around_it() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let home = json!({ "type": "home", "blocks": [
        { "type": "input", "block_id": "name", "label": { "type": "plain_text", "text": "Name" },
          "element": { "type": "plain_text_input", "action_id": "text" } },
        { "type": "actions", "block_id": "day", "elements": [{ "type": "datepicker", "action_id": "pick" }] },
    ] });
    let view = call(&slack, "views.publish", json!({ "user_id": "U1", "view": home })).await["view"].clone();
    let press = json!({
        "as": "U1", "view_id": view["id"], "block_id": "day", "action_id": "pick", "value": "2026-01-02",
        "state": { "values": { "name": { "text": { "type": "plain_text_input", "value": "Math" } } } },
    });
    act(&slack, "action", press).await;
    let payload = slack.ledger().deliveries("interaction").remove(0).payload;
    assert_eq!(payload["actions"][0]["selected_date"], "2026-01-02");
    let values = &payload["view"]["state"]["values"];
    assert_eq!(
        (&values["name"]["text"]["value"], &values["day"]["pick"]["selected_date"]),
        (&json!("Math"), &json!("2026-01-02"))
    );
}

#[tokio::test]
async fn a_home_tab_is_published_and_seen() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    assert_eq!(see(&slack, "home?as=U1").await["view"], Value::Null);
    let home = json!({ "type": "home", "blocks": buttons(&["Go"]) });
    assert_eq!(call(&slack, "views.publish", json!({ "user_id": "U1", "view": home })).await["ok"], true);
    assert_eq!(see(&slack, "home?as=U1").await["view"]["blocks"][1]["block_id"], "answers");
    assert_eq!(see(&slack, "home?as=U2").await["view"], Value::Null);
}

#[tokio::test]
async fn the_stream_tells_each_person_what_concerns_them() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let answer = http().get(format!("{}/workspace/events?as=U1", slack.url())).send().await.unwrap();
    let mut bytes = answer.bytes_stream();
    let ts = post(&slack, json!({ "channel": "C1", "text": "hello" })).await;
    call(&slack, "chat.postEphemeral", json!({ "channel": "C1", "user": "U2", "text": "not for ana" })).await;
    call(&slack, "chat.postEphemeral", json!({ "channel": "C1", "user": "U1", "text": "for ana" })).await;
    call(&slack, "chat.update", json!({ "channel": "C1", "ts": ts, "text": "changed" })).await;
    let status = json!({ "channel_id": "C1", "thread_ts": ts, "status": "is thinking…" });
    call(&slack, "assistant.threads.setStatus", status).await;
    call(&slack, "chat.postMessage", json!({ "channel": "C1", "thread_ts": ts, "text": "answer" })).await;
    call(&slack, "chat.delete", json!({ "channel": "C1", "ts": ts })).await;
    let mut read = Vec::new();
    let text = loop {
        read.extend_from_slice(&timeout(SOON, bytes.next()).await.unwrap().unwrap().unwrap());
        let text = String::from_utf8_lossy(&read).into_owned();
        if text.contains("message_deleted") {
            break text;
        }
    };
    let told: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let kinds: Vec<&str> = told.iter().map(|told| told["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds[..10],
        [
            "message",
            "unread",
            "ephemeral",
            "message_changed",
            "status",
            "message_changed",
            "status",
            "message",
            "unread",
            "message_deleted"
        ]
    );
    assert_eq!((&told[1]["channel"], &told[1]["unread"]), (&json!("C1"), &json!(1)));
    assert_eq!(told[2]["message"]["text"], "for ana");
    assert_eq!(told[6]["text"], "", "a reply ends the status");
}

#[tokio::test]
async fn a_direct_message_belongs_to_two() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    assert_eq!(slack.user("bo"), UserId::from("U2"));
    assert!(slack.says("ana", "D2", "not mine", None).is_err());
}
