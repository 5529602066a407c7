//! The node that chooses the tools: a model may choose among those that the rules allow, and the rules are the fallback.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_graph::{
    node::{Context, Node, NodeError, Step},
    store::Usage,
};
use countersign_model::Purpose;
use serde_json::{Value, json};

use super::{
    super::{
        ask_model::{Question, ask},
        deps::Deps,
        rules::{Tool, cut},
        state::MailState,
    },
    TOO_LONG, data_of,
    execute_tools::ExecuteTools,
    generate::Generate,
    note_step,
};

/// The maximum number of tools that a model may name.
const MAX_NAMED: usize = 10;

/// The maximum duration of the choice.
const MAX_DURATION: Duration = Duration::from_secs(15);

/// The node that chooses the tools.
pub(in super::super) struct Decide(Arc<Deps>);

/// A choice of tools.
struct Chosen {
    names: Vec<String>,
    parameters: BTreeMap<String, Value>,
    reasoning: String,
    is_fallback: bool,
    usage: Option<Usage>,
    failure: Option<String>,
}

impl Chosen {
    fn fallback(allowed: &[Tool], reasoning: &str, usage: Option<Usage>, failure: Option<String>) -> Self {
        let names = allowed.iter().map(|tool| tool.as_str().to_owned()).collect();
        let reasoning = reasoning.to_owned();
        Self { names, parameters: BTreeMap::new(), reasoning, is_fallback: true, usage, failure }
    }
}

impl Decide {
    /// The name of the node.
    pub(in super::super) const NAME: &'static str = "decide";

    /// Creates the node.
    pub(in super::super) fn new(deps: Arc<Deps>) -> Self {
        Self(deps)
    }

    async fn chosen(&self, state: &MailState, allowed: &[Tool]) -> Chosen {
        let (Some(mail), Some(model)) = (&state.email, &self.0.classifier) else {
            return Chosen::fallback(allowed, "the rules of the class", None, None);
        };
        // Making the draft is a part of sending, so there is nothing to choose without another tool.
        if allowed.iter().all(|tool| *tool == Tool::CreateDraft) {
            return Chosen::fallback(allowed, "the rules of the class", None, None);
        }
        let Some(left) = self.0.time_left(state.turn.began) else {
            return Chosen::fallback(allowed, "the rules of the class", None, Some(TOO_LONG.to_owned()));
        };
        let names: Vec<_> = allowed.iter().map(|tool| tool.as_str()).collect();
        let question = Question {
            purpose: Purpose::Classify,
            instructions: include_str!("../prompts/decide.md"),
            situation: json!({
                "mail": data_of(mail), "class": state.class(), "tools": names, "today": self.0.clock.now().to_string(),
                "sender_is_known": state.contact.is_some(),
            }),
            name: "tools",
            schema: schema(),
            max_tokens: 300,
        };
        let fallback =
            |usage, failure: &str| Chosen::fallback(allowed, "the rules of the class", usage, Some(failure.to_owned()));
        let answer = match ask(&**model, question, left.min(MAX_DURATION)).await {
            Ok(answer) => answer,
            Err(failure) => return fallback(None, &failure),
        };
        let Some(value) = answer.value.filter(|value| value["tools"].is_array()) else {
            return fallback(Some(answer.usage), "the language model's answer isn't JSON");
        };
        let named = value["tools"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let names = named.take(MAX_NAMED).map(|name| cut(name, 100)).collect();
        let hints = json!({ "start": value["start"], "days": value["days"] });
        Chosen {
            names,
            parameters: [(Tool::CheckCalendar.as_str().to_owned(), hints)].into(),
            reasoning: cut(value["reasoning"].as_str().unwrap_or_default(), 300),
            is_fallback: false,
            usage: Some(answer.usage),
            failure: None,
        }
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "tools": { "type": "array", "items": { "type": "string" } },
            "start": { "type": "string", "description": "The first day that matters, such as 2025-03-04; empty if none." },
            "days": { "type": "integer", "description": "The number of days that matter; 7 if unclear." },
            "reasoning": { "type": "string", "description": "One short sentence." },
        },
        "required": ["tools", "start", "days", "reasoning"],
        "additionalProperties": false,
    })
}

#[async_trait]
impl Node<MailState> for Decide {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn targets(&self) -> &'static [&'static str] {
        &[ExecuteTools::NAME, Generate::NAME]
    }

    async fn run(&self, mut state: MailState, context: &Context) -> Result<Step<MailState>, NodeError> {
        let allowed = state.class().tools(state.contact.is_some());
        let Chosen { names, parameters, reasoning, is_fallback, usage, failure } = self.chosen(&state, allowed).await;
        state.selected_tools.clear();
        state.tool_results.clear();
        let mut refused = Vec::new();
        for name in names {
            match Tool::parse(&name) {
                Some(tool) if allowed.contains(&tool) => {
                    if !state.selected_tools.contains(&name) {
                        state.selected_tools.push(name);
                    }
                }
                Some(_) => {
                    let error = format!("not allowed for the class {}", state.class());
                    state.tool_results.insert(name.clone(), json!({ "error": error }));
                    refused.push(name);
                }
                None => {
                    state.tool_results.insert(name.clone(), json!({ "error": "there is no such tool" }));
                    refused.push(name);
                }
            }
        }
        state.tool_params = parameters.into_iter().filter(|(tool, _)| state.selected_tools.contains(tool)).collect();
        let mut facts = json!({ "selected_tools": state.selected_tools, "reasoning": reasoning });
        if is_fallback {
            facts["fallback"] = json!(true);
        }
        if !refused.is_empty() {
            facts["refused"] = json!(refused);
        }
        if let Some(failure) = failure {
            state.note_error(Self::NAME, &failure); // the rules chose
            facts["error"] = json!(failure);
        }
        note_step(&mut state, &self.0, context, Self::NAME, facts);
        let next = if state.selected_tools.is_empty() { Generate::NAME } else { ExecuteTools::NAME };
        Ok(Step::go(state, next).cost(usage))
    }
}
