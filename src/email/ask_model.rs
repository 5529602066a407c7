//! One question to a language model, answered as JSON.

use std::{sync::Arc, time::Duration};

use countersign_graph::store;
use countersign_model::{AnswerSchema, Model, Purpose, Request, ToolChoice};
use serde_json::Value;

use super::rules::cut;

/// The maximum length of a failure, in characters.
const MAX_FAILURE_CHARS: usize = 200;

/// A question.
#[derive(Clone, Debug)]
pub struct Question {
    /// The purpose, which decides the model's part in the settings.
    pub purpose: Purpose,
    /// The instructions.
    pub instructions: &'static str,
    /// The facts, as data.
    pub situation: Value,
    /// The name of the answer's schema.
    pub name: &'static str,
    /// The schema of the answer.
    pub schema: Value,
    /// The maximum length of the answer, in tokens.
    pub max_tokens: u32,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The answer; `None` if it is not JSON.
    pub value: Option<Value>,
    /// The usage.
    pub usage: store::Usage,
}

/// Asks the model. Returns the failure as a clause if there is no answer within `within`. The client makes the retries.
pub async fn ask(model: &dyn Model, question: Question, within: Duration) -> Result<Answer, String> {
    let Question { purpose, instructions, situation, name, schema, max_tokens } = question;
    let request = Request {
        purpose,
        instructions: Arc::from(instructions),
        tools: Arc::from([]),
        history: Vec::new(),
        situation,
        exchange: Vec::new(),
        tool_choice: ToolChoice::Auto,
        answer_schema: Some(AnswerSchema { name: name.to_owned(), schema }),
        max_tokens,
        payer: Default::default(), // nobody asked for the answer to a mail
        words: None,
    };
    let response = match tokio::time::timeout(within, model.respond(&request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(cut(&error.to_string(), MAX_FAILURE_CHARS)),
        Err(_) => return Err("the language model didn't answer in time".to_owned()),
    };
    let usage = store::Usage {
        model: response.usage.model.clone(),
        calls: 1,
        input_tokens: response.usage.input_tokens,
        cached_tokens: response.usage.cached_tokens,
        output_tokens: response.usage.output_tokens,
        nano_usd: response.usage.nano_usd,
    };
    Ok(Answer { value: response.json().ok().filter(Value::is_object), usage })
}
