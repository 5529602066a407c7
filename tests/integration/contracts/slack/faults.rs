//! The workspace on a bad day.

use std::time::Duration;

use countersign_sandbox::slack::{SandboxSlack, faults::Fault, faults::Loss};
use serde_json::{Value, json};

use super::{SOON, buttons, http, over_http, post, quick};

async fn raw(slack: &SandboxSlack, method: &str) -> Result<reqwest::Response, reqwest::Error> {
    let body = json!({ "channel": "C1", "text": "x" });
    http().post(format!("{}/{method}", slack.api_url())).bearer_auth(slack.bot_token()).json(&body).send().await
}

#[tokio::test]
async fn a_lost_answer_leaves_the_message_and_a_lost_request_does_not() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let method = || "chat.postMessage".to_owned();
    slack.inject(Fault::LoseAnswer { method: method(), calls: 1, how: Loss::Closed });
    let answer = async { raw(&slack, "chat.postMessage").await?.bytes().await };
    assert!(answer.await.is_err(), "the connection breaks");
    assert_eq!(slack.messages("C1").len(), 1);
    slack.inject(Fault::LoseRequest { method: method(), calls: 1, how: Loss::TimedOut });
    let answer = tokio::time::timeout(Duration::from_millis(200), raw(&slack, "chat.postMessage")).await;
    assert!(answer.is_err(), "nothing comes");
    assert_eq!(slack.messages("C1").len(), 1);
    assert!(slack.ledger().calls("chat.postMessage").iter().all(|call| call.answer_lost));
    post(&slack, json!({ "channel": "C1", "text": "x" })).await;
}

#[tokio::test]
async fn events_come_twice_or_in_the_wrong_order_on_request() {
    let slack = SandboxSlack::start(over_http(None)).await.unwrap();
    slack.inject(Fault::Reorder { events: 2 });
    slack.says("ana", "C1", "one", None).unwrap();
    slack.says("ana", "C1", "two", None).unwrap();
    let tried = |count: usize| {
        let slack = slack.clone();
        move |_: &_| {
            let tried = slack.ledger().deliveries("event");
            let first: Vec<String> =
                tried.iter().filter(|a| a.attempt == 1).map(|a| a.payload["event"]["text"].to_string()).collect();
            (first.len() == count).then_some(first)
        }
    };
    assert_eq!(slack.wait_for("two events", SOON, tried(2)).await.unwrap(), ["\"two\"", "\"one\""]);
    slack.inject(Fault::DeliverTwice { on: true });
    slack.says("ana", "C1", "three", None).unwrap();
    let all = slack.wait_for("both copies", SOON, tried(4)).await.unwrap();
    assert_eq!(all[2..], ["\"three\"", "\"three\""]);
}

#[tokio::test]
async fn interactions_may_lack_a_team() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let ts = post(&slack, json!({ "channel": "C1", "text": "?", "blocks": buttons(&["Go"]) })).await;
    slack.inject(Fault::TeamNull { on: true });
    slack.clicks("ana", "C1", &ts.as_str().into(), "Go").await.unwrap_err();
    let seen = |_: &_| slack.ledger().deliveries("interaction").pop();
    let attempt = slack.wait_for("the attempt", SOON, seen).await.unwrap();
    assert_eq!(attempt.payload["team"], Value::Null);
    assert_eq!(attempt.payload["enterprise"]["id"], "E1");
}
