//! The conversion of a wish into the answer of a model: the same tool calls, the same words.

use countersign_model::{Block, KnownBlock, Purpose, Request, Response, Usage};
use serde_json::{Map, Value, json};

use super::{
    book::Book,
    situation::{IntentType, Situation},
    steps, talk,
    wish::{Understood, Wish},
};

/// The confidence from which on a wish is acted on.
const SURE: f64 = 0.7;

/// A guess from words alone which tools to offer to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// These tools and actions, by name.
    Calls(Vec<String>),
    /// Talk, which needs no tool.
    Talk,
    /// The words fit no phrase.
    Nothing,
}

/// Returns the tools and actions that these words seem to call for.
pub(super) fn hint(book: &Book, situation: &Situation) -> Hint {
    let steps = steps::steps(book, situation);
    if !steps.is_empty() {
        let of_step = |said: String| match hint_of(&book.understand(&Situation { said, ..situation.clone() }).wish) {
            Hint::Calls(calls) => calls,
            Hint::Talk | Hint::Nothing => Vec::new(),
        };
        return Hint::Calls(steps.into_iter().flat_map(of_step).collect());
    }
    match hint_of(&book.understand(situation).wish) {
        Hint::Calls(calls) if calls.is_empty() => {
            Hint::Calls(situation.in_hand().map(|change| change.action.clone()).into_iter().collect())
        }
        hint => hint,
    }
}

/// Returns the hint for one wish; words that continue a change call for nothing new.
fn hint_of(wish: &Wish) -> Hint {
    match wish {
        Wish::Read { tool, .. } => Hint::Calls(vec![tool.clone()]),
        Wish::Change { action, .. } => Hint::Calls(vec![action.clone()]),
        Wish::Update(_) | Wish::Drop => Hint::Calls(Vec::new()),
        Wish::Talk(_) | Wish::Term { .. } | Wish::Unsupported => Hint::Talk,
        Wish::Unclear { .. } => Hint::Nothing,
    }
}

/// Answers a request to the model.
pub(super) fn answer(book: &Book, request: &Request, situation: &Situation) -> Response {
    let understood = book.understand(situation);
    let mut content = Vec::new();
    match request.purpose {
        Purpose::Analyze if is_clear(book, request, &understood, situation) => gather(&mut content, understood.wish),
        Purpose::Analyze => analyze(book, &mut content, &understood, situation),
        Purpose::Gather => gather(&mut content, understood.wish),
        Purpose::Respond => respond(book, &mut content, understood.wish, situation),
    }
    // One pass is enough for the grammar, so it never waits for the results of its calls.
    Response {
        content,
        stop_reason: "end_turn".to_owned(),
        usage: Usage { model: "rules".to_owned(), ..Usage::default() },
    }
}

/// Returns true if the message is one wish, and the request offers the tool that serves it.
fn is_clear(book: &Book, request: &Request, understood: &Understood, situation: &Situation) -> bool {
    let offered = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    let serves = match &understood.wish {
        Wish::Read { tool, .. } => offered(tool),
        Wish::Change { action, .. } => offered(&proposal(action)),
        Wish::Update(_) => offered("update_action_params"),
        Wish::Drop => offered("drop_draft"),
        Wish::Talk(_) | Wish::Term { .. } | Wish::Unsupported | Wish::Unclear { .. } => false,
    };
    serves && understood.confidence >= SURE && steps::steps(book, situation).is_empty()
}

/// Returns the name of the tool that proposes an action.
fn proposal(action: &str) -> String {
    format!("propose_{action}")
}

/// Adds the analysis of the words, and for talk the reply.
fn analyze(book: &Book, content: &mut Vec<Block>, understood: &Understood, situation: &Situation) {
    let mut analysis = analysis(book, understood, situation);
    let (answer, next) = match &understood.wish {
        Wish::Talk(talk) => talk::say(book, *talk, situation),
        Wish::Term { meaning, .. } => ((*meaning).to_owned(), Vec::new()),
        _ => (String::new(), Vec::new()),
    };
    if !answer.is_empty() {
        analysis["answer"] = json!(answer);
    }
    call(content, "analyze_user_request", analysis);
    offer(content, &next);
}

/// Adds buttons below the answer.
fn offer(content: &mut Vec<Block>, steps: &[(&str, &str)]) {
    if !steps.is_empty() {
        let steps: Vec<Value> = steps.iter().map(|(label, says)| json!({ "label": label, "says": says })).collect();
        call(content, "offer_next_steps", json!({ "steps": steps }));
    }
}

fn call(content: &mut Vec<Block>, name: &str, input: Value) {
    let id = format!("rules_{}", content.len());
    content.push(KnownBlock::ToolUse { id, name: name.to_owned(), input }.into());
}

fn analysis(book: &Book, understood: &Understood, situation: &Situation) -> Value {
    let intent = match &understood.wish {
        Wish::Talk(_) | Wish::Term { .. } | Wish::Unclear { .. } | Wish::Unsupported => IntentType::DirectAnswer,
        Wish::Read { .. } | Wish::Change { .. } | Wish::Update(_) | Wish::Drop => IntentType::NeedsInfo,
    };
    let mut analysis = json!({
        "intent_type": intent,
        "confidence": understood.confidence,
        "user_request_summary": situation.said.trim(),
        "reasoning": reason(&understood.wish),
    });
    if let Some(capability) = book.family_of(&understood.wish, situation) {
        analysis["capability"] = json!(capability);
    }
    let steps = steps::steps(book, situation);
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
        Wish::Term { name, .. } => format!("asks what “{name}” means"),
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
        Wish::Read { tool, arguments } => call(content, &tool, Value::Object(arguments)),
        Wish::Change { action, params } => {
            call(content, &proposal(&action), Value::Object(params));
        }
        Wish::Update(params) => update(content, params),
        Wish::Drop => call(content, "drop_draft", json!({})),
        Wish::Talk(_) | Wish::Term { .. } | Wish::Unclear { .. } | Wish::Unsupported => {}
    }
}

fn update(content: &mut Vec<Block>, params: Map<String, Value>) {
    for (key, value) in params {
        call(content, "update_action_params", json!({ "key": key, "value": value }));
    }
}

fn respond(book: &Book, content: &mut Vec<Block>, wish: Wish, situation: &Situation) {
    let (words, steps) = match wish {
        Wish::Talk(talk) => talk::say(book, talk, situation),
        Wish::Term { meaning, .. } => (meaning.to_owned(), Vec::new()),
        Wish::Read { .. }
        | Wish::Change { .. }
        | Wish::Update(_)
        | Wish::Drop
        | Wish::Unclear { .. }
        | Wish::Unsupported => {
            let words = match situation.errors.first() {
                Some(error) => error.clone(),
                None => talk::lost(book),
            };
            (words, Vec::new())
        }
    };
    content.push(KnownBlock::Text { text: words }.into());
    offer(content, &steps);
}
