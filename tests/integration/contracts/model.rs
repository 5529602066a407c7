//! The client of the Messages API against the stand-in, over a real connection.

use std::time::{Duration, Instant};

use countersign::model::{
    AnswerSchema, Block, Error, KnownBlock, Message, Model as _, Purpose, Request, Response, Role, ToolChoice,
    ToolSpec,
    anthropic::{AnthropicModel, Settings},
};
use countersign_sandbox::model::SandboxModel;
use serde_json::{Value, json};

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
async fn words_arrive_whole() {
    let sandbox = sandbox().await;
    let words = "Blue — für die nächsten Stunden ☀️. ".repeat(40);
    sandbox.will_say(words.trim());
    let response = client(&sandbox).respond(&question()).await.unwrap();
    assert_eq!(response.text(), words.trim());
    assert_eq!(response.stop_reason, "end_turn");
    assert_eq!(response.usage.model, "claude-sandbox");
    finish(&sandbox);
}

#[tokio::test]
async fn several_calls_in_one_answer_are_answered_in_one_message() {
    let sandbox = sandbox().await;
    let arguments = json!({ "at": "the „north“ \\ sky\n", "times": [1, 2, { "more": null }] });
    sandbox.will_call_all([("look", arguments.clone()), ("listen", json!({})), ("sing", json!({}))]);
    sandbox.will_say("Blue.");
    let (model, question) = (client(&sandbox), question());

    let response = model.respond(&question).await.unwrap();
    let calls: Vec<_> = response.tool_calls().map(|(_, name, input)| (name, input.clone())).collect();
    assert_eq!(calls, [("look", arguments), ("listen", json!({})), ("sing", json!({}))]);
    assert_eq!(response.stop_reason, "tool_use");

    let response = model.respond(&next(&question, response)).await.unwrap();
    assert_eq!(response.text(), "Blue.");
    let messages = sandbox.requests()[1].body["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 5);
    assert_eq!(messages[4]["content"].as_array().unwrap().len(), 3);
    finish(&sandbox);
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
async fn a_busy_model_is_asked_again_and_not_too_early() {
    let sandbox = sandbox().await;
    sandbox.fails_next(429, Some(0.9));
    sandbox.fails_next(529, None);
    sandbox.will_say("Blue.");
    let begun = Instant::now();
    let response = client(&sandbox).respond(&question()).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(900), "only {:?}", begun.elapsed());
    assert_eq!(response.text(), "Blue.");
    assert_eq!(statuses(&sandbox), [429, 529, 200]);
    finish(&sandbox);
}

#[tokio::test]
async fn attempts_end() {
    let sandbox = sandbox().await;
    for status in [408, 409, 500] {
        sandbox.fails_next(status, None);
    }
    let error = client(&sandbox).respond(&question()).await.unwrap_err();
    assert!(matches!(&error, Error::Unavailable { reason } if reason.starts_with("500 api_error")), "{error:?}");
    assert_eq!(statuses(&sandbox), [408, 409, 500]);
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
async fn an_answer_that_breaks_off_is_asked_for_again() {
    let sandbox = sandbox().await;
    sandbox.cuts_next();
    sandbox.breaks_off_next("overloaded_error");
    sandbox.will_call("look", json!({ "at": "the sky" }));
    let response = client(&sandbox).respond(&question()).await.unwrap();
    assert_eq!(response.tool_calls().count(), 1, "the pieces of the broken answers are gone");
    assert_eq!(sandbox.requests().len(), 3);
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
async fn a_stalled_answer_is_asked_for_again() {
    let sandbox = sandbox().await;
    sandbox.will_say("Blue.");
    sandbox.stalls_next();
    let settings = Settings { timeout: Duration::from_secs(4), ..settings(&sandbox) };
    let response = AnthropicModel::new(settings).unwrap().respond(&question()).await.unwrap();
    assert_eq!(response.text(), "Blue.");
    assert_eq!(sandbox.requests().len(), 2);
    finish(&sandbox);
}

#[tokio::test]
async fn nobody_there_is_an_outage() {
    let sandbox = sandbox().await;
    let settings = settings(&sandbox);
    sandbox.stop().await;
    let error = AnthropicModel::new(settings).unwrap().respond(&question()).await.unwrap_err();
    assert!(matches!(&error, Error::Unavailable { reason } if reason.contains("refused")), "{error:?}");
}

#[tokio::test]
async fn a_wrong_key_is_told_once_and_never_shown() {
    let sandbox = sandbox().await;
    let settings = Settings { api_key: "sk-very-secret".into(), ..settings(&sandbox) };
    let shown = format!("{settings:?}");
    let model = AnthropicModel::new(settings).unwrap();
    let error = model.respond(&question()).await.unwrap_err();
    assert!(matches!(error, Error::Auth), "{error:?}");
    assert_eq!(statuses(&sandbox), [401]);
    for shown in [shown, format!("{model:?}"), format!("{error:?} {error}")] {
        assert!(!shown.contains("very-secret"), "{shown}");
    }
    let unsendable = Settings { api_key: "two\nlines".into(), ..self::settings(&sandbox) };
    assert!(matches!(AnthropicModel::new(unsendable), Err(Error::Auth)));
}

#[tokio::test]
async fn what_the_api_refuses_is_told_in_its_words() {
    let sandbox = sandbox().await;
    let unsayable = ToolSpec { name: "two words".to_owned(), ..question().tools[1].clone() };
    let question = Request { tools: [question().tools[0].clone(), unsayable].into(), ..question() };
    let error = client(&sandbox).respond(&question).await.unwrap_err();
    insta::assert_snapshot!(error, @"the language model refused the request: 400 invalid_request_error tools.1.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$' (req_sandbox_0001)");
    assert_eq!(sandbox.violations().len(), 1);
    assert_eq!(statuses(&sandbox), [400], "it would be refused again");
}

#[tokio::test]
async fn a_broken_exchange_is_not_sent() {
    let sandbox = sandbox().await;
    sandbox.will_call("look", json!({}));
    let (model, question) = (client(&sandbox), question());
    let response = model.respond(&question).await.unwrap();
    let mut broken = next(&question, response);
    broken.exchange.pop();
    broken.exchange.push(Message::text(Role::User, "never mind"));
    let error = model.respond(&broken).await.unwrap_err();
    assert!(matches!(&error, Error::Refused { reason } if reason.contains("has no result")), "{error:?}");
    assert_eq!(sandbox.requests().len(), 1);
    finish(&sandbox);
}

#[tokio::test]
async fn bad_arguments_reach_the_caller_and_can_be_answered() {
    let sandbox = sandbox().await;
    sandbox.will_call("look", json!({ "at": "the sky" }));
    sandbox.sends_bad_json_next();
    sandbox.will_say("I will not look then.");
    let (model, question) = (client(&sandbox), question());

    let response = model.respond(&question).await.unwrap();
    assert_eq!(response.tool_calls().next().unwrap().2, &json!("{\"at\":\"the sky\""));
    model.respond(&next(&question, response)).await.unwrap();
    let sent = &sandbox.requests()[1].body["messages"][3]["content"][0]["input"];
    assert_eq!(sent, &json!({ "_unparsable": "{\"at\":\"the sky\"" }));
    finish(&sandbox);
}

#[tokio::test]
async fn a_tool_can_be_demanded() {
    let sandbox = sandbox().await;
    sandbox.will_call("listen", json!({}));
    let request = Request { tool_choice: ToolChoice::Only("listen"), ..question() };
    client(&sandbox).respond(&request).await.unwrap();
    assert_eq!(sandbox.requests()[0].body["tool_choice"], json!({ "type": "tool", "name": "listen" }));
    finish(&sandbox);
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
async fn what_comes_before_the_situation_is_the_same_bytes_and_read_from_the_cache() {
    let sandbox = sandbox().await;
    sandbox.will_say("Blue.");
    sandbox.will_say("Grey.");
    let (model, mut request) = (client(&sandbox), question());

    let first = model.respond(&request).await.unwrap().usage;
    request.situation = json!({ "said": "And now?", "by": "bo", "earlier": ["How is the sky?"] });
    let second = model.respond(&request).await.unwrap().usage;

    let bodies: Vec<_> = sandbox.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(marked_prefix(&bodies[0]), marked_prefix(&bodies[1]));
    assert_ne!(bodies[0], bodies[1]);
    assert_eq!(first.cached_tokens, 0);
    assert!(second.cached_tokens > 0);
    assert!(second.input_tokens < first.input_tokens, "{first:?} {second:?}");
    assert!(first.output_tokens > 1, "the last count is the one that holds");
    finish(&sandbox);
}

/// A model that cannot be forced to answer in JSON may say something first.
#[tokio::test]
async fn an_introduction_is_no_part_of_an_answer_in_json() {
    let sandbox = sandbox().await;
    sandbox.refuses("tool_choice");
    let call = json!({ "type": "tool_use", "name": "sky", "input": { "color": "blue" } });
    sandbox.will_answer(vec![json!({ "type": "text", "text": "I take the answer." }), call], "tool_use");
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let answer_schema = Some(AnswerSchema { name: "sky".to_owned(), schema });
    let request = Request { answer_schema, tools: [].into(), ..question() };
    let response = client(&sandbox).respond(&request).await.unwrap();
    assert_eq!(response.json::<Value>().unwrap(), json!({ "color": "blue" }));
}
