//! Socket Mode, spoken by a plain WebSocket client.

use std::time::Duration;

use countersign_sandbox::slack::{Options, SandboxSlack, faults::Fault};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

use super::{SOON, buttons, http, modal, post, quick};

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    async fn open(slack: &SandboxSlack) -> Self {
        Self(connect_async(address(slack).await).await.unwrap().0)
    }

    /// An open socket that has said hello.
    async fn ready(slack: &SandboxSlack) -> Self {
        let mut socket = Self::open(slack).await;
        assert_eq!(socket.next().await["type"], "hello");
        socket
    }

    async fn next(&mut self) -> Value {
        self.next_or_end().await.expect("the socket was closed")
    }

    async fn next_or_end(&mut self) -> Option<Value> {
        loop {
            match timeout(SOON, self.0.next()).await.expect("nothing came") {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    async fn acknowledge(&mut self, envelope: &Value, payload: Option<Value>) {
        let mut frame = json!({ "envelope_id": envelope["envelope_id"] });
        if let Some(payload) = payload {
            frame["payload"] = payload;
        }
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }
}

async fn address(slack: &SandboxSlack) -> String {
    let request = http().post(format!("{}/apps.connections.open", slack.api_url())).bearer_auth(slack.app_token());
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    answer["url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_socket_says_hello_and_its_address_is_good_once() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let address = address(&slack).await;
    let mut socket = Socket(connect_async(&address).await.unwrap().0);
    let hello = socket.next().await;
    assert_eq!((&hello["type"], &hello["num_connections"]), (&json!("hello"), &json!(1)));
    assert_eq!(hello["connection_info"]["app_id"], "A1");
    assert!(connect_async(&address).await.is_err());
}

#[tokio::test]
async fn what_is_acknowledged_is_not_repeated_and_what_is_not_is() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let mut socket = Socket::ready(&slack).await;
    slack.says("ana", "C1", "one", None).unwrap();
    let first = socket.next().await;
    assert_eq!((&first["type"], &first["retry_attempt"]), (&json!("events_api"), &json!(0)));
    assert_eq!(first["accepts_response_payload"], false);
    let again = socket.next().await;
    assert_eq!(again["payload"], first["payload"]);
    assert_eq!((&again["retry_attempt"], &again["retry_reason"]), (&json!(1), &json!("timeout")));
    socket.acknowledge(&again, None).await;
    slack.says("ana", "C1", "two", None).unwrap();
    assert_eq!(socket.next().await["payload"]["event"]["text"], "two");
}

#[tokio::test]
async fn envelopes_go_to_the_sockets_in_turn() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let (mut one, mut two) = (Socket::ready(&slack).await, Socket::ready(&slack).await);
    slack.says("ana", "C1", "a", None).unwrap();
    slack.says("ana", "C1", "b", None).unwrap();
    let mut texts =
        [one.next().await, two.next().await].map(|envelope| envelope["payload"]["event"]["text"].to_string());
    texts.sort();
    assert_eq!(texts, ["\"a\"", "\"b\""]);
}

#[tokio::test]
async fn an_event_waits_for_a_socket() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    slack.says("ana", "C1", "early", None).unwrap();
    let mut socket = Socket::ready(&slack).await;
    assert_eq!(socket.next().await["payload"]["event"]["text"], "early");
}

#[tokio::test]
async fn an_eleventh_socket_is_turned_away() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let mut sockets = Vec::new();
    for _ in 0..10 {
        sockets.push(Socket::ready(&slack).await);
    }
    let mut last = Socket::open(&slack).await;
    assert_eq!(last.next().await["reason"], "too_many_websockets");
}

#[tokio::test]
async fn what_a_broken_socket_did_not_acknowledge_comes_on_the_next() {
    let slack = SandboxSlack::start(Options { answer_within: SOON, ..quick() }).await.unwrap();
    let mut socket = Socket::ready(&slack).await;
    slack.says("ana", "C1", "hi", None).unwrap();
    let first = socket.next().await;
    slack.inject(Fault::DropSockets);
    assert_eq!(socket.next_or_end().await, None);
    let mut socket = Socket::ready(&slack).await;
    let again = socket.next().await;
    assert_eq!(again["payload"]["event_id"], first["payload"]["event_id"]);
    assert_eq!(again["retry_reason"], "connection_failed");
}

#[tokio::test]
async fn envelopes_may_be_queued_behind_a_disconnect() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let mut socket = Socket::ready(&slack).await;
    slack.inject(Fault::Disconnect { reason: "refresh_requested".to_owned(), queued: 2 });
    slack.says("ana", "C1", "a", None).unwrap();
    slack.says("ana", "C1", "b", None).unwrap();
    slack.says("ana", "C1", "c", None).unwrap();
    assert_eq!(socket.next().await["reason"], "refresh_requested");
    for text in ["a", "b"] {
        let envelope = socket.next().await;
        assert_eq!(envelope["payload"]["event"]["text"], text);
        socket.acknowledge(&envelope, None).await;
    }
    let mut next = Socket::ready(&slack).await;
    assert_eq!(next.next().await["payload"]["event"]["text"], "c", "the old socket gets no more");
}

#[tokio::test]
async fn a_disconnect_closes_the_socket_after_a_moment() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let mut socket = Socket::ready(&slack).await;
    slack.inject(Fault::Disconnect { reason: "link_disabled".to_owned(), queued: 0 });
    assert_eq!(socket.next().await["reason"], "link_disabled");
    assert_eq!(socket.next_or_end().await, None);
}

#[tokio::test]
async fn a_socket_may_stay_silent_and_an_opening_unanswered() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    slack.inject(Fault::HangHello);
    let mut socket = Socket::open(&slack).await;
    assert!(timeout(Duration::from_millis(200), socket.0.next()).await.is_err(), "no hello");
    slack.inject(Fault::HangOpen);
    assert!(timeout(Duration::from_millis(200), address(&slack)).await.is_err(), "no address");
    Socket::ready(&slack).await;
}

#[tokio::test]
async fn the_server_pings() {
    let slack = SandboxSlack::start(Options { ping_every: Duration::from_millis(20), ..quick() }).await.unwrap();
    let mut socket = Socket::ready(&slack).await;
    let frame = timeout(SOON, socket.0.next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(frame, Message::Ping(_)), "{frame:?}");
}

#[tokio::test]
async fn a_submission_is_answered_in_its_acknowledgement() {
    let slack = SandboxSlack::start(Options { answer_within: SOON, ..quick() }).await.unwrap();
    let mut socket = Socket::ready(&slack).await;
    let ts = post(&slack, json!({ "channel": "C1", "text": "?", "blocks": buttons(&["Go"]) })).await;
    let own = socket.next().await;
    socket.acknowledge(&own, None).await;

    let clicking = {
        let slack = slack.clone();
        tokio::spawn(async move { slack.clicks("ana", "C1", &ts.as_str().into(), "Go").await })
    };
    let click = socket.next().await;
    assert_eq!((&click["type"], &click["accepts_response_payload"]), (&json!("interactive"), &json!(false)));
    socket.acknowledge(&click, None).await;
    clicking.await.unwrap().unwrap();
    let open = json!({ "trigger_id": click["payload"]["trigger_id"], "view": modal("Why?") });
    let view = super::call(&slack, "views.open", open).await["view"]["id"].as_str().unwrap().to_owned();

    let submit = |values: Value| {
        let (slack, view) = (slack.clone(), view.clone());
        tokio::spawn(async move { slack.submits("ana", &view, values).await })
    };
    let empty = submit(json!({})).await.unwrap();
    assert!(matches!(empty, Err(countersign_sandbox::slack::Error::Refused(_))), "the app is not even asked");

    let first = submit(json!({ "Reason": "x" }));
    let envelope = socket.next().await;
    assert_eq!(envelope["accepts_response_payload"], true);
    assert_eq!(envelope["payload"]["view"]["state"]["values"]["reason"]["text"]["value"], "x");
    let errors = json!({ "response_action": "errors", "errors": { "reason": "too short" } });
    socket.acknowledge(&envelope, Some(errors)).await;
    match first.await.unwrap() {
        Err(countersign_sandbox::slack::Error::Refused(errors)) => assert_eq!(errors["reason"], "too short"),
        other => panic!("{other:?}"),
    }

    let second = submit(json!({ "reason": { "text": { "type": "plain_text_input", "value": "longer" } } }));
    let envelope = socket.next().await;
    let update = json!({ "response_action": "update", "view": modal("Sure?") });
    socket.acknowledge(&envelope, Some(update)).await;
    assert!(!second.await.unwrap().unwrap(), "still open");
    slack.look(|world| assert_eq!(world.views[&view].title(), "Sure?"));

    let third = submit(json!({ "Reason": "yes" }));
    let envelope = socket.next().await;
    socket.acknowledge(&envelope, None).await;
    assert!(third.await.unwrap().unwrap(), "closed");
    slack.look(|world| assert!(!world.views[&view].open));
}

#[tokio::test]
async fn closing_a_modal_is_told_where_it_was_asked_for() {
    let slack = SandboxSlack::start(Options { answer_within: SOON, ..quick() }).await.unwrap();
    let mut socket = Socket::ready(&slack).await;
    let typing = {
        let slack = slack.clone();
        tokio::spawn(async move { slack.command("ana", "C1", "/countersign pending").await })
    };
    let command = socket.next().await;
    assert_eq!((&command["type"], &command["payload"]["command"]), (&json!("slash_commands"), &json!("/countersign")));
    socket.acknowledge(&command, Some(json!({ "text": "nothing" }))).await;
    assert_eq!(typing.await.unwrap().unwrap().unwrap()["text"], "nothing");
    let open = json!({ "trigger_id": command["payload"]["trigger_id"], "view": modal("Why?") });
    let view = super::call(&slack, "views.open", open).await["view"]["id"].as_str().unwrap().to_owned();
    slack.closes("ana", &view).unwrap();
    let closed = socket.next().await;
    assert_eq!((&closed["payload"]["type"], &closed["payload"]["view"]["id"]), (&json!("view_closed"), &json!(view)));
}

#[tokio::test]
async fn opening_the_home_tab_is_told() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let mut socket = Socket::ready(&slack).await;
    slack.opens_home("bo");
    let envelope = socket.next().await;
    let event = &envelope["payload"]["event"];
    assert_eq!(
        (&event["type"], &event["user"], &event["tab"]),
        (&json!("app_home_opened"), &json!("U2"), &json!("home"))
    );
}
