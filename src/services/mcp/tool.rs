//! The tools, answers and self-description of a server, as plain data.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Tool};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{error::Error, repeats};

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
    /// True if the server runs it only as a task, which this client does not start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_task: bool,
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
            needs_task: false, // the library does not tell
        }
    }
}

/// The answer of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The texts, links and embedded texts, one below the other. Other content is named in brackets.
    pub text: String,
    /// The structured answer, if it says something else than the content. A file of the content is only named in it.
    pub data: Option<Value>,
    /// The pictures, which are also named in the text.
    pub pictures: Vec<Picture>,
    /// True if the tool reports that it failed.
    pub failed: bool,
}

/// A picture in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The media type, such as `image/png`, in the server's words.
    pub media_type: String,
    /// The file.
    pub bytes: Vec<u8>,
}

impl Answer {
    /// Adds a picture, if it can be read, and returns its name.
    fn add_picture(&mut self, media_type: &str, data: &str) -> String {
        match BASE64.decode(data.trim()) {
            Ok(bytes) if !bytes.is_empty() => {
                let name = format!("[a picture: {media_type}, {}]", in_kb(bytes.len()));
                self.pictures.push(Picture { media_type: media_type.to_owned(), bytes });
                name
            }
            _ => format!("[a picture that can't be read: {media_type}]"),
        }
    }

    /// Returns an embedded resource as text.
    fn resource(&mut self, resource: &ResourceContents) -> String {
        match resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => match mime_type.as_deref() {
                Some(picture) if picture.starts_with("image/") => {
                    format!("[{uri}]\n{}", self.add_picture(picture, blob))
                }
                kind => {
                    format!("[a file: {uri}, {}, {}]", kind.unwrap_or("of unknown type"), in_kb(size_of_file(blob)))
                }
            },
            _ => "[something else]".to_owned(),
        }
    }
}

/// Returns the size of a file that is given in Base64, in bytes.
fn size_of_file(base64: &str) -> usize {
    let digits = base64.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=').count();
    digits * 3 / 4
}

/// Returns a size in words.
fn in_kb(bytes: usize) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0 | 2..1024 => format!("{bytes} bytes"),
        _ => format!("{} KB", bytes.div_ceil(1024)),
    }
}

impl From<CallToolResult> for Answer {
    fn from(result: CallToolResult) -> Self {
        let mut answer = Self { failed: result.is_error == Some(true), ..Self::default() };
        let mut texts = Vec::new();
        for content in &result.content {
            texts.push(match content {
                ContentBlock::Text(text) => text.text.clone(),
                ContentBlock::Image(image) => answer.add_picture(&image.mime_type, &image.data),
                ContentBlock::Audio(audio) => {
                    format!("[a recording: {}, {}]", audio.mime_type, in_kb(size_of_file(&audio.data)))
                }
                ContentBlock::Resource(embedded) => answer.resource(&embedded.resource),
                ContentBlock::ResourceLink(link) => {
                    let about = link.description.as_ref().map(|about| format!(" ({about})")).unwrap_or_default();
                    format!("[a link to {}: {}]{about}", link.title.as_ref().unwrap_or(&link.name), link.uri)
                }
                _ => "[something else]".to_owned(),
            });
        }
        let data = result.structured_content.filter(|data| !data.is_null());
        answer.data = data.and_then(|data| repeats::without(data, &result.content, &texts));
        answer.text = texts.join("\n");
        answer
    }
}

impl Answer {
    /// Reads an answer of at most this size in bytes. Structured data that repeats the content does not count.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`].
    pub(crate) fn within(most: usize, result: CallToolResult) -> Result<Self, Error> {
        let content = serde_json::to_vec(&result.content).map_or(0, |content| content.len());
        let answer = Self::from(result);
        let data = answer.data.as_ref().map_or(0, |data| data.to_string().len());
        if content + data > most { Err(Error::TooLong { most }) } else { Ok(answer) }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_of_a_file_does_not_count_the_padding() {
        let blob = |blob: &str| {
            let result = json!({ "content": [{ "type": "resource", "resource": { "uri": "a:b", "blob": blob } }] });
            Answer::from(serde_json::from_value::<CallToolResult>(result).unwrap()).text
        };
        assert_eq!(blob("AA=="), "[a file: a:b, of unknown type, 1 byte]");
        assert_eq!(blob("AAE="), "[a file: a:b, of unknown type, 2 bytes]");
        assert_eq!(blob("AAEC\n"), "[a file: a:b, of unknown type, 3 bytes]");
    }
}
