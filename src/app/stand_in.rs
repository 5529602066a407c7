//! The grammar behind the stand-in for a language model: answers the way there and back over the wire, without a key.
//!
//! It reads what the bot sends to the Messages API and answers with the calls and words of [`RulesModel`]. So the whole
//! path with a model can be tried, and measured, on any machine. It is as clever as the grammar, no more.

use futures_util::FutureExt as _;
use serde_json::{Value, json};

use crate::model::{Block, Model as _, Purpose, Request, ToolChoice};
use crate::understanding::RulesModel;

/// The blocks of the answer to a request.
pub fn answer(body: &Value) -> Vec<Value> {
    let say = |words: &str| vec![json!({ "type": "text", "text": words })];
    let Some((situation, exchange)) = situation(&body["messages"]) else {
        return say("I was not told what this is about.");
    };
    let purpose = purpose(&body["tools"]);
    if purpose == Purpose::Gather && exchange {
        return say("That is all.");
    }
    let request = Request {
        purpose,
        instructions: "",
        tools: [].into(),
        history: Vec::new(),
        situation,
        exchange: Vec::new(),
        tool_choice: ToolChoice::Auto,
        max_tokens: 0,
    };
    match RulesModel.respond(&request).now_or_never() {
        Some(Ok(response)) if response.content.is_empty() => say("That is all."),
        Some(Ok(response)) => response.content.into_iter().map(block).collect(),
        Some(Err(_)) | None => say("I cannot read what this is about."),
    }
}

/// A block under a name that the server gives it.
fn block(block: Block) -> Value {
    let mut block = json!(block);
    if let Some(call) = block.as_object_mut().filter(|block| block["type"] == "tool_use") {
        call.remove("id");
    }
    block
}

/// What is asked for shows in the tools that are offered.
fn purpose(tools: &Value) -> Purpose {
    let offered = |name: &str| tools.as_array().into_iter().flatten().any(|tool| tool["name"] == name);
    match () {
        () if offered("analyze_user_request") => Purpose::Analyze,
        () if offered("set_action_needed") => Purpose::Gather,
        () => Purpose::Respond,
    }
}

/// The situation in a request, and whether results of calls follow it.
fn situation(messages: &Value) -> Option<(Value, bool)> {
    let blocks: Vec<&Value> =
        messages.as_array()?.iter().filter_map(|message| message["content"].as_array()).flatten().collect();
    let at = blocks.iter().rposition(|block| inside(block).is_some())?;
    let situation = serde_json::from_str(inside(blocks[at])?).ok()?;
    Some((situation, blocks[at..].iter().any(|block| block["type"] == "tool_result")))
}

fn inside(block: &Value) -> Option<&str> {
    block["text"].as_str()?.split_once("<situation>\n")?.1.strip_suffix("\n</situation>")
}
