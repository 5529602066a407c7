//! The parsers, each behind the same door: bytes go in, and it is counted whether they were accepted.

use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use axum::{Router, body::Body, http::Request};
use countersign::{
    conversation::presentation::modals::form,
    experiments::upgrade::{
        answer::{Kind, understand, validation_problems},
        experiment::Experiment,
        participants::Assignment,
    },
    graph::action::{Field, Form, Input, Pick},
    model::{
        anthropic::answer::ApiAnswer, gemini::answer::ContentAnswer, openai::answer::CompletionAnswer, remote::Assembly,
    },
    services::http::Answer as HttpAnswer,
    slack::{
        Identity, Inbound, ingress_http,
        interaction::{self, Kind as Interacted},
        sink::{Received, Sink, SinkAnswer, SinkError},
        socket_intake::{FrameResult, Intake},
    },
};
use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::StatusCode;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use super::corpus;

const SECRET: &str = "shh";

/// A parser, given the bytes that it is to read.
type Parser = Box<dyn Fn(&[u8])>;

/// A parser with good inputs.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) seeds: Vec<Vec<u8>>,
    pub(crate) run: Parser,
    /// How many inputs it accepted so far.
    pub(crate) accepted: Box<dyn Fn() -> u64>,
}

/// Counts what gets through to the store.
#[derive(Default)]
struct Counter(AtomicU64);

#[async_trait]
impl Sink for Counter {
    async fn receive(&self, received: Received) -> Result<SinkAnswer, SinkError> {
        std::hint::black_box(received.inbound.dedup());
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(SinkAnswer::empty())
    }
}

/// A parser from a function that tells whether it accepted its input.
fn target(name: &'static str, seeds: Vec<Vec<u8>>, accepts: impl Fn(&[u8]) -> bool + 'static) -> Target {
    let accepted = Rc::new(AtomicU64::new(0));
    let counted = accepted.clone();
    let run = move |input: &[u8]| {
        if accepts(input) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    };
    Target { name, seeds, run: Box::new(run), accepted: Box::new(move || accepted.load(Ordering::Relaxed)) }
}

pub(crate) fn all() -> Vec<Target> {
    let mut events = corpus::events();
    events.push(corpus::challenge());
    vec![
        signature(),
        over_http("events by HTTP", "application/json", events, |body| body.to_vec()),
        over_http("interactions by HTTP", "application/x-www-form-urlencoded", corpus::interactions(), as_payload),
        over_http("commands by HTTP", "application/x-www-form-urlencoded", corpus::commands(), |body| body.to_vec()),
        socket_frames(),
        entered_values(),
        platform_answers(),
        target("validation answers of the platform", corpus::platform_answers(), |input| {
            !validation_problems(&String::from_utf8_lossy(input)).is_empty()
        }),
        model_answers(),
    ]
}

/// The input stands in place of the signature and its time.
fn signature() -> Target {
    let (router, sink, runtime) = ingress();
    let body = corpus::events().remove(0);
    let good = serde_json::to_vec(&json!([now(), sign(&body, &now())])).expect("it is JSON");
    let seeds = vec![good, br#"["1767225600","v0=00"]"#.to_vec(), br#"["",""]"#.to_vec(), b"v0=".to_vec()];
    target("signatures", seeds, move |input| {
        let pair = serde_json::from_slice::<(String, String)>(input);
        let (at, signature) = pair.unwrap_or_else(|_| (now(), String::from_utf8_lossy(input).into_owned()));
        let before = sink.0.load(Ordering::Relaxed);
        let request = Request::post("/slack/events").header("content-type", "application/json");
        let request = request.header("x-slack-request-timestamp", at).header("x-slack-signature", &signature);
        if let Ok(request) = request.body(Body::from(body.clone())) {
            runtime.block_on(router.clone().oneshot(request)).expect("a router always answers");
        }
        sink.0.load(Ordering::Relaxed) > before
    })
}

/// The input is the body of a request that Slack signed.
fn over_http(name: &'static str, content: &'static str, seeds: Vec<Vec<u8>>, wire: fn(&[u8]) -> Vec<u8>) -> Target {
    let (router, sink, runtime) = ingress();
    target(name, seeds, move |input| {
        let (body, at) = (wire(input), now());
        let before = sink.0.load(Ordering::Relaxed);
        let request = Request::post("/slack/interactions").header("content-type", content);
        let request = request.header("x-slack-signature", sign(&body, &at)).header("x-slack-request-timestamp", at);
        let request = request.body(Body::from(body)).expect("the headers are plain");
        runtime.block_on(router.clone().oneshot(request)).expect("a router always answers");
        sink.0.load(Ordering::Relaxed) > before
    })
}

fn as_payload(json: &[u8]) -> Vec<u8> {
    let encoded: String = url::form_urlencoded::byte_serialize(json).collect();
    [b"payload=", encoded.as_bytes()].concat()
}

fn socket_frames() -> Target {
    let sink = Arc::new(Counter::default());
    let (intake, runtime) = (Intake::new(sink, us()), runtime());
    target("Socket Mode frames", corpus::frames(), move |input| {
        let frame = String::from_utf8_lossy(input);
        runtime.block_on(intake.on_frame(&frame)) != FrameResult::Ignored
    })
}

/// The values of a modal, read with a form that has each kind of field.
fn entered_values() -> Target {
    let pick = |value: &str| Pick::of(value);
    let number = Input::Number { value: Some(50.0), least: Some(0.0), most: Some(100.0), fraction: true };
    let context =
        Input::One { picks: vec![pick("assign-prog"), pick("mathstream")], value: Some("assign-prog".into()) };
    let fields = [
        ("/name", Input::Line("Foo".into())),
        ("/tags", Input::Lines(vec!["pilot".into()])),
        ("/description", Input::Prose("An experiment".into())),
        ("/conditions/0/weight", number),
        ("/context", context),
        ("/group", Input::Flag(Some(false))),
    ];
    let form = Form { fields: fields.into_iter().map(|(place, input)| Field::new(place, place, input)).collect() };
    let us = us();
    let parameters = json!({ "name": "Foo", "conditions": [{ "weight": 50 }] });
    let seeds = vec![serde_json::to_vec(&corpus::submission()).expect("it is JSON")];
    target("values of a modal", seeds, move |input| {
        let Ok(payload) = serde_json::from_slice::<Value>(input) else { return false };
        let Ok(Inbound::Interaction(sent)) = interaction::read(payload.clone().into(), &us) else { return false };
        let Interacted::ViewSubmission { view } = sent.kind else { return false };
        let entered = form::read(&form, &view);
        let filled = form.fill(&parameters, &entered);
        std::hint::black_box(form.changed(&entered).count());
        filled.is_ok()
    })
}

/// Each body with each kind of status, read as each shape that the client expects.
fn platform_answers() -> Target {
    target("answers of the platform", corpus::platform_answers(), |input| {
        let answer = |status| HttpAnswer { status, body: input.to_vec(), request_id: None, retry_after: None };
        for status in
            [StatusCode::BAD_REQUEST, StatusCode::INTERNAL_SERVER_ERROR, StatusCode::FOUND, StatusCode::CONFLICT]
        {
            understand::<Value>(Kind::Write, answer(status)).expect_err("it is no success");
        }
        understand::<Value>(Kind::Read, answer(StatusCode::OK)).ok();
        understand::<Vec<Assignment>>(Kind::Write, answer(StatusCode::OK)).ok();
        let experiment = understand::<Experiment>(Kind::Read, answer(StatusCode::OK));
        experiment.is_ok_and(|experiment| {
            std::hint::black_box((
                experiment.raw().ok(),
                experiment.view.context().len(),
                experiment.view.is_factorial(),
                experiment.view.condition("x").is_some(),
            ));
            true
        })
    })
}

/// The input is a list of events, or a stream as it is on the wire.
fn model_answers() -> Target {
    let runtime = runtime();
    target("answers of a language model", corpus::model_answers(), move |input| {
        let wire = match serde_json::from_slice::<Vec<Value>>(input) {
            Ok(events) => {
                events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect::<String>().into_bytes()
            }
            Err(_) => input.to_vec(),
        };
        runtime.block_on(async {
            // Short pieces are for one of them: a long line is read again with each piece.
            let others =
                [heard::<CompletionAnswer>(wire.clone(), 8192).await, heard::<ContentAnswer>(wire.clone(), 8192).await];
            heard::<ApiAnswer>(wire, 97).await || others.contains(&true)
        })
    })
}

async fn heard<A: Assembly>(wire: Vec<u8>, piece: usize) -> bool {
    let chunks = futures_util::stream::iter(wire.chunks(piece).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())));
    let mut events = std::pin::pin!(chunks.eventsource());
    let mut answer = A::default();
    while let Some(Ok(event)) = events.next().await {
        match answer.take_event(&event.data) {
            Ok(true) => return answer.finish().is_ok(),
            Ok(false) => {}
            Err(_) => return false,
        }
    }
    answer.is_complete() && answer.finish().is_ok()
}

fn ingress() -> (Router, Arc<Counter>, Runtime) {
    let sink = Arc::new(Counter::default());
    (ingress_http::router(&SecretString::from(SECRET), us(), sink.clone()), sink, runtime())
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime needs nothing from outside")
}

fn us() -> Identity {
    Identity::of("U0BOT").within(Some("T1".into()), None)
}

/// The machine's clock, by which the signature's age is checked.
#[expect(clippy::disallowed_methods, reason = "the library that checks signatures asks no other clock")]
fn now() -> String {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs().to_string()
}

fn sign(body: &[u8], at: &str) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).expect("any key will do");
    mac.update(format!("v0:{at}:").as_bytes());
    mac.update(body);
    format!("v0={}", hex::encode(mac.finalize().into_bytes()))
}
