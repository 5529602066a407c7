//! Callbacks: what the receiver of a program gets, and when.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Bytes, http::HeaderMap, routing::post};
use countersign::api::{callback::signature, settings::Api};
use serde_json::{Value, json};

use super::{DIGEST, Programs, request};
use crate::support::bot::eventually;

/// The secret of the vectors.
const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";

/// A message that a receiver got: its id, its body, and whether its signature is right.
#[derive(Clone, Debug, PartialEq)]
struct Received {
    id: String,
    at: i64,
    body: Value,
}

/// The receiver of a program. It checks each signature.
#[derive(Clone, Default)]
struct Receiver {
    received: Arc<Mutex<Vec<Received>>>,
    /// The statuses of the next answers; then 204.
    answers: Arc<Mutex<VecDeque<u16>>>,
}

impl Receiver {
    /// Listens. Returns the receiver and its address.
    async fn start() -> (Self, String) {
        let receiver = Self::default();
        let ours = receiver.clone();
        let router = Router::new().route(
            "/hook",
            post(move |headers: HeaderMap, body: Bytes| async move {
                let header = |name: &str| headers[name].to_str().unwrap().to_owned();
                let (id, at): (_, i64) = (header("webhook-id"), header("webhook-timestamp").parse().unwrap());
                let text = std::str::from_utf8(&body).unwrap();
                let expected = signature(&SECRET.into(), &id, at, text).unwrap();
                assert!(header("webhook-signature").split(' ').any(|given| given == expected));
                ours.received.lock().unwrap().push(Received { id, at, body: serde_json::from_str(text).unwrap() });
                let status = ours.answers.lock().unwrap().pop_front().unwrap_or(204);
                let elsewhere = [("location", "/hook")];
                (axum::http::StatusCode::from_u16(status).unwrap(), elsewhere)
            }),
        );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (receiver, url)
    }

    fn answers(&self, statuses: impl IntoIterator<Item = u16>) {
        self.answers.lock().unwrap().extend(statuses);
    }

    fn all(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits for so many messages.
    async fn gets(&self, count: usize) -> Vec<Received> {
        eventually(&format!("callback {count}"), || self.all().len() >= count).await;
        self.all()
    }

    /// Returns the types and states of all messages.
    fn told(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        self.all().iter().map(|got| (text(&got.body["type"]), text(&got.body["data"]["state"]))).collect()
    }
}

fn told(told: &[(&str, &str)]) -> Vec<(String, String)> {
    told.iter().map(|(kind, state)| (format!("approval.{kind}"), (*state).to_owned())).collect()
}

/// Puts a callback into the settings.
fn callback(api: &mut Api, url: &str) {
    let callback = json!({ "url": url, "secret_env": "CI_HOOK_SECRET" });
    let mut callback: countersign::api::settings::Callback = serde_json::from_value(callback).unwrap();
    callback.secret = Some(SECRET.into());
    api.callbacks.insert("ci-hook".to_owned(), callback);
}

async fn with_receiver() -> (Programs, Receiver) {
    let (receiver, url) = Receiver::start().await;
    let programs = Programs::with(move |api| callback(api, &url)).await;
    (programs, receiver)
}

/// A request that names the callback.
fn asks_back() -> Value {
    let mut asked = request();
    asked["callback"] = json!("ci-hook");
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_called_back_about_each_state_in_order() {
    let (programs, receiver) = with_receiver().await;
    let (id, thread) = programs.asked("k1", &asks_back()).await;
    assert!(receiver.all().is_empty(), "a card is no news");
    thread.clicks("bo", "Approve").await;
    let decided = receiver.gets(1).await.remove(0);
    let seen = programs.looks(&id).await;
    assert_eq!(decided.body["data"], json!({ "id": id, "state": "approved", "revision": seen.body["revision"] }));
    assert_eq!(decided.id, format!("msg_{}_{}", &id[4..], seen.body["revision"]));
    assert_eq!(programs.claims(&id, DIGEST).await.status, 200);
    assert_eq!(programs.reports(&id, "succeeded").await.state(), "done");
    receiver.gets(2).await;
    programs.bot.settled().await;
    assert_eq!(receiver.told(), told(&[("decided", "approved"), ("ended", "done")]));
    let audit = programs.bot.store().audit(&thread_of(&programs).await).await.unwrap();
    let posted = audit.iter().filter(|entry| entry.event.detail["channel"] == "the callback ci-hook").count();
    assert_eq!(posted, 2, "the record tells it");
}

/// Returns the thread of the only request.
async fn thread_of(programs: &Programs) -> countersign::ids::ThreadId {
    let filter = countersign::graph::store::ActionFilter::all(&[], 1);
    programs.bot.store().actions(&filter).await.unwrap().pop().unwrap().thread
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ends_without_a_claim_are_told_too() {
    let (programs, receiver) = with_receiver().await;
    let (rejected, thread) = programs.asked("k1", &asks_back()).await;
    thread.clicks("bo", "Reject…").await;
    receiver.gets(1).await;
    let mut other = asks_back();
    other["change"]["target"] = json!("web/other");
    programs.asked("k2", &other).await;
    other["supersede"] = json!(true);
    let (newer, _) = programs.asked("k3", &other).await;
    receiver.gets(2).await;
    assert_eq!(programs.cancels(&newer).await.status, 200);
    receiver.gets(3).await;
    assert_eq!(receiver.told(), told(&[("decided", "rejected"), ("replaced", "superseded"), ("decided", "cancelled")]));
    assert_eq!(receiver.all()[0].body["data"]["id"], json!(rejected));
    let wrong = json!("https://ci.example/hook");
    other["callback"] = wrong;
    let refused = programs.asks("k4", &other).await;
    assert_eq!((refused.status, &refused.body["errors"][0]["pointer"]), (400, &json!("/callback")), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_fails_is_repeated_and_delays_no_card() {
    let (programs, receiver) = with_receiver().await;
    programs.bot.expects_complaints();
    receiver.answers([500, 302]);
    let (id, mut thread) = programs.asked("k1", &asks_back()).await;
    thread.skip();
    thread.press("bo", "Approve").await;
    receiver.gets(1).await;
    programs.bot.settled_but_for(1).await;
    assert_eq!(programs.claims(&id, DIGEST).await.status, 200);
    assert_eq!(programs.reports(&id, "failed").await.state(), "failed");
    programs.bot.settled_but_for(1).await;
    assert!(thread.heard().contains("failed"), "the card is up to date");
    assert_eq!(receiver.all().len(), 1, "what comes later waits for what is earlier");
    programs.bot.clock.advance(Duration::from_secs(7));
    let second = receiver.gets(2).await;
    assert_eq!((&second[0].id, &second[0].body), (&second[1].id, &second[1].body), "the same message");
    assert!(second[1].at > second[0].at, "with the time of the attempt");
    programs.bot.clock.advance(Duration::from_secs(37));
    receiver.gets(4).await;
    programs.bot.settled().await;
    let states: Vec<_> = receiver.told().into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, ["approved", "approved", "approved", "failed"], "a redirect is not followed");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_the_process_ends() {
    let (receiver, url) = Receiver::start().await;
    let gone = "http://127.0.0.1:9/hook";
    let mut programs = Programs::with(move |api| callback(api, gone)).await;
    programs.bot.expects_complaints();
    let (_, thread) = programs.asked("k1", &asks_back()).await;
    thread.press("bo", "Approve").await;
    programs.bot.settled_but_for(1).await;
    drop(thread);
    callback(programs.bot.config.sections.get_mut::<Api>(), &url);
    programs.bot.restart().await;
    assert!(receiver.all().is_empty());
    programs.bot.clock.advance(Duration::from_secs(60));
    receiver.gets(1).await;
    assert_eq!(receiver.told(), told(&[("decided", "approved")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_is_given_up_in_the_end_and_people_see_it() {
    let (programs, receiver) = with_receiver().await;
    programs.bot.expects_complaints();
    receiver.answers([500; 9]);
    let (id, mut thread) = programs.asked("k1", &asks_back()).await;
    assert_eq!(programs.cancels(&id).await.state(), "cancelled");
    for (tried, wait) in [6, 36, 144, 720, 4320, 12_960, 34_560, 103_680].into_iter().enumerate() {
        receiver.gets(tried + 1).await;
        programs.bot.settled_but_for(1).await;
        programs.bot.clock.advance(Duration::from_secs(wait));
    }
    receiver.gets(9).await;
    programs.bot.settled().await;
    let letters = programs.bot.store().dead_letters(10).await.unwrap();
    assert_eq!(letters.iter().map(|letter| &*letter.reason).collect::<Vec<_>>(), ["callback ci-hook: HTTP 500"]);
    assert!(thread.heard().contains("I couldn't tell a program of this change"), "with a button to send it again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_switches_its_callback_off() {
    let (programs, receiver) = with_receiver().await;
    programs.bot.expects_complaints();
    receiver.answers([410]);
    for (nth, target) in ["web/one", "web/two"].into_iter().enumerate() {
        let mut asked = asks_back();
        asked["change"]["target"] = json!(target);
        let (_, thread) = programs.asked(&format!("k{nth}"), &asked).await;
        thread.clicks("bo", "Approve").await;
        programs.bot.settled().await;
    }
    assert_eq!(receiver.all().len(), 1);
    assert_eq!(programs.bot.store().dead_letters(10).await.unwrap().len(), 2, "operators see both");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_may_name_the_callback() {
    let (receiver, url) = Receiver::start().await;
    let programs = Programs::with(move |api| {
        callback(api, &url);
        api.policies.get_mut("deploy-prod").unwrap().callback = Some("ci-hook".to_owned());
    })
    .await;
    let (_, thread) = programs.asked("k1", &request()).await;
    thread.clicks("bo", "Approve").await;
    receiver.gets(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_ends_before_its_card_is_told_once() {
    use countersign_sandbox::slack::faults::Fault;
    let (programs, receiver) = with_receiver().await;
    programs.bot.expects_complaints();
    let fails = Fault::Fail { method: "chat.postMessage".to_owned(), error: "fatal_error".to_owned(), calls: 3 };
    programs.bot.slack.inject(fails);
    let asked = programs.asks("k1", &asks_back()).await;
    assert_eq!(asked.state(), "proposed", "{asked:?}");
    assert_eq!(programs.cancels(&asked.id()).await.state(), "cancelled");
    let got = receiver.gets(1).await;
    assert_eq!(got[0].body["data"], json!({ "id": asked.id(), "state": "cancelled", "revision": 1 }));
    assert_eq!(receiver.told(), told(&[("decided", "cancelled")]));
}
