//! Language models.
//!
//! A [`Model`] answers a [`Request`] with text and tool calls. `anthropic` asks a real one; the rules of
//! [`countersign_understanding`] answer the documented phrases and serve the playground, the tests that need no script, and
//! every outage.
//!
//! The request is given in parts rather than as one prompt, because the parts differ in how long they stay the same:
//! tools, then instructions, then history, then the situation. A provider caches a prefix, so the order is the price.
//! `rules` reads the situation as data.

pub mod anthropic;
pub mod watched;

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is asked for; decides which model is used and what `rules` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// What does the person want? The first question about a message; what is clear is worked on at once.
    Analyze,
    /// Which facts and parameters are still needed, and what is the answer?
    Gather,
    /// What is the answer, where none was found so far?
    Respond,
}

/// One question to a model.
#[derive(Clone, Debug)]
pub struct Request {
    /// What it is for.
    pub purpose: Purpose,
    /// Standing instructions; the same bytes each time, so that they are cached.
    pub instructions: Arc<str>,
    /// What may be called; in a fixed order, for the same reason.
    pub tools: Arc<[ToolSpec]>,
    /// Earlier turns of the conversation, trimmed.
    pub history: Vec<Message>,
    /// What is known now, as data: the person's words and whatever the purpose needs.
    pub situation: Value,
    /// What was said and called in this turn so far, tool results included.
    pub exchange: Vec<Message>,
    /// Whether the model must call a tool, and which.
    pub tool_choice: ToolChoice,
    /// The longest answer, in tokens.
    pub max_tokens: u32,
}

/// Whether a tool must be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// As the model likes.
    Auto,
    /// Some tool.
    Any,
    /// This tool.
    Only(&'static str),
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// The JSON schema of its arguments.
    pub input_schema: Value,
    /// Whether a provider that can do so should hold the arguments to the schema.
    pub strict: bool,
}

/// Who speaks.
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
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Vec<Block>,
}

impl Message {
    /// A message of plain text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: vec![KnownBlock::Text { text: text.into() }.into()] }
    }
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Block {
    /// Of a kind we know.
    Known(KnownBlock),
    /// Of any other kind: kept as it is and sent back unchanged.
    Other(Value),
}

/// The kinds of block we read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum KnownBlock {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// The model calls a tool.
    ToolUse {
        /// Pairs it with its result.
        id: String,
        /// Which tool.
        name: String,
        /// With which arguments; anything, until it is checked.
        input: Value,
    },
    /// What the tool answered.
    ToolResult {
        /// The call it answers.
        tool_use_id: String,
        /// What it says.
        content: String,
        /// Whether it failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

impl From<KnownBlock> for Block {
    fn from(block: KnownBlock) -> Self {
        Self::Known(block)
    }
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Its words and calls, in order; goes back unchanged in the next request.
    pub content: Vec<Block>,
    /// Why it stopped: `end_turn`, `tool_use`, `max_tokens`, `refusal` … An open set.
    pub stop_reason: String,
    /// What it cost.
    pub usage: Usage,
}

impl Response {
    /// Its words alone.
    pub fn text(&self) -> String {
        let words = self.content.iter().filter_map(|block| match block {
            Block::Known(KnownBlock::Text { text }) => Some(text.as_str()),
            _ => None,
        });
        words.collect::<Vec<_>>().join("\n")
    }

    /// Its calls: id, name, arguments.
    pub fn tool_calls(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        self.content.iter().filter_map(|block| match block {
            Block::Known(KnownBlock::ToolUse { id, name, input }) => Some((id.as_str(), name.as_str(), input)),
            _ => None,
        })
    }
}

/// What one call cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Which model answered.
    pub model: String,
    /// Tokens sent and not read from the cache.
    pub input_tokens: u64,
    /// Tokens sent and read from the cache.
    pub cached_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
}

/// Why a model did not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too busy, unreachable or too slow, also after retrying: fall back to `rules`.
    #[error("the language model is not available: {reason}")]
    Unavailable {
        /// What was seen: a status, a time-out. Without the request.
        reason: String,
    },
    /// Our key is not accepted: a person has to look.
    #[error("the language model does not accept our key")]
    Auth,
    /// It does not accept what we sent: a fault of ours.
    #[error("the language model refused the request: {reason}")]
    Refused {
        /// Its own words, shortened.
        reason: String,
    },
    /// Its answer cannot be read.
    #[error("cannot read the language model's answer: {reason}")]
    Decode {
        /// What is wrong with it.
        reason: String,
    },
}

/// A language model.
#[async_trait]
pub trait Model: Send + Sync + std::fmt::Debug {
    /// Which one, for traces: `claude-sonnet-4-5`, `rules`.
    fn name(&self) -> &str;

    /// Whether it costs money and time; `rules` does not.
    fn is_remote(&self) -> bool {
        true
    }

    /// Answers.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] after its own retries.
    async fn respond(&self, request: &Request) -> Result<Response, Error>;
}
