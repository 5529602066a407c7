//! Everything that a card stands for: each value in full, the exact parameters, who may decide, the whole digest.

use serde_json::Value;

use super::window;
use crate::{
    conversation::render::sections,
    graph::action::ActionRecord,
    reply::{Fact, Text},
    slack::{
        blocks,
        mrkdwn::{Mrkdwn, length},
    },
};

/// How many blocks the exact parameters may take, each of [`CHUNK`] characters. A view may have 100 blocks and 250 kB.
const CODE_BLOCKS: usize = 40;

/// Characters of code in a block.
const CHUNK: usize = 2800;

/// The window.
pub fn draw(record: &ActionRecord) -> Value {
    let mut blocks = vec![blocks::section(&Mrkdwn::new(2900).bold(&record.card.title).finish())];
    let facts = record.card.facts.iter().map(line_of).collect::<Vec<_>>();
    let warnings = record.card.warnings.iter().map(|warning| Text::from("⚠️ ").join(warning.clone()));
    for group in [facts, warnings.collect(), record.card.notes.clone()] {
        blocks.extend(sections(&group));
    }
    let asked =
        Mrkdwn::new(500).plain("Asked by ").person(&record.requested_by).plain(" · ").moment(record.requested_at);
    blocks.push(blocks::context(&match record.thread.channel.is_direct() {
        true => asked.plain(" · in a direct message").finish(),
        false => asked.plain(" · in ").channel(&record.thread.channel).finish(),
    }));
    for edit in &record.edits {
        let by = Text::from("Edited by ").person(edit.by.clone()).plain(" · ").moment(edit.at);
        let changed = edit.changed.iter().map(|fact| Text::from("• ").join(line_of(fact)));
        blocks.extend(sections(&std::iter::once(by).chain(changed).collect::<Vec<_>>()));
    }
    let decides = Text::from("Who may decide: ").join(record.deciders()).plain(match record.policy.needed {
        0 | 1 => ".".to_owned(),
        needed => format!("; {needed} different people must approve."),
    });
    blocks.extend(sections(&[decides]));
    let exact = serde_json::to_string_pretty(&record.parameters).unwrap_or_default();
    blocks.push(blocks::section("*Exactly this is approved:*"));
    blocks.extend(code(&exact));
    blocks.push(blocks::context(&Mrkdwn::new(300).plain("Digest ").code(record.digest.as_str()).finish()));
    window("The whole request", &blocks)
}

/// A fact on a line of its own.
fn line_of(fact: &Fact) -> Text {
    let line = Text::new().bold(fact.label.clone()).plain("  ");
    match &fact.before {
        Some(before) => line.join(before.clone()).plain(" → ").join(fact.after.clone()),
        None => line.join(fact.after.clone()),
    }
}

/// Code over as many blocks as it needs. What does not fit is counted.
fn code(text: &str) -> Vec<Value> {
    let mut chunks: Vec<String> = vec![String::new()];
    for piece in text.split_inclusive('\n').flat_map(pieces) {
        let shown = Mrkdwn::new(CHUNK).verbatim(&piece).finish();
        let last = chunks.last_mut().expect("there is one");
        if length(last) + length(&shown) > CHUNK {
            chunks.push(shown);
        } else {
            last.push_str(&shown);
        }
    }
    let left_out = chunks.len().saturating_sub(CODE_BLOCKS);
    let mut blocks: Vec<_> = chunks
        .iter()
        .take(CODE_BLOCKS)
        .filter(|chunk| !chunk.trim().is_empty())
        .map(|chunk| blocks::section(&format!("```\n{}\n```", chunk.trim_end())))
        .collect();
    if left_out > 0 {
        blocks.push(blocks::section(&format!("⚠️ {left_out} more pages do not fit here; the notebook has them.")));
    }
    blocks
}

/// A line in pieces that fit.
fn pieces(line: &str) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    characters.chunks(500).map(|chunk| chunk.iter().collect()).collect()
}
