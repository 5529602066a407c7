//! Deliveries by HTTP: signed, acknowledged, repeated.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, http::Uri, response::IntoResponse as _};
use countersign_sandbox::slack::{Error, SandboxSlack};
use serde_json::{Value, json};
use slack_morphism::{prelude::*, signature_verifier::SlackEventSignatureVerifier};

use super::{SOON, buttons, over_http, post};

/// An app that notes what it gets and answers as told; otherwise 200.
#[derive(Clone, Default)]
struct App {
    got: Arc<Mutex<Vec<(String, HeaderMap, String)>>>,
    answers: Arc<Mutex<VecDeque<Next>>>,
}

/// Status, body, and how long it takes.
type Next = (u16, String, Duration);

impl App {
    async fn start() -> (Self, SandboxSlack) {
        let app = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(take).with_state(app.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let slack = SandboxSlack::start(over_http(Some(url))).await.unwrap();
        (app, slack)
    }

    fn answers(&self, status: u16, body: impl Into<String>) {
        self.answers.lock().unwrap().push_back((status, body.into(), Duration::ZERO));
    }

    /// The next answer comes after every deadline.
    fn dawdles(&self) {
        self.answers.lock().unwrap().push_back((200, String::new(), Duration::from_secs(1)));
    }

    fn got(&self, path: &str) -> Vec<(HeaderMap, String)> {
        let got = self.got.lock().unwrap();
        got.iter().filter(|(at, ..)| at == path).map(|(_, headers, body)| (headers.clone(), body.clone())).collect()
    }

    fn events(&self) -> Vec<Value> {
        let bodies = self.got("/slack/events").into_iter().map(|(_, body)| serde_json::from_str(&body).unwrap());
        bodies.filter(|body: &Value| body["type"] == "event_callback").collect()
    }
}

async fn take(State(app): State<App>, uri: Uri, headers: HeaderMap, body: Bytes) -> axum::response::Response {
    let body = String::from_utf8(body.to_vec()).unwrap();
    app.got.lock().unwrap().push((uri.path().to_owned(), headers, body.clone()));
    if let Ok(challenge) = serde_json::from_str::<Value>(&body)
        && challenge["type"] == "url_verification"
    {
        return challenge["challenge"].as_str().unwrap().to_owned().into_response();
    }
    let next = app.answers.lock().unwrap().pop_front();
    let Some((status, text, delay)) = next else { return "".into_response() };
    tokio::time::sleep(delay).await;
    let status = axum::http::StatusCode::from_u16(status).unwrap();
    let no_retry = if text == "no-retry" { "1" } else { "0" };
    (status, [("x-slack-no-retry", no_retry)], text).into_response()
}

#[tokio::test]
async fn every_request_is_signed_and_the_address_is_verified_first() {
    let (app, slack) = App::start().await;
    slack.says("ana", "C1", "hi", None).unwrap();
    slack.wait_for("the event", SOON, |_| (app.events().len() == 1).then_some(())).await.unwrap();
    slack.command("ana", "C1", "/upgrade status").await.unwrap();

    let verifier = SlackEventSignatureVerifier::new(&SlackSigningSecret::new(slack.signing_secret().to_owned()));
    let got = app.got.lock().unwrap().clone();
    assert_eq!(got.len(), 3);
    assert!(got[0].2.contains("url_verification"));
    for (_, headers, body) in &got {
        let header = |name: &str| headers[name].to_str().unwrap();
        verifier.verify(header("x-slack-signature"), body, header("x-slack-request-timestamp")).unwrap();
        let forged =
            verifier.verify(header("x-slack-signature"), &format!("{body} "), header("x-slack-request-timestamp"));
        assert!(forged.is_err());
    }
}

#[tokio::test]
async fn slack_morphism_understands_what_is_delivered() {
    let (app, slack) = App::start().await;
    let root = slack.says("ana", "C1", "@countersign start it", None).unwrap();
    let body = json!({ "channel": "C1", "text": "?", "blocks": buttons(&["Go"]), "thread_ts": root });
    let ts = post(&slack, body).await;
    super::call(&slack, "chat.update", json!({ "channel": "C1", "ts": ts, "text": "?", "blocks": buttons(&["On"]) }))
        .await;
    slack.clicks("bo", "C1", &ts.as_str().into(), "On").await.unwrap();
    slack.opens_home("ana");
    slack.wait_for("all events", SOON, |_| (app.events().len() == 5).then_some(())).await.unwrap();
    for event in app.events() {
        let parsed: SlackPushEventCallback = serde_json::from_value(event.clone()).unwrap();
        match parsed.event {
            SlackEventCallbackBody::Message(message) => {
                assert!(message.subtype.is_some() || message.content.is_some(), "unread: {event}");
            }
            SlackEventCallbackBody::AppMention(_) | SlackEventCallbackBody::AppHomeOpened(_) => {}
            other => panic!("not understood: {other:?}"),
        }
    }
    let click = slack.ledger().deliveries("interaction").remove(0).payload;
    let SlackInteractionEvent::BlockActions(click) = serde_json::from_value(click).unwrap() else { panic!("no click") };
    assert_eq!(click.actions.unwrap()[0].value.as_deref(), Some("key-On"));
}

#[tokio::test]
async fn a_mention_comes_as_such_and_as_a_message() {
    let (app, slack) = App::start().await;
    let ts = slack.says("ana", "#experiments", "@countersign list <b>", None).unwrap();
    slack.wait_for("both events", SOON, |_| (app.events().len() == 2).then_some(())).await.unwrap();
    let mut events = app.events();
    events.sort_by_key(|event| event["event"]["type"].to_string());
    assert_eq!(events[0]["event"]["type"], "app_mention");
    assert_eq!(events[1]["event"]["type"], "message");
    assert_eq!(events[1]["event"]["channel_type"], "channel");
    assert_ne!(events[0]["event_id"], events[1]["event_id"]);
    for event in &events {
        assert_eq!(event["event"]["ts"], ts.as_str());
        assert_eq!(event["event"]["text"], "<@U_BOT> list &lt;b&gt;");
        assert_eq!((&event["team_id"], &event["api_app_id"]), (&json!("T1"), &json!("A1")));
    }
}

#[tokio::test]
async fn in_a_direct_message_and_in_threads_there_is_one_event() {
    let (app, slack) = App::start().await;
    let root = slack.says("bo", "@countersign", "hello @countersign", None).unwrap();
    slack.says("bo", "D2", "more", Some(&root)).unwrap();
    slack.wait_for("both events", SOON, |_| (app.events().len() == 2).then_some(())).await.unwrap();
    let reply = app.events().into_iter().find(|event| event["event"]["text"] == "more").unwrap();
    assert_eq!(reply["event"]["channel_type"], "im");
    assert_eq!(reply["event"]["thread_ts"], root.as_str());
    assert_eq!(reply["event"]["parent_user_id"], "U2");
}

#[tokio::test]
async fn the_app_hears_its_own_posts_and_edits() {
    let (app, slack) = App::start().await;
    let ts = post(&slack, json!({ "channel": "C1", "text": "one" })).await;
    super::call(&slack, "chat.update", json!({ "channel": "C1", "ts": ts, "text": "two" })).await;
    slack.wait_for("both events", SOON, |_| (app.events().len() == 2).then_some(())).await.unwrap();
    let events = app.events();
    let edit = events.iter().find(|event| event["event"]["subtype"] == "message_changed").unwrap();
    assert_eq!(edit["event"]["message"]["text"], "two");
    assert_eq!(edit["event"]["previous_message"]["text"], "one");
    let own = events.iter().find(|event| event["event"]["subtype"].is_null()).unwrap();
    assert_eq!((&own["event"]["bot_id"], &own["event"]["user"]), (&json!("B1"), &json!("U_BOT")));
}

#[tokio::test]
async fn an_event_is_repeated_until_it_is_acknowledged() {
    let (app, slack) = App::start().await;
    assert!(slack.verifies_app().await);
    app.answers(500, "");
    app.dawdles();
    slack.says("ana", "C1", "hi", None).unwrap();
    let seen = |_: &_| (slack.ledger().deliveries("event").len() == 3).then_some(());
    slack.wait_for("three attempts", SOON, seen).await.unwrap();
    let got: Vec<(String, String)> = app.got("/slack/events")[1..]
        .iter()
        .map(|(headers, _)| {
            let header = |name| headers.get(name).map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default();
            (header("x-slack-retry-num"), header("x-slack-retry-reason"))
        })
        .collect();
    let expected = [("", ""), ("1", "http_error"), ("2", "http_timeout")];
    assert_eq!(got, expected.map(|(number, reason)| (number.to_owned(), reason.to_owned())));
    let ids: Vec<Value> = app.events().iter().map(|event| event["event_id"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "the same event: {ids:?}");
    let attempts = slack.ledger().deliveries("event");
    assert!(attempts[2].acknowledged_after_ms.is_some() && attempts[1].acknowledged_after_ms.is_none());
}

#[tokio::test]
async fn an_app_that_says_so_gets_no_repetition_and_three_are_the_most() {
    let (app, slack) = App::start().await;
    assert!(slack.verifies_app().await);
    app.answers(500, "no-retry");
    slack.says("ana", "C1", "one", None).unwrap();
    let one = |_: &_| (slack.ledger().deliveries("event").len() == 1).then_some(());
    slack.wait_for("one attempt", SOON, one).await.unwrap();
    for _ in 0..4 {
        app.answers(503, "");
    }
    slack.says("ana", "C1", "two", None).unwrap();
    let five = |_: &_| (slack.ledger().deliveries("event").len() == 5).then_some(());
    slack.wait_for("four more", SOON, five).await.unwrap();
    slack.says("ana", "C1", "three", None).unwrap();
    let six = |_: &_| (slack.ledger().deliveries("event").len() == 6).then_some(());
    slack.wait_for("the next event", SOON, six).await.unwrap();
    assert_eq!(app.events().iter().filter(|event| event["event"]["text"] == "one").count(), 1);
    assert_eq!(app.events().iter().filter(|event| event["event"]["text"] == "two").count(), 4);
}

#[tokio::test]
async fn a_click_carries_the_message_and_is_delivered_once() {
    let (app, slack) = App::start().await;
    let root = slack.says("ana", "C1", "start it", None).unwrap();
    let ts =
        post(&slack, json!({ "channel": "C1", "text": "?", "blocks": buttons(&["Go", "Stop"]), "thread_ts": root }))
            .await;
    slack.wait_for("the events", SOON, |_| (app.events().len() == 2).then_some(())).await.unwrap();
    slack.clicks("bo", "C1", &ts.as_str().into(), "Go").await.unwrap();
    let (_, body) = app.got("/slack/interactions").remove(0);
    let (_, payload) = url::form_urlencoded::parse(body.as_bytes()).find(|(key, _)| key == "payload").unwrap();
    let payload: Value = serde_json::from_str(&payload).unwrap();
    assert_eq!(payload["type"], "block_actions");
    assert_eq!(payload["user"]["id"], "U2");
    assert_eq!(payload["team"]["id"], "T1");
    assert_eq!(payload["channel"]["id"], "C1");
    assert_eq!(payload["container"]["message_ts"], ts.as_str());
    assert_eq!(payload["container"]["thread_ts"], root.as_str());
    assert_eq!(payload["message"]["blocks"][1]["block_id"], "answers");
    let action = &payload["actions"][0];
    assert_eq!((&action["action_id"], &action["value"]), (&json!("do_Go"), &json!("key-Go")));
    assert_eq!(action["block_id"], "answers");
    assert!(payload["response_url"].as_str().unwrap().starts_with(slack.url()));

    app.answers(500, "");
    let refused = slack.clicks("bo", "C1", &ts.as_str().into(), "Stop").await;
    assert!(matches!(refused, Err(Error::Unanswered)), "{refused:?}");
    assert_eq!(app.got("/slack/interactions").len(), 2, "no repetition: a person is told instead");
}

#[tokio::test]
async fn a_button_that_is_gone_can_still_be_pressed_by_whoever_sees_it() {
    let (app, slack) = App::start().await;
    let ts = post(&slack, json!({ "channel": "C1", "text": "?", "blocks": buttons(&["Go"]) })).await;
    super::call(&slack, "chat.update", json!({ "channel": "C1", "ts": ts, "text": "Gone." })).await;
    slack.clicks("bo", "C1", &ts.as_str().into(), "Go").await.unwrap();
    assert_eq!(app.got("/slack/interactions").len(), 1);
    let nothing = slack.clicks("bo", "C1", &ts.as_str().into(), "Never").await;
    assert!(matches!(nothing, Err(Error::Nothing(_))), "{nothing:?}");
}

#[tokio::test]
async fn what_a_command_is_answered_only_its_user_sees() {
    let (app, slack) = App::start().await;
    assert!(slack.verifies_app().await);
    app.answers(200, r#"{"text":"2 experiments"}"#);
    let answer = slack.command("ana", "C1", "/upgrade status of @bo").await.unwrap().unwrap();
    assert_eq!(answer["text"], "2 experiments");
    assert_eq!(slack.ephemerals("ana").last().unwrap().text, "2 experiments");
    let (_, body) = app.got("/slack/commands").remove(0);
    let fields: std::collections::BTreeMap<_, _> = url::form_urlencoded::parse(body.as_bytes()).collect();
    assert_eq!((&*fields["command"], &*fields["text"]), ("/upgrade", "status of <@U2>"));
    assert_eq!((&*fields["user_id"], &*fields["channel_id"]), ("U1", "C1"));
    assert!(fields.contains_key("trigger_id") && fields.contains_key("response_url"));
    app.answers(200, "plain");
    assert_eq!(slack.command("ana", "C1", "/upgrade").await.unwrap().unwrap()["text"], "plain");
}

#[tokio::test]
async fn suggestions_are_at_most_a_hundred_and_in_time() {
    let (app, slack) = App::start().await;
    let menu = json!([{ "type": "actions", "elements": [{ "type": "external_select", "action_id": "which" }] }]);
    let ts = post(&slack, json!({ "channel": "C1", "text": "Which?", "blocks": menu })).await;
    slack.wait_for("the message to arrive", SOON, |_| (app.events().len() == 1).then_some(())).await.unwrap();
    let types = async || slack.types_into("ana", "C1", &ts.as_str().into(), "which", "ma").await;
    let option =
        |n: usize| json!({ "text": { "type": "plain_text", "text": format!("{n}") }, "value": format!("{n}") });
    let options = |n: usize| (0..n).map(option).collect::<Vec<_>>();

    app.answers(200, json!({ "options": options(100) }).to_string());
    assert_eq!(types().await.unwrap().len(), 100);
    let asked = slack.ledger().deliveries("interaction").pop().unwrap().payload;
    assert_eq!((&asked["type"], &asked["value"]), (&json!("block_suggestion"), &json!("ma")));
    let group = json!({ "label": { "type": "plain_text", "text": "g" }, "options": options(3) });
    app.answers(200, json!({ "option_groups": [group] }).to_string());
    assert_eq!(types().await.unwrap().len(), 3);
    assert!(slack.ledger().complaints().is_empty());

    app.answers(200, json!({ "options": options(101) }).to_string());
    assert!(matches!(types().await, Err(Error::Unanswered)));
    app.answers(200, "");
    assert!(matches!(types().await, Err(Error::Unanswered)), "an empty answer suggests nothing");
    assert_eq!(slack.ledger().complaints().len(), 2);
    app.dawdles();
    assert!(matches!(types().await, Err(Error::Unanswered)), "too late");
    assert_eq!(slack.ledger().complaints().len(), 2);
}
