//! The words of people that ask for a change, in the notebook.

use std::collections::HashMap;

use countersign_core::ids::UserId;
use countersign_graph::{
    action::{Evidence, Words},
    store::{AuditEntry, AuditKind},
};
use serde::Deserialize as _;
use serde_json::Value;

use crate::record::notebook::{people::People, words::inline};

/// The maximum length of a quotation, in characters.
const MAX_QUOTE_CHARS: usize = 120;

/// What people wrote, by the time stamp of the message.
pub(super) struct Messages<'a>(HashMap<&'a str, &'a str>);

impl<'a> Messages<'a> {
    pub(super) fn of(record: &'a [AuditEntry]) -> Self {
        let said = record.iter().filter(|entry| entry.event.kind == AuditKind::Said && !entry.withheld);
        let by_message = said.filter_map(|entry| {
            let detail = &entry.event.detail;
            Some((detail["message"].as_str()?, detail["text"].as_str()?.trim()))
        });
        Self(by_message.collect())
    }

    /// Returns these words as a quotation. Words that are hidden or were deleted are not quoted.
    fn quote(&self, words: &Words, people: &People) -> String {
        let Some(message) = &words.message else { return "a step of an approved plan".to_owned() };
        let said = self.0.get(message.as_str()).filter(|said| !said.starts_with('['));
        let Some(said) = said else { return "words that aren't shown here".to_owned() };
        let (from, to) = (words.from as usize, words.to as usize);
        let length = if to > from { to - from } else { usize::MAX };
        let part: String = said.chars().skip(from).take(length.min(MAX_QUOTE_CHARS)).collect();
        let cut = if part.chars().count() == MAX_QUOTE_CHARS { "…" } else { "" };
        let means = words.means.as_ref().map(|name| format!(" ({})", inline(name))).unwrap_or_default();
        format!("“{}{cut}”{means}", inline(&people.named(&part)))
    }

    /// Describes the evidence in a card's details: what no person named, and the words that name the rest.
    pub(super) fn evidence(&self, detail: &Value, answered: Option<&str>, people: &People) -> Vec<String> {
        let Ok(evidence) = Evidence::deserialize(&detail["evidence"]) else { return Vec::new() };
        let mut lines = Vec::new();
        if let Some(suggested) = &evidence.suggested {
            let sentence = suggested.sentence(&UserId::new(answered.unwrap_or_default()));
            lines.push(format!("⚠️ {}", inline(&people.named(&sentence.words()))));
        }
        let quotes =
            |words: &[Words]| words.iter().map(|words| self.quote(words, people)).collect::<Vec<_>>().join(", ");
        let named: Vec<String> = [("what changes", &evidence.target), ("the change", &evidence.kind)]
            .into_iter()
            .filter(|(_, words)| !words.is_empty())
            .map(|(what, words)| format!("{what}: {}", quotes(words)))
            .collect();
        if !named.is_empty() {
            lines.push(format!("Words that name {}", named.join("; ")));
        }
        lines
    }
}
