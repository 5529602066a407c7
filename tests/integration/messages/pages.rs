//! The texts that people read in files other than Rust sources: the page, and what Slack shows about the app.

use std::{
    fs,
    path::{Path, PathBuf},
};

use html5gum::{Token, Tokenizer};
use serde_json::Value;

use super::collect::is_read;

/// The one page of the playground. What its scripts say is left out.
const PAGE: &str = "src/playground/page/assets/index.html";

/// Attributes that are read, aloud or on the screen.
const READ_ATTRIBUTES: &[&str] = &["alt", "aria-label", "content", "placeholder", "title"];

/// The manifests of the Slack app. What Slack shows of them is in these fields.
const MANIFESTS: &[&str] =
    &["deploy/slack-manifest.agent.json", "deploy/slack-manifest.http.json", "deploy/slack-manifest.socket.json"];
const SHOWN_FIELDS: &[&str] = &["description", "long_description", "name", "usage_hint", "agent_description", "title"];

/// Each file with its texts.
pub fn all() -> Vec<(PathBuf, Vec<String>)> {
    let mut pages: Vec<_> = MANIFESTS.iter().map(|path| (PathBuf::from(path), of_manifest(Path::new(path)))).collect();
    pages.push((PathBuf::from(PAGE), of_page(&fs::read_to_string(PAGE).unwrap())));
    pages
}

fn of_manifest(path: &Path) -> Vec<String> {
    let manifest: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let mut texts = Vec::new();
    push_shown(&manifest, &mut texts);
    texts
}

fn push_shown(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if SHOWN_FIELDS.contains(&key.as_str()) => push(texts, text),
                    _ => push_shown(value, texts),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| push_shown(value, texts)),
        _ => {}
    }
}

fn of_page(html: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for Ok(token) in Tokenizer::new(html) {
        match token {
            Token::StartTag(tag) => {
                for (name, value) in &tag.attributes {
                    let name = String::from_utf8_lossy(name);
                    if READ_ATTRIBUTES.contains(&&*name) {
                        push(&mut texts, &String::from_utf8_lossy(value));
                    }
                }
            }
            Token::String(text) => push(&mut texts, String::from_utf8_lossy(&text).trim()),
            _ => {}
        }
    }
    texts
}

fn push(texts: &mut Vec<String>, text: &str) {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if is_read(&text) && !texts.contains(&text) {
        texts.push(text);
    }
}
