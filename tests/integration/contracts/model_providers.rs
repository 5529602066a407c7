//! The clients of all providers against the stand-in, over a real connection: each keeps the same promises.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use countersign::{
    config::Config,
    model::{
        AnswerSchema, Block, Error, KnownBlock, Message, Model, Request, Role, ToolChoice,
        anthropic::AnthropicModel,
        embeddings::{DIMENSIONS, Embeddings},
        gemini::{GeminiEmbeddings, GeminiModel},
        openai::{OpenAiEmbeddings, OpenAiModel},
        remote::Settings,
        words::Words,
    },
};
use countersign_sandbox::model::SandboxModel;
use serde_json::{Value, json};

use super::model::{finish, next, question, sandbox, settings, statuses};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Provider {
    Anthropic,
    OpenAi,
    Gemini,
}

use Provider::{Anthropic, Gemini, OpenAi};

const ALL: [Provider; 3] = [Anthropic, OpenAi, Gemini];

/// The providers of embeddings.
const OF_EMBEDDINGS: [Provider; 2] = [OpenAi, Gemini];

fn settings_for(provider: Provider, sandbox: &SandboxModel) -> Settings {
    let base_url = if provider == OpenAi { sandbox.openai_url() } else { sandbox.url() };
    Settings { base_url: base_url.parse().unwrap(), ..settings(sandbox) }
}

fn model(provider: Provider, settings: Settings) -> Result<Arc<dyn Model>, Error> {
    let model: Arc<dyn Model> = match provider {
        Anthropic => Arc::new(AnthropicModel::new(settings)?),
        OpenAi => Arc::new(OpenAiModel::new(settings)?),
        Gemini => Arc::new(GeminiModel::new(settings)?),
    };
    Ok(model)
}

fn client(provider: Provider, sandbox: &SandboxModel) -> Arc<dyn Model> {
    model(provider, settings_for(provider, sandbox)).unwrap()
}

fn embeddings(provider: Provider, settings: Settings) -> Arc<dyn Embeddings> {
    match provider {
        Gemini => Arc::new(GeminiEmbeddings::new(settings).unwrap()),
        _ => Arc::new(OpenAiEmbeddings::new(settings).unwrap()),
    }
}

#[tokio::test]
async fn words_arrive_whole() {
    for provider in ALL {
        let sandbox = sandbox().await;
        let words = "Blue — für die nächsten Stunden ☀️. ".repeat(40);
        sandbox.will_say(words.trim());
        let response = client(provider, &sandbox).respond(&question()).await.unwrap();
        assert_eq!(response.text(), words.trim(), "{provider:?}");
        assert_eq!((response.stop_reason.as_str(), response.usage.model.as_str()), ("end_turn", "claude-sandbox"));
        finish(&sandbox);
    }
}

/// After a cut, the words of the next attempt begin anew.
#[tokio::test]
async fn words_are_passed_on_while_they_arrive() {
    for provider in ALL {
        let sandbox = sandbox().await;
        let words = "Blue — für die nächsten Stunden ☀️. ".repeat(40);
        sandbox.will_say(words.trim());
        sandbox.cuts_next();
        let received = Arc::new(Mutex::new(Vec::<String>::new()));
        let kept = received.clone();
        let receives = Words::to(move |so_far| kept.lock().unwrap().push(so_far.to_owned()));
        let request = Request { words: Some(receives), ..question() };
        client(provider, &sandbox).respond(&request).await.unwrap();
        let received = received.lock().unwrap();
        assert!(received.iter().all(|so_far| words.starts_with(so_far.as_str())), "{provider:?}");
        assert!(received.windows(2).any(|two| two[1].len() < two[0].len()), "{provider:?}: it began anew");
        assert!(received.iter().filter(|so_far| so_far.len() < words.len() / 2).count() > 10, "{provider:?}");
        assert_eq!(received.last().unwrap(), words.trim(), "{provider:?}");
        finish(&sandbox);
    }
}

#[tokio::test]
async fn several_calls_in_one_answer_are_answered_together() {
    for provider in ALL {
        let sandbox = sandbox().await;
        let arguments = json!({ "at": "the „north“ \\ sky\n", "times": [1, 2, { "more": null }] });
        sandbox.will_call_all([("look", arguments.clone()), ("listen", json!({})), ("look", json!({}))]);
        sandbox.will_say("Blue.");
        let (model, question) = (client(provider, &sandbox), question());

        let response = model.respond(&question).await.unwrap();
        let calls: Vec<_> = response.tool_calls().map(|(_, name, input)| (name, input.clone())).collect();
        assert_eq!(calls, [("look", arguments), ("listen", json!({})), ("look", json!({}))], "{provider:?}");
        assert_eq!(response.stop_reason, "tool_use");

        let response = model.respond(&next(&question, response)).await.unwrap();
        assert_eq!(response.text(), "Blue.");
        if provider == Anthropic {
            let messages = sandbox.requests()[1].body["messages"].clone();
            assert_eq!(messages.as_array().unwrap().len(), 5);
            assert_eq!(messages[4]["content"].as_array().unwrap().len(), 3, "all results are in one message");
        }
        finish(&sandbox);
    }
}

/// The stand-in for Gemini signs calls, and refuses one that comes back without its signature.
#[tokio::test]
async fn what_is_not_known_goes_back_unchanged_also_after_storage() {
    for provider in ALL {
        let sandbox = sandbox().await;
        let odd = json!({ "type": "musing", "depth": [3, { "of": null }] });
        let call = json!({ "type": "tool_use", "name": "look", "input": { "at": "the sky" } });
        sandbox.will_answer(vec![odd.clone(), call], "tool_use");
        sandbox.will_say("Blue.");
        let (model, question) = (client(provider, &sandbox), question());

        let response = model.respond(&question).await.unwrap();
        assert!(response.content.iter().any(|block| matches!(block, Block::Other(_))), "{provider:?}");
        let mut again = next(&question, response);
        again.exchange = serde_json::from_str(&serde_json::to_string(&again.exchange).unwrap()).unwrap();
        model.respond(&again).await.unwrap();
        let sent = sandbox.requests()[1].body.to_string();
        assert!(sent.contains(r#"[3,{"of":null}]"#), "{provider:?}: {sent}");
        finish(&sandbox);
    }
}

#[tokio::test]
async fn a_turn_goes_on_with_the_model_of_another_provider() {
    for first in ALL {
        for second in ALL {
            let sandbox = sandbox().await;
            let odd = json!({ "type": "musing", "depth": 3 });
            let call = json!({ "type": "tool_use", "name": "look", "input": { "at": "the sky" } });
            sandbox.will_answer(vec![odd, call], "tool_use");
            sandbox.will_say("Blue.");
            let question = question();
            let response = client(first, &sandbox).respond(&question).await.unwrap();
            let settings = Settings { model: "gemini-3-sandbox".to_owned(), ..settings_for(second, &sandbox) };
            let answer = model(second, settings).unwrap().respond(&next(&question, response)).await.unwrap();
            assert_eq!(answer.text(), "Blue.", "{first:?}, then {second:?}");
            finish(&sandbox);
        }
    }
}

#[tokio::test]
async fn a_busy_model_is_asked_again_and_not_too_early() {
    for (provider, overloaded) in [(Anthropic, 529), (OpenAi, 503), (Gemini, 503)] {
        let sandbox = sandbox().await;
        sandbox.fails_next(429, Some(0.9));
        sandbox.fails_next(529, None);
        sandbox.will_say("Blue.");
        let begun = Instant::now();
        let response = client(provider, &sandbox).respond(&question()).await.unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(900), "{provider:?}: only {:?}", begun.elapsed());
        assert_eq!(response.text(), "Blue.", "{provider:?}");
        assert_eq!(statuses(&sandbox), [429, overloaded, 200]);
        finish(&sandbox);
    }
}

#[tokio::test]
async fn attempts_end() {
    for (provider, reason) in [(Anthropic, "500 api_error"), (OpenAi, "500 server_error"), (Gemini, "500 INTERNAL")] {
        let sandbox = sandbox().await;
        for status in [408, 409, 500] {
            sandbox.fails_next(status, None);
        }
        let error = client(provider, &sandbox).respond(&question()).await.unwrap_err();
        assert!(matches!(&error, Error::Unavailable { reason: why } if why.starts_with(reason)), "{error:?}");
        assert_eq!(statuses(&sandbox), [408, 409, 500]);
        finish(&sandbox);
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_asked_for_again() {
    for (provider, kind) in [(Anthropic, "overloaded_error"), (OpenAi, "server_error"), (Gemini, "UNAVAILABLE")] {
        let sandbox = sandbox().await;
        sandbox.cuts_next();
        sandbox.breaks_off_next(kind);
        let words = json!({ "type": "text", "text": "It is blue, and it will stay blue for the rest of the day." });
        let call = json!({ "type": "tool_use", "name": "look", "input": { "at": "the sky" } });
        sandbox.will_answer(vec![words, call], "tool_use");
        let response = client(provider, &sandbox).respond(&question()).await.unwrap();
        assert!(response.text().starts_with("It is blue, and"), "the pieces of the broken answers are gone");
        assert_eq!(response.tool_calls().count(), 1, "{provider:?}");
        assert_eq!(sandbox.requests().len(), 3, "{provider:?}");
        finish(&sandbox);
    }
}

#[tokio::test]
async fn a_stalled_answer_is_asked_for_again() {
    for provider in ALL {
        let sandbox = sandbox().await;
        sandbox.will_say("It is blue, and it will stay blue for the rest of the day.");
        sandbox.stalls_next();
        let settings = Settings { timeout: Duration::from_secs(4), ..settings_for(provider, &sandbox) };
        let response = model(provider, settings).unwrap().respond(&question()).await.unwrap();
        assert!(response.text().starts_with("It is blue"), "{provider:?}");
        assert_eq!(sandbox.requests().len(), 2);
        finish(&sandbox);
    }
}

#[tokio::test]
async fn a_wrong_key_is_told_once_and_never_shown() {
    for provider in ALL {
        let sandbox = sandbox().await;
        let settings = Settings { api_key: "sk-very-secret".into(), ..settings_for(provider, &sandbox) };
        let shown = format!("{settings:?}");
        let model = model(provider, settings).unwrap();
        let error = model.respond(&question()).await.unwrap_err();
        assert!(matches!(error, Error::Auth), "{provider:?}: {error:?}");
        assert_eq!(sandbox.requests().len(), 1);
        let shown = format!("{shown} {model:?} {error:?} {error}");
        assert!(!shown.contains("very-secret"), "{shown}");
        let unsendable = Settings { api_key: "two\nlines".into(), ..settings_for(provider, &sandbox) };
        assert!(matches!(self::model(provider, unsendable), Err(Error::Auth)));
    }
}

#[tokio::test]
async fn what_the_api_refuses_is_told_in_its_words() {
    let anthropics = "400 invalid_request_error tools.1.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$' (req_sandbox_0001)";
    let openais = "400 invalid_request_error Invalid 'tools[1]";
    for (provider, words) in [(Anthropic, anthropics), (OpenAi, openais), (Gemini, "400 INVALID_ARGUMENT")] {
        let sandbox = sandbox().await;
        let mut question = question();
        let mut tools = question.tools.to_vec();
        tools[1].name = "two words".to_owned();
        question.tools = tools.into();
        let error = client(provider, &sandbox).respond(&question).await.unwrap_err();
        let told = error.to_string();
        assert!(told.starts_with(&format!("the language model refused the request: {words}")), "{told}");
        assert_eq!(statuses(&sandbox), [400], "it would be refused again");
        assert_eq!(sandbox.violations().len(), 1);
    }
}

/// The first request is refused and repeated without the member; later ones do not have it.
#[tokio::test]
async fn a_member_that_the_model_refuses_is_not_sent_again() {
    for provider in [Anthropic, OpenAi] {
        let sandbox = sandbox().await;
        sandbox.refuses("tool_choice");
        sandbox.will_call("look", json!({}));
        sandbox.will_call("look", json!({}));
        let model = client(provider, &sandbox);
        let request = Request { tool_choice: ToolChoice::Any, ..question() };
        for _ in 0..2 {
            let response = model.respond(&request).await.unwrap();
            assert_eq!(response.tool_calls().count(), 1, "{provider:?}");
        }
        assert_eq!(statuses(&sandbox), [400, 200, 200], "{provider:?}");
        finish(&sandbox);
    }
}

/// Under the names of the newest models, the stand-in refuses what these refuse; what is documented is not tried.
#[tokio::test]
async fn the_newest_models_are_asked_in_the_way_that_they_take() {
    for (provider, name) in [(Anthropic, "claude-sonnet-5-5"), (OpenAi, "gpt-6-luna"), (Gemini, "gemini-3.8-flash")] {
        let sandbox = sandbox().await;
        sandbox.will_call("look", json!({}));
        sandbox.will_say("Blue.");
        let settings = Settings { model: name.to_owned(), ..settings_for(provider, &sandbox) };
        let model = model(provider, settings).unwrap();
        let request = Request { tool_choice: ToolChoice::Any, ..question() };
        let response = model.respond(&request).await.unwrap();
        assert_eq!(model.respond(&next(&request, response)).await.unwrap().text(), "Blue.", "{name}");
        // On another server than OpenAI's, the limit is tried under its old name.
        let refused = if provider == OpenAi { vec![400, 200, 200] } else { vec![200, 200] };
        assert_eq!(statuses(&sandbox), refused, "{name}");
        finish(&sandbox);
    }
}

#[tokio::test]
async fn extra_members_are_sent_and_left_out_if_the_model_refuses_them() {
    let extra = |provider| match provider {
        Anthropic => json!({ "temperature": 0.2, "output_config": { "effort": "low" } }),
        OpenAi => json!({ "temperature": 0.2, "reasoning_effort": "low" }),
        Gemini => json!({ "generationConfig": { "temperature": 0.2, "thinkingConfig": { "thinkingLevel": "low" } } }),
    };
    for (provider, refused, place) in [
        (Anthropic, "temperature", "/output_config/effort"),
        (OpenAi, "temperature", "/reasoning_effort"),
        (Gemini, "generationConfig.temperature", "/generationConfig/thinkingConfig/thinkingLevel"),
    ] {
        let sandbox = sandbox().await;
        sandbox.refuses(refused);
        sandbox.will_say("Blue.");
        let Value::Object(extra) = extra(provider) else { unreachable!() };
        let model = model(provider, Settings { extra, ..settings_for(provider, &sandbox) }).unwrap();
        model.respond(&question()).await.unwrap();
        assert_eq!(statuses(&sandbox), [400, 200], "{provider:?}");
        assert_eq!(model.refused_members(), [refused]);
        let sent = sandbox.requests().pop().unwrap().body;
        assert_eq!(sent.pointer(place), Some(&json!("low")), "{provider:?}: {sent}");
        assert!(!sent.to_string().contains("temperature"), "{provider:?}: {sent}");
        assert!(sent.pointer("/generationConfig/maxOutputTokens").is_some() || provider != Gemini, "it was replaced");
        finish(&sandbox);
    }
}

#[tokio::test]
async fn a_retired_model_is_refused_in_the_words_of_the_provider() {
    for (provider, words) in [
        (Anthropic, "404 not_found_error model: claude-sandbox"),
        (OpenAi, "404"),
        (Gemini, "404 NOT_FOUND models/claude-sandbox is not found"),
    ] {
        let sandbox = sandbox().await;
        sandbox.retires("claude-sandbox");
        let error = client(provider, &sandbox).respond(&question()).await.unwrap_err();
        assert!(matches!(&error, Error::Refused { reason } if reason.starts_with(words)), "{provider:?}: {error:?}");
        assert_eq!(statuses(&sandbox), [404]);
    }
}

#[tokio::test]
async fn a_member_with_two_names_is_sent_under_the_other() {
    let sandbox = sandbox().await;
    sandbox.refuses("max_tokens");
    sandbox.will_say("Blue.");
    client(OpenAi, &sandbox).respond(&question()).await.unwrap();
    let sent = sandbox.requests().pop().unwrap().body;
    assert_eq!((&sent["max_tokens"], &sent["max_completion_tokens"]), (&Value::Null, &json!(200)));
    finish(&sandbox);
}

/// The Messages API requires the length of an answer, so nothing helps.
#[tokio::test]
async fn what_does_not_help_is_not_learnt() {
    let sandbox = sandbox().await;
    sandbox.refuses("max_tokens");
    let model = client(Anthropic, &sandbox);
    for _ in 0..2 {
        let error = model.respond(&question()).await.unwrap_err();
        let told = error.to_string();
        assert!(told.contains("max_tokens is not supported") && told.contains("; 400 "), "{told}");
    }
    let sent: Vec<bool> = sandbox.requests().iter().map(|sent| sent.body["max_tokens"].is_null()).collect();
    assert_eq!(sent, [false, true, false, true]);
}

#[tokio::test]
async fn answers_of_less_exact_servers_are_read() {
    let call = r#"I look. <tool_call>{"name": "look", "arguments": {"at": "the sky"}}</tool_call>"#;
    let arguments = json!({ "at": "the sky" });
    let sandbox = sandbox().await;
    let model = client(OpenAi, &sandbox);
    for (words, stop_reason, calls) in [("Blue.", "end_turn", 0), (call, "tool_use", 1)] {
        for fault in
            [None, Some(SandboxModel::omits_reason_next as fn(&SandboxModel)), Some(SandboxModel::sends_whole_next)]
        {
            sandbox.will_say(words);
            fault.into_iter().for_each(|fault| fault(&sandbox));
            let response = model.respond(&question()).await.unwrap();
            assert_eq!(response.text(), words.split(" <").next().unwrap());
            assert_eq!((response.stop_reason.as_str(), response.usage.output_tokens > 0), (stop_reason, true));
            let called: Vec<_> = response.tool_calls().map(|(_, name, input)| (name, input)).collect();
            assert_eq!(called, vec![("look", &arguments); calls]);
        }
    }
    sandbox.will_call_all([("look", arguments.clone()), ("listen", json!({}))]);
    sandbox.sends_whole_next();
    let response = model.respond(&question()).await.unwrap();
    let called: Vec<_> = response.tool_calls().map(|(_, name, input)| (name, input.clone())).collect();
    assert_eq!(called, [("look", arguments), ("listen", json!({}))]);
    finish(&sandbox);
}

#[tokio::test]
async fn bad_arguments_reach_the_caller_and_can_be_answered() {
    for provider in [Anthropic, OpenAi] {
        let sandbox = sandbox().await;
        sandbox.will_call("look", json!({ "at": "the sky" }));
        sandbox.sends_bad_json_next();
        sandbox.will_say("I will not look then.");
        let (model, question) = (client(provider, &sandbox), question());
        let response = model.respond(&question).await.unwrap();
        assert_eq!(response.tool_calls().next().unwrap().2, &json!("{\"at\":\"the sky\""));
        model.respond(&next(&question, response)).await.unwrap();
        if provider == Anthropic {
            let sent = &sandbox.requests()[1].body["messages"][3]["content"][0]["input"];
            assert_eq!(sent, &json!({ "_unparsable": "{\"at\":\"the sky\"" }));
        }
        finish(&sandbox);
    }
}

#[tokio::test]
async fn a_tool_can_be_demanded() {
    let only = [
        (Anthropic, "/tool_choice", json!({ "type": "tool", "name": "listen" })),
        (OpenAi, "/tool_choice", json!({ "type": "function", "function": { "name": "listen" } })),
        (Gemini, "/toolConfig/functionCallingConfig", json!({ "mode": "ANY", "allowedFunctionNames": ["listen"] })),
    ];
    for (provider, place, choice) in only {
        let sandbox = sandbox().await;
        sandbox.will_call("listen", json!({}));
        let request = Request { tool_choice: ToolChoice::Only("listen"), ..question() };
        client(provider, &sandbox).respond(&request).await.unwrap();
        assert_eq!(sandbox.requests()[0].body.pointer(place), Some(&choice), "{provider:?}");
        finish(&sandbox);
    }
}

#[tokio::test]
async fn an_answer_in_json_is_the_text() {
    let schema = json!({
        "type": "object",
        "properties": { "color": { "type": "string", "enum": ["blue", "grey"] }, "cloudy": { "type": "boolean" } },
        "required": ["color", "cloudy"],
        "additionalProperties": false,
    });
    let answer_schema = Some(AnswerSchema { name: "sky".to_owned(), schema });
    let request = Request { answer_schema, tools: [].into(), ..question() };
    for provider in ALL {
        let sandbox = sandbox().await;
        let answer = json!({ "color": "blue", "cloudy": false });
        sandbox.will_call("sky", answer.clone());
        let response = client(provider, &sandbox).respond(&request).await.unwrap();
        assert_eq!(response.json::<Value>().unwrap(), answer, "{provider:?}");
        assert_eq!((response.tool_calls().count(), response.stop_reason.as_str()), (0, "end_turn"));
        finish(&sandbox);
    }
}

#[tokio::test]
async fn what_was_sent_before_is_counted_as_cached() {
    for provider in ALL {
        let sandbox = sandbox().await;
        sandbox.will_say("Blue.");
        sandbox.will_say("Grey.");
        let (model, mut request) = (client(provider, &sandbox), question());
        let first = model.respond(&request).await.unwrap().usage;
        request.situation = json!({ "said": "And now?", "by": "bo" });
        let second = model.respond(&request).await.unwrap().usage;
        assert_eq!(first.cached_tokens, 0);
        assert!(second.cached_tokens > 0 && second.input_tokens < first.input_tokens, "{first:?} {second:?}");
        assert!(first.output_tokens > 1, "the last count is the one that holds");
        finish(&sandbox);
    }
}

/// The history ends with the person who asks now, so both messages become one.
#[tokio::test]
async fn consecutive_messages_become_one() {
    for provider in ALL {
        let sandbox = sandbox().await;
        sandbox.will_say("Blue.");
        let history = vec![Message::text(Role::Assistant, "left over"), Message::text(Role::User, "one")];
        let request = Request { history, ..question() };
        client(provider, &sandbox).respond(&request).await.unwrap();
        finish(&sandbox);
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn embeddings_are_normalized_and_close_for_similar_texts() {
    for provider in OF_EMBEDDINGS {
        let sandbox = sandbox().await;
        let embeddings = embeddings(provider, settings_for(provider, &sandbox));
        let embedded = embeddings.embed("Where is my refund?").await.unwrap();
        // Gemini does not count the tokens of an embedding.
        assert_eq!(embedded.tokens > 0, provider == Provider::OpenAi, "{provider:?}");
        let refund = embedded.vector;
        assert_eq!(refund.len(), DIMENSIONS);
        assert!((cosine(&refund, &refund) - 1.0).abs() < 1e-5, "{provider:?}");
        let same = embeddings.embed("My refund, where is it?").await.unwrap().vector;
        let other = embeddings.embed("Shall we meet on Tuesday").await.unwrap().vector;
        assert!(cosine(&refund, &same) > 0.7 && cosine(&refund, &other) < 0.3);
        assert!(matches!(embeddings.embed(" \n").await, Err(Error::Refused { .. })), "it is not sent");
        finish(&sandbox);
        assert_eq!(sandbox.requests().len(), 3);
    }
}

#[tokio::test]
async fn embeddings_are_asked_for_again_and_refused_with_a_wrong_key() {
    for provider in OF_EMBEDDINGS {
        let sandbox = sandbox().await;
        sandbox.fails_next(529, None);
        let right = embeddings(provider, settings_for(provider, &sandbox));
        right.embed(&"long ".repeat(10_000)).await.unwrap();
        assert_eq!(statuses(&sandbox), [503, 200], "{provider:?}");
        let wrong = Settings { api_key: "sk-very-secret".into(), ..settings_for(provider, &sandbox) };
        let error = embeddings(provider, wrong).embed("hello").await.unwrap_err();
        assert!(matches!(error, Error::Auth), "{error:?}");
    }
}

/// The lines of `countersign check` about models: the subject, the result and the advice.
async fn check_lines(change: impl FnOnce(&mut Config)) -> Vec<(&'static str, Result<String, String>, Option<String>)> {
    let mut config = Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap();
    change(&mut config);
    let lines = countersign::app::check::models(&config).await;
    lines.into_iter().map(|line| (line.what, line.result, line.advice)).collect()
}

#[tokio::test]
async fn check_has_a_line_for_each_model_with_what_it_can_do() {
    let sandbox = sandbox().await;
    sandbox.will_call("report_presence", json!({}));
    sandbox.will_call("report_presence", json!({}));
    sandbox.will_call("report_presence", json!({ "is_there": true }));
    sandbox.will_call("report_presence", json!({ "is_there": true }));
    let (url, openai_url, key) = (sandbox.url(), sandbox.openai_url(), sandbox.api_key());
    let lines = check_lines(|config| {
        config.model.api_key = Some(key.into());
        config.model.openai_api_key = Some(key.into());
        config.model.gemini_api_key = Some("sk-wrong".into());
        config.model.anthropic_url = url.clone();
        config.model.openai_url = openai_url;
        config.model.gemini_url = url.clone();
        let other = |provider| countersign::config::OtherModel { provider: Some(provider), ..Default::default() };
        let named = Some("gpt-4.1-mini".to_owned());
        let openai = other(countersign::config::Provider::OpenAi);
        let price = countersign::config::ModelPrice { input: 1.0, cached: 0.2, output: 3.0 };
        config.model.prices.insert("gpt-4.1-mini".to_owned(), price);
        config.model.classify = Some(countersign::config::OtherModel { name: named, ..openai });
        config.model.generate = Some(other(countersign::config::Provider::Gemini));
    });
    let general = "claude-sonnet-5-5, the newest Sonnet (to stay with it, set model.name to \"claude-sonnet-5-5\"), answers, \
                   calls tools and answers in JSON; it refuses tool_choice; it reads up to 1000000 tokens; a million tokens \
                   cost $2 of input, $0.1 of input from the cache, $10 of output (table of 2026-11-05)";
    let classifier = "gpt-4.1-mini answers and answers in JSON; a million tokens cost $1 of input, $0.2 of input from the \
                      cache, $3 of output (model.prices)";
    let wrong = format!("gemini-3.8-flash: the language model doesn't accept the key (GEMINI_BASE_URL is {url})");
    let retires = "the provider retires gpt-4.1-mini on 2027-01-14; set model.classify.name to \"gpt-6-luna\"";
    let expected = [
        ("model", Ok(general.to_owned()), None),
        ("model.classify", Ok(classifier.to_owned()), Some(retires.to_owned())),
        ("model.generate", Err(wrong), None),
        ("embeddings", Ok("text-embedding-3-small answers, with 768 dimensions".to_owned()), None),
    ];
    assert_eq!(lines.await, expected);
    assert_eq!((sandbox.unscripted(), sandbox.unasked()), (0, 0));
}

#[tokio::test]
async fn check_tells_a_model_that_is_gone_with_the_next_one() {
    let sandbox = sandbox().await;
    sandbox.retires("claude-sonnet-5");
    let lines = check_lines(|config| {
        config.model.name = Some("claude-sonnet-5".to_owned());
        config.model.api_key = Some(sandbox.api_key().into());
        config.model.anthropic_url = sandbox.url();
    });
    let lines = lines.await;
    let [("model", Err(wrong), None)] = &*lines else { panic!("{lines:?}") };
    assert!(
        wrong.starts_with("claude-sonnet-5: the language model refused the request: 404 not_found_error"),
        "{wrong}"
    );
    assert!(wrong.ends_with("; set model.name to \"claude-sonnet-5-5\""), "{wrong}");
}

/// A server that does not support tools ignores them, and the model answers in words.
#[tokio::test]
async fn check_tells_a_model_that_calls_no_tools() {
    let sandbox = sandbox().await;
    sandbox.lists_nothing();
    sandbox.will_say("report_presence()");
    let lines = check_lines(|config| {
        config.model.name = Some("claude-sandbox".to_owned());
        config.model.api_key = Some(sandbox.api_key().into());
        config.model.anthropic_url = sandbox.url();
    });
    let lines = lines.await;
    let [("model", Err(told), None)] = &*lines else { panic!("{lines:?}") };
    let begin = "claude-sandbox answers, but did not call the tool that it was told to call";
    assert!(told.starts_with(begin) && told.contains("--enable-auto-tool-choice"), "{told}");
    assert_eq!(sandbox.requests()[0].body["tools"][0]["name"], "report_presence");
    sandbox.answers_by(|_| vec![json!({ "type": "text", "text": "The stand-in calls it." })]);
    let lines = check_lines(|config| {
        config.model.name = Some("local".to_owned());
        config.model.openai_api_key = Some(sandbox.api_key().into());
        config.model.openai_url = sandbox.openai_url();
    });
    let told = "local answers, calls tools and does not answer in JSON, which mails need; its price is not known \
                (model.prices.\"local\")";
    assert_eq!(lines.await[0], ("model", Ok(told.to_owned()), None));
}

/// Without the list of the provider, the name that was known when the program was built is the default.
#[tokio::test]
async fn the_default_is_the_newest_of_its_line() {
    let sandbox = sandbox().await;
    let mut config = Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap();
    config.model.openai_api_key = Some(sandbox.api_key().into());
    config.model.openai_url = sandbox.openai_url();
    for (newer, hidden, name) in
        [(None, false, "gpt-6-luna"), (Some("gpt-7-luna"), false, "gpt-7-luna"), (None, true, "gpt-6-luna")]
    {
        newer.into_iter().for_each(|newer| sandbox.offers(newer, None));
        if hidden {
            sandbox.lists_nothing();
        }
        let offered = countersign::app::models::Offered::ask(&config).await;
        assert_eq!(offered.with_names(&config).model.general().unwrap().name, name);
        assert_eq!(offered.news(&config), []);
    }
    assert_eq!(sandbox.requests(), [], "a list is no request to a model");
}

#[tokio::test]
async fn check_says_what_is_missing() {
    let lines = check_lines(|config| config.model.provider = Some(countersign::config::Provider::Gemini)).await;
    let what = "model.provider is \"gemini\", but GEMINI_API_KEY is not set".to_owned();
    assert_eq!(lines, [("model", Err(what), None)]);
    let lines = check_lines(|_| {}).await;
    let none = "none, documented phrases only (set ANTHROPIC_API_KEY or OPENAI_API_KEY or GEMINI_API_KEY for a language model)";
    assert_eq!(lines, [("model", Ok(none.to_owned()), None)]);
}

/// A call in a stored conversation that no longer has a result is not sent to any provider.
#[tokio::test]
async fn a_broken_exchange_is_not_sent() {
    for provider in ALL {
        let sandbox = sandbox().await;
        let call = KnownBlock::ToolUse { id: "a".to_owned(), name: "look".to_owned(), input: json!({}) };
        let mut request = question();
        request.exchange.push(Message { role: Role::Assistant, content: vec![call.into()] });
        request.exchange.push(Message::text(Role::User, "never mind"));
        let error = client(provider, &sandbox).respond(&request).await.unwrap_err();
        assert!(matches!(&error, Error::Refused { reason } if reason.contains("has no result")), "{error:?}");
        assert_eq!(sandbox.requests().len(), 0);
    }
}
