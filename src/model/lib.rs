//! Language models.
//!
//! A [`Model`] answers a [`Request`] with text and tool calls. `anthropic` asks a real one; the rules of
//! `countersign_understanding` answer the documented phrases and serve the playground, the tests that need no script,
//! and every outage.
//!
//! The request is given in parts rather than as one prompt, because the parts differ in how long they stay the same:
//! tools, then instructions, then history, then the situation. A provider caches a prefix, so the order is the price.
//! The rules read the situation as data.
//!
//! It knows no prompt, no tool and no thread. Start reading at [`Model`].

pub mod anthropic;
pub mod watched;

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The purpose of a request, which decides the model and the behaviour of `rules`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Finds out what the person wants: the first question about a message. What is clear is worked on at once.
    Analyze,
    /// Collects the facts and parameters that are still needed, and answers.
    Gather,
    /// Answers where no answer was found so far.
    Respond,
}

/// One question to a model.
#[derive(Clone, Debug)]
pub struct Request {
    /// The purpose.
    pub purpose: Purpose,
    /// Standing instructions; the same bytes each time, so that they are cached.
    pub instructions: Arc<str>,
    /// The tools that may be called; in a fixed order, for the same reason.
    pub tools: Arc<[ToolSpec]>,
    /// Earlier turns of the conversation, trimmed.
    pub history: Vec<Message>,
    /// The present facts, as data: the person's words and whatever the purpose needs.
    pub situation: Value,
    /// The words and calls of this turn so far, tool results included.
    pub exchange: Vec<Message>,
    /// The obligation to call a tool.
    pub tool_choice: ToolChoice,
    /// The longest answer, in tokens.
    pub max_tokens: u32,
}

/// The obligation to call a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// Any tool must be called.
    Any,
    /// This tool must be called.
    Only(&'static str),
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name.
    pub name: String,
    /// The situations in which to use it.
    pub description: String,
    /// The JSON schema of its arguments.
    pub input_schema: Value,
    /// True if a provider that supports it should hold the arguments to the schema.
    pub strict: bool,
}

/// The speaker of a message.
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
    /// The speaker.
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

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Block {
    /// A block of a known kind.
    Known(KnownBlock),
    /// A block of any other kind: kept as it is and sent back unchanged.
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
        /// The arguments; any JSON until they are checked.
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
    /// Text and calls, in order; goes back unchanged in the next request.
    pub content: Vec<Block>,
    /// The reason why the model stopped: `end_turn`, `tool_use`, `max_tokens`, `refusal` … An open set.
    pub stop_reason: String,
    /// The usage of the call.
    pub usage: Usage,
}

impl Response {
    /// Returns the text alone.
    pub fn text(&self) -> String {
        let words = self.content.iter().filter_map(|block| match block {
            Block::Known(KnownBlock::Text { text }) => Some(text.as_str()),
            _ => None,
        });
        words.collect::<Vec<_>>().join("\n")
    }

    /// Returns the tool calls: id, name, arguments.
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
    /// Tokens sent and not read from the cache.
    pub input_tokens: u64,
    /// Tokens sent and read from the cache.
    pub cached_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
}

/// The reason why a model did not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The model is too busy, unreachable or too slow, also after retries: fall back to `rules`.
    #[error("the language model is not available: {reason}")]
    Unavailable {
        /// The observed failure, such as a status or a time-out, without the request.
        reason: String,
    },
    /// The key is not accepted: a person has to look.
    #[error("the language model does not accept our key")]
    Auth,
    /// The request is not accepted: a fault of ours.
    #[error("the language model refused the request: {reason}")]
    Refused {
        /// The API's own words, shortened.
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
    /// Returns the model's name, for traces: `claude-sonnet-4-5`, `rules`.
    fn name(&self) -> &str;

    /// Returns true if a call costs money and time; `rules` does not.
    fn is_remote(&self) -> bool {
        true
    }

    /// Answers a request.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] after the model's own retries, and the other kinds of [`Error`] at once.
    async fn respond(&self, request: &Request) -> Result<Response, Error>;
}
