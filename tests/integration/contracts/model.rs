//! What the client of the Messages API alone does, against the stand-in, over a real connection. What it shares with the
//! clients of other providers is in [`model_providers`](super::model_providers).

use std::time::Duration;

use countersign::model::{
    AnswerSchema, Block, Error, KnownBlock, Message, Model as _, Purpose, Request, Response, Role, ToolChoice,
    ToolSpec,
    anthropic::{AnthropicModel, Settings},
};
use countersign_sandbox::model::SandboxModel;
use serde_json::{Map, Value, json};

/// Long enough for a busy machine; the waits between attempts follow from it, 0.2 s and 0.4 s at the most.
const PATIENT: Duration = Duration::from_secs(10);

pub(crate) async fn sandbox() -> SandboxModel {
    SandboxModel::start(0).await.unwrap()
}

pub(crate) fn settings(sandbox: &SandboxModel) -> Settings {
    Settings {
        base_url: sandbox.url().parse().unwrap(),
        api_key: sandbox.api_key().into(),
        model: "claude-sandbox".to_owned(),
        timeout: PATIENT,
        attempts: 3,
        extra: Map::new(),
        price: None,
    }
}

fn client(sandbox: &SandboxModel) -> AnthropicModel {
    AnthropicModel::new(settings(sandbox)).unwrap()
}

/// A question about the sky.
pub(crate) fn question() -> Request {
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: "Looks at something.".to_owned(),
        input_schema: json!({ "type": "object", "properties": { "at": { "type": "string" } } }),
        strict: false,
    };
    Request {
        purpose: Purpose::Gather,
        instructions: "Be brief.".into(),
        tools: [tool("look"), tool("listen")].into(),
        history: vec![Message::text(Role::User, "@ana: hello"), Message::text(Role::Assistant, "Hello!")],
        situation: json!({ "said": "How is the sky?", "by": "ana" }),
        exchange: Vec::new(),
        tool_choice: ToolChoice::Auto,
        answer_schema: None,
        max_tokens: 200,
        payer: Default::default(),
        words: None,
    }
}

/// The question after the answer, each call answered.
pub(crate) fn next(request: &Request, response: Response) -> Request {
    let result = |(id, _, _): (&str, &str, &Value)| {
        KnownBlock::ToolResult { tool_use_id: id.to_owned(), content: "blue".to_owned(), is_error: false }.into()
    };
    let results = response.tool_calls().map(result).collect();
    let mut request = request.clone();
    request.exchange.push(Message { role: Role::Assistant, content: response.content });
    request.exchange.push(Message { role: Role::User, content: results });
    request
}

pub(crate) fn statuses(sandbox: &SandboxModel) -> Vec<u16> {
    sandbox.requests().iter().map(|request| request.status).collect()
}

/// What every test expects at its end.
pub(crate) fn finish(sandbox: &SandboxModel) {
    assert_eq!(sandbox.violations(), Vec::<String>::new());
    assert_eq!(sandbox.unscripted(), 0, "it was asked more often than expected");
    assert_eq!(sandbox.unasked(), 0, "it was asked less often than expected");
}

#[tokio::test]
async fn blocks_of_unknown_kinds_go_back_unchanged() {
    let sandbox = sandbox().await;
    let odd = json!({ "type": "musing", "depth": [3, { "of": null }], "text": "<hm>" });
    let call = json!({ "type": "tool_use", "name": "look", "input": { "at": "the sky" } });
    sandbox.will_answer(vec![odd.clone(), call], "tool_use");
    sandbox.will_say("Blue.");
    let (model, question) = (client(&sandbox), question());

    let response = model.respond(&question).await.unwrap();
    assert_eq!(response.content[0], Block::Other(odd.clone()));
    model.respond(&next(&question, response)).await.unwrap();
    assert_eq!(sandbox.requests()[1].body["messages"][3]["content"][0], odd);
    finish(&sandbox);
}

#[tokio::test]
async fn a_wait_beyond_the_budget_is_not_begun() {
    let sandbox = sandbox().await;
    sandbox.fails_next(429, Some(3600.0));
    let error = client(&sandbox).respond(&question()).await.unwrap_err();
    assert!(matches!(&error, Error::Unavailable { reason } if reason.starts_with("429")), "{error:?}");
    assert_eq!(statuses(&sandbox), [429]);
    finish(&sandbox);
}

#[tokio::test]
async fn an_error_inside_an_answer_that_would_come_again_is_final() {
    let sandbox = sandbox().await;
    sandbox.will_say("Blue.");
    sandbox.breaks_off_next("invalid_request_error");
    let error = client(&sandbox).respond(&question()).await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    assert_eq!(sandbox.requests().len(), 1);
}

#[tokio::test]
async fn silence_is_noticed_before_the_time_is_up() {
    let sandbox = sandbox().await;
    sandbox.will_say("Blue.");
    sandbox.stalls_next();
    let settings = Settings { timeout: Duration::from_secs(2), attempts: 1, ..settings(&sandbox) };
    let error = AnthropicModel::new(settings).unwrap().respond(&question()).await.unwrap_err();
    assert_eq!(error.to_string(), "the language model is not available: silent for 500.0ms");
}

#[tokio::test]
async fn nobody_there_is_an_outage() {
    let sandbox = sandbox().await;
    let settings = settings(&sandbox);
    sandbox.stop().await;
    let error = AnthropicModel::new(settings).unwrap().respond(&question()).await.unwrap_err();
    assert!(matches!(&error, Error::Unavailable { reason } if reason.contains("refused")), "{error:?}");
}

/// Everything up to the last mark, as bytes.
fn marked_prefix(body: &Value) -> String {
    let mut messages = body["messages"].as_array().unwrap().clone();
    let is_marked = |message: &Value| {
        message["content"].as_array().unwrap().iter().any(|block| block.get("cache_control").is_some())
    };
    let last = messages.iter().rposition(is_marked).unwrap();
    messages.truncate(last + 1);
    json!([body["tools"], body["system"], messages]).to_string()
}

#[tokio::test]
async fn what_comes_before_the_situation_is_the_same_bytes() {
    let sandbox = sandbox().await;
    sandbox.will_say("Blue.");
    sandbox.will_say("Grey.");
    let (model, mut request) = (client(&sandbox), question());

    model.respond(&request).await.unwrap();
    request.situation = json!({ "said": "And now?", "by": "bo", "earlier": ["How is the sky?"] });
    model.respond(&request).await.unwrap();

    let bodies: Vec<_> = sandbox.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(marked_prefix(&bodies[0]), marked_prefix(&bodies[1]));
    assert_ne!(bodies[0], bodies[1]);
    finish(&sandbox);
}

/// A model without structured output gets a tool; one that cannot be forced to call it may say something first.
#[tokio::test]
async fn an_introduction_is_no_part_of_an_answer_in_json() {
    let sandbox = sandbox().await;
    sandbox.refuses("output_config.format");
    sandbox.refuses("tool_choice");
    let call = json!({ "type": "tool_use", "name": "sky", "input": { "color": "blue" } });
    sandbox.will_answer(vec![json!({ "type": "text", "text": "I take the answer." }), call], "tool_use");
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let answer_schema = Some(AnswerSchema { name: "sky".to_owned(), schema });
    let request = Request { answer_schema, tools: [].into(), ..question() };
    let response = client(&sandbox).respond(&request).await.unwrap();
    assert_eq!(response.json::<Value>().unwrap(), json!({ "color": "blue" }));
    assert_eq!(statuses(&sandbox), [400, 400, 200]);
    let sent = &sandbox.requests()[2].body;
    assert_eq!((&sent["tools"][0]["name"], &sent["output_config"]), (&json!("sky"), &Value::Null));
}
