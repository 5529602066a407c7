//! Both ways in, against a workspace that redelivers, disconnects and falls silent.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use countersign::{
    clock::SystemClock,
    conversation::presentation::render,
    ids::DedupKey,
    slack::{
        Identity, Inbound,
        client::{Error, Respond},
        ingress_http,
        ingress_socket::{Settings, SocketHealth, SocketIngress},
        interaction::Kind,
        refusal::Refusal,
        sink::{Received, Retry, Sink, SinkAnswer, SinkError, Transport},
    },
};
use countersign_sandbox::slack::{Mode, Options, SandboxSlack, faults::Fault};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;

const SOON: Duration = Duration::from_secs(10);

/// Stores what it is told to store.
#[derive(Default)]
struct Notebook {
    received: Mutex<Vec<Received>>,
    refuse_next: Mutex<usize>,
    answer: Mutex<Option<Value>>,
    /// If there is one, each delivery waits for it after it was noted.
    gate: Option<Notify>,
}

#[async_trait]
impl Sink for Notebook {
    async fn receive(&self, received: Received) -> Result<SinkAnswer, SinkError> {
        self.received.lock().unwrap().push(received);
        if let Some(gate) = &self.gate {
            gate.notified().await;
        }
        let mut refuse = self.refuse_next.lock().unwrap();
        if *refuse > 0 {
            *refuse -= 1;
            return Err(SinkError("disk full".into()));
        }
        Ok(SinkAnswer { payload: self.answer.lock().unwrap().clone() })
    }
}

impl Notebook {
    fn all(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    fn texts(&self) -> Vec<String> {
        let texts = self.all().into_iter().filter_map(|received| match received.inbound {
            Inbound::Message(message) => Some(message.text),
            _ => None,
        });
        texts.collect()
    }
}

/// A workspace, and the way in under test.
struct Given {
    slack: SandboxSlack,
    notebook: Arc<Notebook>,
    health: tokio::sync::watch::Receiver<SocketHealth>,
    stop: CancellationToken,
    running: JoinHandle<Result<(), Refusal>>,
}

fn options() -> Options {
    let soon = Duration::from_millis(50);
    Options { redeliver_after: vec![Duration::ZERO, soon, soon], ..Options::default() }
}

fn us(slack: &SandboxSlack) -> Identity {
    Identity::of(slack.look(|world| world.app.user.clone()))
}

fn settings(slack: &SandboxSlack) -> Settings {
    Settings {
        connections: 2,
        hello_within: Duration::from_millis(400),
        backoff: Duration::from_millis(20),
        backoff_max: Duration::from_millis(200),
        ping_every: Duration::from_secs(1),
        ..Settings::new(slack.api_url(), SecretString::from(slack.app_token()))
    }
}

async fn given(faults: &[Fault], notebook: Notebook) -> Given {
    let slack = SandboxSlack::start(options()).await.unwrap();
    faults.iter().for_each(|fault| slack.inject(fault.clone()));
    let notebook = Arc::new(notebook);
    let ingress = SocketIngress::new(settings(&slack), us(&slack), notebook.clone(), Arc::new(SystemClock)).unwrap();
    let (health, stop) = (ingress.health(), CancellationToken::new());
    let running = tokio::spawn(ingress.run(stop.clone()));
    Given { slack, notebook, health, stop, running }
}

impl Given {
    async fn is(&self, what: &str, fact: impl Fn(&Self) -> bool) {
        let seen =
            || format!("{:?}, {} sockets, {:#?}", self.health.borrow(), self.slack.sockets(), self.notebook.all());
        let found = self.slack.wait_for(what, SOON, |_| fact(self).then_some(())).await;
        assert!(found.is_ok(), "{what}: {}", seen());
    }

    async fn connected(&self) {
        self.is("two sockets", |given| given.slack.sockets() == 2).await;
        self.is("connected", |given| *given.health.borrow() == SocketHealth::Connected).await;
    }

    fn acknowledged(&self, kind: &str) -> usize {
        self.slack.ledger().deliveries(kind).iter().filter(|a| a.acknowledged_after_ms.is_some()).count()
    }

    async fn finish(self) {
        self.stop.cancel();
        tokio::time::timeout(SOON, self.running).await.expect("stops").unwrap().unwrap();
        self.slack.stop().await;
    }
}

#[tokio::test]
async fn what_is_said_is_stored_and_acknowledged() {
    let given = given(&[], Notebook::default()).await;
    given.connected().await;
    given.slack.says("ana", "general", "@countersign start <Math Hints>", None).unwrap();
    given.is("both events acknowledged", |given| given.acknowledged("event") >= 2).await;
    let all = given.notebook.all();
    assert_eq!(given.notebook.texts(), ["start <Math Hints>", "start <Math Hints>"], "a mention, and a message");
    let keys: Vec<_> =
        all.iter().map(|received| received.inbound.dedup().last().cloned()).collect::<Vec<Option<DedupKey>>>();
    assert_eq!(keys[0], keys[1], "which are one");
    assert!(all.iter().all(|received| received.transport == Transport::Socket && received.retry.is_none()));
    given.finish().await;
}

#[tokio::test]
async fn what_is_not_stored_comes_again() {
    let given = given(&[], Notebook { refuse_next: Mutex::new(1), ..Notebook::default() }).await;
    given.connected().await;
    given.slack.says("ana", "@countersign", "hello", None).unwrap();
    // Slack waits its three seconds for an acknowledgement that does not come.
    given.is("acknowledged", |given| given.acknowledged("event") == 1).await;
    let all = given.notebook.all();
    assert_eq!(all[0].inbound, all[1].inbound);
    assert_eq!(all[1].retry, Some(Retry { attempt: 1, reason: "timeout".into() }));
    given.finish().await;
}

#[tokio::test]
async fn a_connection_that_hangs_is_built_anew() {
    for fault in [Fault::HangOpen, Fault::HangHello] {
        let given = given(&[fault.clone(), fault], Notebook::default()).await;
        given.connected().await;
        given.finish().await;
    }
}

#[tokio::test]
async fn what_is_queued_behind_a_disconnect_is_read() {
    let given = given(&[], Notebook::default()).await;
    given.connected().await;
    given.slack.inject(Fault::Disconnect { reason: "refresh_requested".into(), queued: 5 });
    for n in 0..5 {
        given.slack.says("ana", "@countersign", &format!("message {n}"), None).unwrap();
    }
    given.is("all acknowledged", |given| given.acknowledged("event") == 5).await;
    assert_eq!(given.slack.ledger().deliveries("event").len(), 5, "none had to be delivered again");
    given.is("a successor", |given| given.slack.sockets() == 3).await;
    given.slack.says("ana", "@countersign", "after", None).unwrap();
    given.is("it works", |given| given.notebook.texts().contains(&"after".to_owned())).await;
    given.finish().await;
}

#[tokio::test]
async fn every_kind_of_break_is_mended() {
    let given = given(&[], Notebook::default()).await;
    for reason in ["warning", "refresh_requested", "too_many_websockets", "broken"] {
        given.is(reason, |given| given.slack.sockets() >= 2).await;
        given.slack.inject(match reason {
            "broken" => Fault::DropSockets,
            reason => Fault::Disconnect { reason: reason.to_owned(), queued: 0 },
        });
        given.slack.says("ana", "@countersign", reason, None).unwrap();
        given.is(reason, |given| given.notebook.texts().contains(&reason.to_owned())).await;
    }
    given.finish().await;
}

#[tokio::test]
async fn what_does_not_work_any_more_is_said_and_tried_again_rarely() {
    let given = given(&[], Notebook::default()).await;
    for error in ["invalid_auth", "account_inactive", "link_disabled"] {
        given.connected().await;
        let mut health = given.health.clone();
        if error == "link_disabled" {
            given.slack.inject(Fault::Disconnect { reason: error.into(), queued: 0 });
        } else {
            given.slack.inject(refuses(error, 6));
            given.slack.inject(Fault::DropSockets);
        }
        let fatal = health.wait_for(|health| *health == SocketHealth::Fatal(Refusal::new(error)));
        tokio::time::timeout(SOON, fatal).await.unwrap().unwrap();
    }
    given.finish().await;
}

#[tokio::test]
async fn what_cannot_work_from_the_start_ends_it() {
    for error in ["invalid_auth", "not_allowed_token_type", "missing_scope"] {
        let given = given(&[refuses(error, 2)], Notebook::default()).await;
        let ended = tokio::time::timeout(SOON, given.running).await.expect("ends by itself").unwrap();
        assert_eq!(ended, Err(Refusal::new(error)));
        given.slack.stop().await;
    }
}

#[tokio::test]
async fn what_may_pass_is_waited_for_from_the_start() {
    let given = given(&[refuses("internal_error", 4)], Notebook::default()).await;
    given.connected().await;
    given.finish().await;
}

/// So many attempts to open a connection end in this error.
fn refuses(error: &str, calls: u32) -> Fault {
    Fault::Fail { method: "apps.connections.open".into(), error: error.into(), calls }
}

#[tokio::test]
async fn stopping_acknowledges_what_is_in_hand_and_takes_nothing_more() {
    let given = given(&[], Notebook { gate: Some(Notify::new()), ..Notebook::default() }).await;
    given.connected().await;
    given.slack.says("ana", "@countersign", "in hand", None).unwrap();
    given.is("in hand", |given| given.notebook.texts() == ["in hand"]).await;
    given.stop.cancel();
    given.slack.says("ana", "@countersign", "too late", None).unwrap();
    given.notebook.gate.as_ref().unwrap().notify_one();
    given.is("acknowledged", |given| given.acknowledged("event") == 1).await;
    given.is("closed", |given| given.slack.sockets() == 0).await;
    assert_eq!(given.notebook.texts(), ["in hand"]);
    given.finish().await;
}

#[tokio::test]
async fn a_command_is_answered_at_once() {
    let given =
        given(&[], Notebook { answer: Mutex::new(Some(json!({ "text": "all well" }))), ..Notebook::default() }).await;
    given.connected().await;
    let answer = given.slack.command("ana", "general", "/upgrade status all").await.unwrap();
    assert_eq!(answer, Some(json!({ "text": "all well" })));
    let Inbound::Command(command) = &given.notebook.all()[0].inbound else { panic!() };
    assert_eq!((command.command.as_str(), command.text.as_str()), ("/upgrade", "status all"));
    given.finish().await;
}

#[tokio::test]
async fn a_click_without_a_team_is_stored_too() {
    let given = given(&[Fault::TeamNull { on: true }], Notebook::default()).await;
    given.connected().await;
    let client = super::slack_client::client(&given.slack);
    let (channel, card) = super::slack_client::a_card(&given.slack);
    let ts = client.post_message(&channel, None, &card, &"n1".into()).await.unwrap();
    given.slack.clicks("bo", "general", &ts, "Start experiment").await.unwrap();
    let all = given.notebook.all();
    let Some(Inbound::Interaction(click)) = all.iter().map(|r| &r.inbound).find(|i| i.kind() == "interaction") else {
        panic!("{all:#?}")
    };
    let Kind::BlockActions { actions, .. } = &click.kind else { panic!() };
    assert_eq!(actions[0].action_id, "approve");
    assert_eq!((click.channel.as_ref(), click.message_ts.as_ref()), (Some(&channel), Some(&ts)));
    given.finish().await;
}

#[tokio::test]
async fn a_modal_is_opened_objected_to_and_sent() {
    let given = given(&[], Notebook::default()).await;
    given.connected().await;
    let client = super::slack_client::client(&given.slack);
    given.slack.command("ana", "general", "/countersign edit").await.unwrap();
    let Inbound::Command(command) = given.notebook.all()[0].inbound.clone() else { panic!() };
    let input = json!({ "type": "input", "block_id": "name", "label": { "type": "plain_text", "text": "Name" },
        "element": { "type": "plain_text_input", "action_id": "text" } });
    let title = |text: &str| json!({ "type": "plain_text", "text": text });
    let modal = json!({ "type": "modal", "callback_id": "edit", "private_metadata": "0a11", "title": title("Edit"),
        "submit": title("Save"), "blocks": [input] });
    let view = client.open_view(command.trigger_id.as_deref().unwrap(), &modal).await.unwrap();
    client.update_view(&view, None, &modal).await.unwrap();
    let used = client.open_view(command.trigger_id.as_deref().unwrap(), &modal).await;
    assert!(matches!(used, Err(Error::Gone { .. })), "{used:?}");

    *given.notebook.answer.lock().unwrap() =
        Some(json!({ "response_action": "errors", "errors": { "name": "is taken" } }));
    let refused = given.slack.submits("ana", &view, json!({ "name": "Math Hints" })).await;
    assert!(format!("{refused:?}").contains("is taken"), "{refused:?}");
    *given.notebook.answer.lock().unwrap() = None;
    assert!(given.slack.submits("ana", &view, json!({ "name": "Math Hints 2" })).await.unwrap(), "closed");

    let all = given.notebook.all();
    let sent: Vec<_> = all.iter().filter(|received| received.inbound.kind() == "interaction").collect();
    assert_ne!(sent[0].inbound.dedup(), sent[1].inbound.dedup());
    let Inbound::Interaction(sent) = &sent[1].inbound else { panic!() };
    let Kind::ViewSubmission { view } = &sent.kind else { panic!() };
    assert_eq!((view.callback_id.as_str(), view.private_metadata.as_str()), ("edit", "0a11"));
    assert_eq!(view.values["name"], ["Math Hints 2"]);
    given.finish().await;
}

#[tokio::test]
async fn a_click_is_answered_through_its_own_address() {
    let given = given(&[], Notebook::default()).await;
    given.connected().await;
    let client = super::slack_client::client(&given.slack);
    let (channel, card) = super::slack_client::a_card(&given.slack);
    let ts = client.post_message(&channel, None, &card, &"n1".into()).await.unwrap();
    given.slack.clicks("bo", "general", &ts, "Start experiment").await.unwrap();
    let address = given.notebook.all().into_iter().find_map(|received| match received.inbound {
        Inbound::Interaction(click) => click.response_url,
        _ => None,
    });
    let address = address.unwrap();
    client.respond(&address, Respond::Privately, &render::status("Only you see this")).await.unwrap();
    assert!(given.slack.ephemerals("bo")[0].text.contains("Only you"));
    client.respond(&address, Respond::ReplaceOriginal, &render::status("Decided")).await.unwrap();
    assert_eq!(given.slack.messages("general").last().unwrap().text, "Decided");
    client.respond(&address, Respond::DeleteOriginal, &render::status("")).await.unwrap();
    assert!(given.slack.messages("general").is_empty());
    given.finish().await;
}

#[tokio::test]
async fn the_home_tab_is_drawn_when_it_is_opened() {
    let given = given(&[], Notebook::default()).await;
    given.connected().await;
    given.slack.opens_home("ana");
    given.is("told", |given| !given.notebook.all().is_empty()).await;
    let Inbound::HomeOpened(home) = given.notebook.all()[0].inbound.clone() else { panic!() };
    let view = json!({ "type": "home", "blocks": render::status("Nothing waits for you.").blocks });
    super::slack_client::client(&given.slack).publish_home(&home.user, &view).await.unwrap();
    given.finish().await;
}

#[tokio::test]
async fn over_http_it_is_the_same() {
    let mode = Mode::Http { events_url: None, signing_secret: "shh".into() };
    let slack = SandboxSlack::start(Options { mode, ..options() }).await.unwrap();
    let notebook = Arc::new(Notebook { refuse_next: Mutex::new(1), ..Notebook::default() });
    let router = ingress_http::router(&SecretString::from("shh"), us(&slack), notebook.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    slack.point_at(&format!("http://{}", listener.local_addr().unwrap()));
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    assert!(slack.verifies_app().await);

    slack.says("ana", "@countersign", "hello", None).unwrap();
    slack.wait_for("a second attempt", SOON, |_| (notebook.texts().len() == 2).then_some(())).await.unwrap();
    assert_eq!(notebook.all()[1].retry.as_ref().map(|retry| retry.attempt), Some(1));
    assert_eq!(slack.command("ana", "general", "/upgrade help").await.unwrap(), None);
    assert!(matches!(notebook.all()[2].inbound, Inbound::Command(_)));
    slack.stop().await;
    serving.abort();
}
