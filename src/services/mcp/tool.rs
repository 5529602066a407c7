//! The tools, answers and self-description of a server, as plain data.

use rmcp::model::{CallToolResult, ContentBlock, Tool};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool, as defined by its server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name.
    pub name: String,
    /// The description, in the server's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON schema of the arguments.
    pub schema: Value,
    /// True if the server declares that the tool changes nothing.
    #[serde(default)]
    pub reads: bool,
    /// True if the tool may destroy something. False only if the server declares that it does not, or that it only
    /// reads.
    #[serde(default)]
    pub destroys: bool,
    /// True if the server declares that repeating a call has no further effect.
    #[serde(default)]
    pub idempotent: bool,
}

impl From<&Tool> for ToolDefinition {
    fn from(tool: &Tool) -> Self {
        let hints = tool.annotations.clone().unwrap_or_default();
        let reads = hints.read_only_hint == Some(true);
        Self {
            name: tool.name.to_string(),
            description: tool.description.as_deref().unwrap_or_default().to_owned(),
            schema: Value::Object((*tool.input_schema).clone()),
            reads,
            destroys: !reads && hints.destructive_hint != Some(false),
            idempotent: hints.idempotent_hint == Some(true),
        }
    }
}

/// The answer of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The texts, one on each line. Other content is named in brackets.
    pub text: String,
    /// The structured answer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// True if the tool reports that it failed.
    #[serde(default)]
    pub failed: bool,
}

impl From<CallToolResult> for Answer {
    fn from(result: CallToolResult) -> Self {
        let text_of = |content: &ContentBlock| match content {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::Image(_) => "[an image]".to_owned(),
            ContentBlock::Audio(_) => "[a recording]".to_owned(),
            ContentBlock::Resource(_) | ContentBlock::ResourceLink(_) => "[a resource]".to_owned(),
            _ => "[something else]".to_owned(),
        };
        let texts: Vec<_> = result.content.iter().map(text_of).collect();
        Self { text: texts.join("\n"), data: result.structured_content, failed: result.is_error == Some(true) }
    }
}

/// The description that a server gives of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// The name of the program.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// The version of the protocol in use.
    pub protocol: String,
}
