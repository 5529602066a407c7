//! The answers of the stand-in for a language model, computed by the grammar.
//!
//! It parses the bot's requests to the Messages API and answers with the tool calls and text of [`RulesModel`]. So the
//! whole path with a remote model can be tried and measured on any machine, without a key. It understands no more than
//! the grammar does. Questions about mail are answered by [`mail`].

mod mail;

use std::sync::Arc;

use countersign::app::{dependencies, installed};
use countersign_config::Config;
use countersign_core::clock::SystemClock;
use countersign_model::{Block, Model as _, Purpose, Request, ToolChoice, ToolSpec};
use countersign_understanding::RulesModel;
use futures_util::FutureExt as _;
use serde_json::{Value, json};

/// Returns a function that answers requests by the phrases of the installed capabilities.
///
/// # Errors
///
/// If the capabilities cannot be set up.
pub fn answers() -> anyhow::Result<impl Fn(&Value) -> Vec<Value> + Send + 'static> {
    let config = Config::load(None, &crate::platform_stand_in::addresses(), &installed::SETTINGS)?;
    let rules = RulesModel(dependencies::capabilities(&config, Arc::new(SystemClock))?.book);
    Ok(move |body: &Value| answer(&rules, body))
}

/// Returns the content blocks of the answer to a request.
fn answer(rules: &RulesModel, body: &Value) -> Vec<Value> {
    let say = |words: &str| vec![json!({ "type": "text", "text": words })];
    let Some((situation, exchange)) = situation(&body["messages"]) else {
        return say("I was not told what this is about.");
    };
    if let Some((tool, answer)) = mail::answer(&body["tools"], &situation) {
        return vec![json!({ "type": "tool_use", "name": tool, "input": answer })];
    }
    let purpose = purpose(&body["tools"], exchange);
    if purpose == Purpose::Gather && !is_analyzed(&body["messages"]) {
        return say("That is all.");
    }
    let request = Request {
        purpose,
        instructions: "".into(),
        tools: tools(&body["tools"]),
        history: Vec::new(),
        situation,
        exchange: Vec::new(),
        tool_choice: ToolChoice::Auto,
        answer_schema: None,
        max_tokens: 0,
        payer: Default::default(),
        words: None,
    };
    match rules.respond(&request).now_or_never() {
        Some(Ok(response)) if response.content.is_empty() => say("That is all."),
        Some(Ok(response)) => response.content.into_iter().map(block).collect(),
        Some(Err(_)) | None => say("I can't tell what this is about."),
    }
}

/// Returns the tools that a request offers.
fn tools(offered: &Value) -> Arc<[ToolSpec]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tool = |tool: &Value| ToolSpec {
        name: text(&tool["name"]),
        description: text(&tool["description"]),
        input_schema: tool["input_schema"].clone(),
        strict: tool["strict"] == true,
    };
    offered.as_array().into_iter().flatten().map(tool).collect()
}

/// Returns a block as JSON. The id of a tool call is removed, since the server assigns its own.
fn block(block: Block) -> Value {
    let mut block = json!(block);
    if let Some(call) = block.as_object_mut().filter(|block| block["type"] == "tool_use") {
        call.remove("id");
    }
    block
}

/// Returns the purpose of a request, derived from the offered tools and from whether one was already called.
fn purpose(tools: &Value, exchange: bool) -> Purpose {
    let offered = |name: &str| tools.as_array().into_iter().flatten().any(|tool| tool["name"] == name);
    match (offered("analyze_user_request"), exchange) {
        (true, false) => Purpose::Analyze,
        (true, true) => Purpose::Gather,
        (false, _) => Purpose::Respond,
    }
}

/// Returns true if the latest calls of the model contain the analysis of the request.
fn is_analyzed(messages: &Value) -> bool {
    let called = messages.as_array().into_iter().flatten().rev().find(|message| message["role"] == "assistant");
    let called = called.and_then(|message| message["content"].as_array());
    called.is_some_and(|blocks| blocks.iter().any(|block| block["name"] == "analyze_user_request"))
}

/// Returns the situation in a request, and true if tool results follow it.
fn situation(messages: &Value) -> Option<(Value, bool)> {
    let blocks: Vec<&Value> =
        messages.as_array()?.iter().filter_map(|message| message["content"].as_array()).flatten().collect();
    let at = blocks.iter().rposition(|block| inside(block).is_some())?;
    let situation = serde_json::from_str(inside(blocks[at])?).ok()?;
    Some((situation, blocks[at..].iter().any(|block| block["type"] == "tool_result")))
}

/// Returns the text inside the `<situation>` tags of a block.
fn inside(block: &Value) -> Option<&str> {
    block["text"].as_str()?.split_once("<situation>\n")?.1.strip_suffix("\n</situation>")
}
