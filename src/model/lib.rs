//! Language models.
//!
//! A [`Model`] answers a [`Request`] with text and tool calls. [`anthropic`], [`openai`] and [`gemini`] call remote
//! language models; each converts requests and answers for one API, and [`remote`] is what they share. Each [`Purpose`]
//! can have a model of its own ([`by_purpose`]). What a provider offers, and until when, is in its [`list`]. The rules of `countersign_understanding` understand the documented
//! phrases; they are used in the playground, in tests without a script, and during outages. [`embeddings`] are vectors
//! for texts, from the same providers. [`prices`] are what calls cost, [`limits`] what they may cost.
//!
//! A request consists of parts rather than one prompt, ordered by how rarely they change: tools, instructions, history,
//! situation. Providers cache a prefix of the request, so this order keeps the cost low. The rules read the situation
//! as data.
//!
//! This crate is independent of prompts, tools and threads. Start reading at [`Model`].

pub mod anthropic;
pub mod by_purpose;
mod call;
mod conversation;
pub mod embeddings;
pub mod gemini;
mod learnt;
pub mod limits;
pub mod list;
pub mod openai;
mod pairing;
pub mod prices;
pub mod remote;
mod schema;
pub mod watched;
pub mod words;

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The purpose of a request, which determines the behaviour of `rules`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Determine what the person wants, as the first request about a message. Clear parts may be worked on at once.
    Analyze,
    /// Collect the facts and parameters that are still needed, and answer.
    Gather,
    /// Answer, if there is no answer so far.
    Respond,
    /// Classify an e-mail.
    Classify,
    /// Draft the answer to an e-mail.
    Generate,
}

/// A request to a model.
#[derive(Clone, Debug)]
pub struct Request {
    /// The purpose.
    pub purpose: Purpose,
    /// The instructions, identical in each request, so that they are cached.
    pub instructions: Arc<str>,
    /// The tools that may be called, in a fixed order, so that they are cached.
    pub tools: Arc<[ToolSpec]>,
    /// Earlier turns of the conversation, trimmed.
    pub history: Vec<Message>,
    /// The current facts, as data: the text of the person, and everything else that the purpose needs.
    pub situation: Value,
    /// The messages of this turn so far, with tool calls and their results.
    pub exchange: Vec<Message>,
    /// The constraint on tool calls.
    pub tool_choice: ToolChoice,
    /// The form of an answer in JSON, in a request without tools. The text of the response is then JSON; the caller
    /// has to validate it, since providers enforce only a part of JSON Schema, and not all models do.
    pub answer_schema: Option<AnswerSchema>,
    /// The maximum length of the answer, in tokens.
    pub max_tokens: u32,
    /// Who causes the call.
    pub payer: limits::Payer,
    /// Receives the text of the answer while it is written, as far as the model streams it.
    pub words: Option<words::Words>,
}

/// A constraint on tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model may call tools.
    Auto,
    /// The model must call some tool.
    Any,
    /// The model must call this tool.
    Only(&'static str),
}

/// A tool, as it is described to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name.
    pub name: String,
    /// The description, which says when to use the tool.
    pub description: String,
    /// The JSON schema of the arguments.
    pub input_schema: Value,
    /// True if the provider should enforce the schema, if it can.
    pub strict: bool,
}

/// The form of an answer in JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerSchema {
    /// The name: letters, digits, `_` and `-`.
    pub name: String,
    /// The JSON schema of an object. It is enforced by most models if its objects have `additionalProperties: false`
    /// and require all properties, and if it has no limits such as `minimum`.
    pub schema: Value,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person, or a tool.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation with a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The contents.
    pub content: Vec<Block>,
}

impl Message {
    /// Creates a message of plain text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: vec![KnownBlock::Text { text: text.into() }.into()] }
    }
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Block {
    /// A block of a known kind.
    Known(KnownBlock),
    /// A block of any other kind, which is kept and sent back unchanged.
    Other(Value),
}

/// The known kinds of block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum KnownBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A call of a tool by the model.
    ToolUse {
        /// The id that pairs the call with its result.
        id: String,
        /// The name of the tool.
        name: String,
        /// The arguments, which can be any JSON until they are checked.
        input: Value,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id of the call.
        tool_use_id: String,
        /// The result as text.
        content: String,
        /// True if the call failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

impl From<KnownBlock> for Block {
    fn from(block: KnownBlock) -> Self {
        Self::Known(block)
    }
}

/// The answer of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Text and calls, in order. They are sent back unchanged in the next request.
    pub content: Vec<Block>,
    /// The reason why the model stopped: `end_turn`, `tool_use`, `max_tokens`, `model_context_window_exceeded`, `refusal`
    /// and possibly others.
    pub stop_reason: String,
    /// The usage of the call.
    pub usage: Usage,
}

impl Response {
    /// Returns true if the answer ends where there was no more room, and not where the model ended it.
    pub fn is_cut(&self) -> bool {
        ["max_tokens", "model_context_window_exceeded"].contains(&self.stop_reason.as_str())
    }

    /// Returns the text, without tool calls.
    pub fn text(&self) -> String {
        let words = self.content.iter().filter_map(|block| match block {
            Block::Known(KnownBlock::Text { text }) => Some(text.as_str()),
            _ => None,
        });
        words.collect::<Vec<_>>().join("\n")
    }

    /// Parses the text as JSON, for a request with an [`AnswerSchema`]. Some models put it between Markdown fences.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`] if the text is no JSON of this type. The error does not contain the text.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let text = self.text();
        let inner = text.trim().strip_prefix("```").and_then(|text| text.strip_suffix("```"));
        let inner = inner.map_or(text.trim(), |text| text.strip_prefix("json").unwrap_or(text));
        serde_json::from_str(inner).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            let reason = match error.classify() {
                serde_json::error::Category::Data => format!("the JSON doesn't match the requested schema ({place})"),
                _ => format!("it stopped for {} and isn't JSON ({place})", self.stop_reason),
            };
            Error::Decode { reason }
        })
    }

    /// Returns the id, name and arguments of each tool call.
    pub fn tool_calls(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        self.content.iter().filter_map(|block| match block {
            Block::Known(KnownBlock::ToolUse { id, name, input }) => Some((id.as_str(), name.as_str(), input)),
            _ => None,
        })
    }
}

/// The usage of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The model that answered.
    pub model: String,
    /// The number of input tokens that were not read from the cache.
    pub input_tokens: u64,
    /// The number of input tokens that were read from the cache.
    pub cached_tokens: u64,
    /// The number of output tokens.
    pub output_tokens: u64,
    /// The cost, in billionths of a US dollar; `None` if the model's price is not known.
    pub nano_usd: Option<u64>,
}

/// The reason why a model did not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The model is too busy, unreachable or too slow, even after retries. The caller should fall back to `rules`.
    #[error("the language model is not available: {reason}")]
    Unavailable {
        /// The observed failure, such as a status or a time-out, without the request.
        reason: String,
    },
    /// Models have cost as much as they may. Nothing was sent.
    #[error("the language model has cost as much as model.limits.{} allows", .0.limit.key())]
    OverLimit(limits::Reached),
    /// The API key is not accepted.
    #[error("the language model doesn't accept the key")]
    Auth,
    /// The request is not accepted, because of a fault in the program.
    #[error("the language model refused the request: {reason}")]
    Refused {
        /// The message of the API, shortened.
        reason: String,
    },
    /// The answer cannot be read.
    #[error("cannot read the language model's answer: {reason}")]
    Decode {
        /// The fault of the answer.
        reason: String,
    },
}

/// A language model.
#[async_trait]
pub trait Model: Send + Sync + std::fmt::Debug {
    /// Returns the name of the model, such as `claude-sonnet-5-5` or `rules`.
    fn name(&self) -> &str;

    /// Returns true if calls cost money and time, unlike those of `rules`.
    fn is_remote(&self) -> bool {
        true
    }

    /// Returns the members of requests that the model is known to refuse, and that it is therefore not sent.
    fn refused_members(&self) -> Vec<String> {
        Vec::new()
    }

    /// Answers a request.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] after the model's own retries; other errors immediately.
    async fn respond(&self, request: &Request) -> Result<Response, Error>;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(text: &str) -> Response {
        let content = vec![KnownBlock::Text { text: text.to_owned() }.into()];
        Response { content, stop_reason: "end_turn".to_owned(), usage: Usage::default() }
    }

    #[test]
    fn json_is_read_with_and_without_fences() {
        for text in ["{\"n\":1}", " {\"n\":1}\n", "```json\n{\"n\":1}\n```", "```\n{\"n\":1}\n```"] {
            assert_eq!(said(text).json::<Value>().unwrap(), json!({ "n": 1 }), "{text}");
        }
    }

    #[test]
    fn other_text_is_reported_without_it() {
        let wrong = said("secret").json::<Value>().unwrap_err().to_string();
        assert_eq!(
            wrong,
            "cannot read the language model's answer: it stopped for end_turn and isn't JSON (line 1, column 1)"
        );
        let wrong = said("[\"secret\"]").json::<Vec<u8>>().unwrap_err().to_string();
        assert!(wrong.contains("doesn't match the requested schema") && !wrong.contains("secret"), "{wrong}");
    }
}
