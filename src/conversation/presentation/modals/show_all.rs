//! The window with the full content of a card: all values, the exact parameters, the people who may
//! decide and the digest.

use countersign_core::reply::{Fact, Text};
use countersign_graph::action::ActionRecord;
use countersign_slack::{
    blocks,
    mrkdwn::{self, Mrkdwn},
};
use serde_json::Value;

use super::window;
use crate::presentation::{
    names::ResolvedNames,
    render::{self, quotation, sections},
};

/// The maximum number of blocks for the exact parameters. A view may have 100 blocks and 250 kB.
const MAX_CODE_BLOCKS: usize = 37;

/// Draws the window. The user groups that may decide are named as in `resolved`.
pub fn draw(record: &ActionRecord, resolved: &ResolvedNames) -> Value {
    let mut blocks = vec![blocks::section(&Mrkdwn::new(2900).bold(&record.card.title).finish())];
    for group in record.card.facts.chunk_by(|a, b| quotation(a).is_none() && quotation(b).is_none()) {
        match group.first().and_then(quotation) {
            Some(quotation) => blocks.push(quotation),
            None => blocks.extend(sections(&group.iter().map(line_of).collect::<Vec<_>>())),
        }
    }
    let warnings = record.card.warnings.iter().map(|warning| Text::from("⚠️ ").join(warning.clone()));
    for group in [warnings.collect(), record.card.notes.clone()] {
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
    let deciders =
        Text::from("Who can decide: ").join(resolved.in_text(record.deciders())).plain(match record.policy.needed {
            0 | 1 => ".".to_owned(),
            needed => format!("; {needed} different people must approve."),
        });
    blocks.extend(sections(&[deciders]));
    let exact = serde_json::to_string_pretty(&*record.parameters).unwrap_or_default();
    blocks.push(blocks::section("*Exactly what is approved:*"));
    let mut exact = render::code(&mrkdwn::spelled_out(&exact));
    let left_out = exact.len().saturating_sub(MAX_CODE_BLOCKS);
    exact.truncate(MAX_CODE_BLOCKS);
    blocks.append(&mut exact);
    if left_out > 0 {
        blocks
            .push(blocks::section(&format!("⚠️ {left_out} more pages don't fit here. The notebook has all of them.")));
    }
    blocks.push(blocks::context(&Mrkdwn::new(300).plain("Digest ").code(record.digest.as_str()).finish()));
    window("The whole request", &blocks)
}

/// Returns a fact as a line.
fn line_of(fact: &Fact) -> Text {
    let line = Text::new().bold(fact.label.clone()).plain("  ");
    match &fact.before {
        Some(before) => line.join(before.clone()).plain(" → ").join(fact.after.clone()),
        None => line.join(fact.after.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_in_parameters_are_shown() {
        let saved = include_str!("../../../../tests/fixtures/shapes/action_record.json");
        let mut record = serde_json::from_str::<Vec<ActionRecord>>(saved).unwrap().remove(0);
        record.parameters = serde_json::json!({ "users": ["ana\u{200b}", "\u{202e}nimda"] }).into();
        let window = draw(&record, &ResolvedNames::default()).to_string();
        assert!(window.contains(r"ana\\u{200b}") && window.contains(r"\\u{202e}nimda"), "{window}");
        assert!(window.contains(r#"{\n  \"users\": [\n"#), "a line for each value: {window}");
    }
}
