//! Structured answers that repeat the content: libraries put what a tool returns into both, so that older clients see it
//! too. It is kept once, for people, models and the limit on the size.

use rmcp::model::{ContentBlock, ResourceContents};
use serde_json::Value;

/// Returns a structured answer without what the content says as well; `None` if nothing is left. `names` are the texts
/// that stand for the blocks of the content, in order.
pub(crate) fn without(mut data: Value, content: &[ContentBlock], names: &[String]) -> Option<Value> {
    if is_repeated(&data, content, names) {
        return None;
    }
    let files: Vec<_> = content.iter().zip(names).filter_map(|(block, name)| Some((file_of(block)?, name))).collect();
    name_files(&mut data, &files);
    Some(data)
}

/// Returns true if an object has a single value, and that is the whole content.
fn is_repeated(data: &Value, content: &[ContentBlock], names: &[String]) -> bool {
    let Some(mut values) = data.as_object().map(|object| object.values()) else { return false };
    let (Some(only), None) = (values.next(), values.next()) else { return false };
    if content.is_empty() {
        return false;
    }
    let text = names.join("\n");
    match only {
        Value::String(said) if said.trim() == text.trim() => true,
        Value::Array(blocks) if !blocks.is_empty() && blocks.iter().all(is_block) => true,
        value => serde_json::from_str::<Value>(&text).is_ok_and(|said| said == *value),
    }
}

/// Returns true for a block of content, as the protocol writes it.
fn is_block(value: &Value) -> bool {
    match value["type"].as_str() {
        Some("text") => value["text"].is_string(),
        Some("image" | "audio") => value["data"].is_string(),
        Some("resource") => value["resource"].is_object(),
        Some("resource_link") => value["uri"].is_string(),
        _ => false,
    }
}

/// Returns the file of a block, in Base64.
fn file_of(block: &ContentBlock) -> Option<&str> {
    let file = match block {
        ContentBlock::Image(image) => &image.data,
        ContentBlock::Audio(audio) => &audio.data,
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::BlobResourceContents { blob, .. } => blob,
            _ => return None,
        },
        _ => return None,
    };
    (!file.is_empty()).then_some(file.as_str())
}

/// Puts the names of files in place of the files, wherever they stand.
fn name_files(data: &mut Value, files: &[(&str, &String)]) {
    match data {
        Value::String(text) => {
            if let Some((_, name)) = files.iter().find(|(file, _)| file == text) {
                *text = name.replace('\n', " ");
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|value| name_files(value, files)),
        Value::Object(all) => all.values_mut().for_each(|value| name_files(value, files)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::CallToolResult;
    use serde_json::json;

    use crate::tool::Answer;

    use super::*;

    /// Reads the answer of a tool as a server sends it.
    fn answer(content: Value, data: Value) -> Answer {
        let result = json!({ "content": content, "structuredContent": data });
        Answer::from(serde_json::from_value::<CallToolResult>(result).unwrap())
    }

    fn text(text: &str) -> Value {
        json!([{ "type": "text", "text": text }])
    }

    #[test]
    fn data_that_is_the_content_is_dropped() {
        let image = json!({ "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" });
        let repeated = [
            (text("Four notes.\n"), json!({ "result": "Four notes." })),
            (text("[1, 2]"), json!({ "result": [1, 2] })),
            (text("{\"a\": 1}"), json!({ "result": { "a": 1 } })),
            (text("42"), json!({ "result": 42 })),
            (json!([image]), json!({ "result": [image] })),
            (text("x"), json!({ "content": [{ "type": "text", "text": "x" }] })),
        ];
        for (content, data) in repeated {
            assert_eq!(answer(content.clone(), data).data, None, "{content}");
        }
        let others = [
            (text("Found 1."), json!({ "result": "Four notes." })),
            (text("Found 1."), json!({ "result": [{ "type": "text", "title": "x" }] })),
            (text("x"), json!({ "result": "x", "more": true })),
            (json!([]), json!({ "result": "" })),
        ];
        for (content, data) in others {
            assert_eq!(answer(content, data.clone()).data, Some(data));
        }
    }

    #[test]
    fn a_file_in_the_data_that_the_content_has_is_named() {
        let content = json!([
            { "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "file:///a.bin", "blob": "AAECAw==" } },
        ]);
        let data = json!({ "image": { "data": "iVBORw0KGgo=" }, "all": [{ "blob": "AAECAw==" }, { "blob": "AAEC" }] });
        let found = answer(content, data);
        let wanted = json!({
            "image": { "data": "[a picture: image/png, 8 bytes]" },
            "all": [{ "blob": "[a file: file:///a.bin, of unknown type, 4 bytes]" }, { "blob": "AAEC" }],
        });
        assert_eq!((found.data, found.pictures.len()), (Some(wanted), 1));
    }

    #[test]
    fn what_is_repeated_counts_once_for_the_limit() {
        let image = json!({ "type": "image", "data": "A".repeat(4_000), "mimeType": "image/png" });
        let result = json!({ "content": [image], "structuredContent": { "result": [image], } });
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        assert!(Answer::within(5_000, result.clone()).is_ok());
        assert!(Answer::within(3_000, result).is_err());
        let other = json!({ "content": [image], "structuredContent": { "other": "B".repeat(4_000) } });
        assert!(Answer::within(5_000, serde_json::from_value(other).unwrap()).is_err());
    }
}
