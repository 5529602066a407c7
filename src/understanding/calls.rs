//! A wish in the form a model answers: the same tool calls, the same words.

use serde_json::{Map, Value, json};

use super::{
    capability, grammar,
    situation::{IntentType, Situation},
    steps, talk,
    wish::{Understood, Wish},
};
use crate::model::{Block, KnownBlock, Purpose, Request, Response, Usage};

/// Answers a request.
pub(super) fn answer(request: &Request, situation: &Situation) -> Response {
    let understood = grammar::understand(situation);
    let mut content = Vec::new();
    match request.purpose {
        Purpose::Analyze => call(&mut content, "analyze_user_request", analysis(&understood, situation)),
        Purpose::Gather => gather(&mut content, understood.wish),
        Purpose::Respond => respond(&mut content, understood.wish, situation),
    }
    // One pass is enough for the grammar, so it never waits for the results of its calls.
    Response {
        content,
        stop_reason: "end_turn".to_owned(),
        usage: Usage { model: "rules".to_owned(), ..Usage::default() },
    }
}

fn call(content: &mut Vec<Block>, name: &str, input: Value) {
    let id = format!("rules_{}", content.len());
    content.push(KnownBlock::ToolUse { id, name: name.to_owned(), input }.into());
}

fn analysis(understood: &Understood, situation: &Situation) -> Value {
    let intent = match &understood.wish {
        Wish::Talk(_) | Wish::Term(_) | Wish::Unclear { .. } | Wish::Unsupported => IntentType::DirectAnswer,
        Wish::Read { .. } | Wish::Change { .. } | Wish::Update(_) | Wish::Drop => IntentType::NeedsInfo,
    };
    let mut analysis = json!({
        "intent_type": intent,
        "confidence": understood.confidence,
        "user_request_summary": situation.said.trim(),
        "reasoning": reason(&understood.wish),
    });
    if let Some(capability) = capability::of(&understood.wish, situation) {
        analysis["capability"] = json!(capability);
    }
    let steps = steps::steps(situation);
    if !steps.is_empty() {
        analysis["steps"] = json!(steps);
    }
    if let Wish::Unclear { question, options } = &understood.wish {
        analysis["question"] = json!(question);
        analysis["options"] = json!(options);
    }
    analysis
}

fn reason(wish: &Wish) -> String {
    match wish {
        Wish::Talk(_) => "talk".to_owned(),
        Wish::Term(term) => format!("asks what “{}” means", term.name()),
        Wish::Read { tool, .. } => format!("{tool} answers it"),
        Wish::Change { action, .. } => format!("asks for {action}"),
        Wish::Update(_) => "continues or corrects what is being worked out".to_owned(),
        Wish::Drop => "does not want it any more".to_owned(),
        Wish::Unsupported => "cannot be done here".to_owned(),
        Wish::Unclear { .. } => "fits no phrase".to_owned(),
    }
}

fn gather(content: &mut Vec<Block>, wish: Wish) {
    match wish {
        Wish::Read { tool, arguments } => call(content, tool, Value::Object(arguments)),
        Wish::Change { action, params } => {
            call(content, "set_action_needed", json!({ "action": action }));
            call(content, "set_action_params", json!({ "action_params": params }));
        }
        Wish::Update(params) => update(content, params),
        Wish::Drop => call(content, "drop_draft", json!({})),
        Wish::Talk(_) | Wish::Term(_) | Wish::Unclear { .. } | Wish::Unsupported => {}
    }
}

fn update(content: &mut Vec<Block>, params: Map<String, Value>) {
    for (key, value) in params {
        call(content, "update_action_params", json!({ "key": key, "value": value }));
    }
}

fn respond(content: &mut Vec<Block>, wish: Wish, situation: &Situation) {
    let (words, steps) = match wish {
        Wish::Talk(talk) => talk::say(talk, situation),
        Wish::Term(term) => (term.meaning.to_owned(), [].as_slice()),
        Wish::Read { .. }
        | Wish::Change { .. }
        | Wish::Update(_)
        | Wish::Drop
        | Wish::Unclear { .. }
        | Wish::Unsupported => {
            let words = match situation.errors.first() {
                Some(error) => error.clone(),
                None => talk::LOST.to_owned(),
            };
            (words, [].as_slice())
        }
    };
    content.push(KnownBlock::Text { text: words }.into());
    if !steps.is_empty() {
        let steps: Vec<Value> = steps.iter().map(|(label, says)| json!({ "label": label, "says": says })).collect();
        call(content, "offer_next_steps", json!({ "steps": steps }));
    }
}
