//! The window with the full content of a card: all values, the exact parameters, the people who may decide and the digest.
//! Nothing is left out: what does not fit in one window is on further pages.

use countersign_core::reply::{Fact, Text};
use countersign_graph::action::ActionRecord;
use countersign_slack::{
    blocks,
    mrkdwn::{self, Mrkdwn},
};
use serde_json::{Value, json};

use super::{MAX_BLOCKS, window};
use crate::presentation::{
    buttons::SHOWN_PAGE,
    names::ResolvedNames,
    render::{self, quotation, sections},
};

/// The maximum size of the blocks of a page, in bytes of JSON. Slack accepts 250 kB for a whole view.
const MAX_PAGE_BYTES: usize = 150_000;

/// Draws a page of the window, or the last one if there are fewer. The user groups that may decide are named as in
/// `resolved`.
pub fn draw(record: &ActionRecord, resolved: &ResolvedNames, page: usize) -> Value {
    let mut pages = pages(whole(record, resolved));
    let (count, page) = (pages.len(), page.min(pages.len().saturating_sub(1)));
    let mut blocks = if pages.is_empty() { Vec::new() } else { pages.swap_remove(page) };
    if count > 1 {
        blocks.push(blocks::context(&format!("Page {} of {count}", page + 1)));
        let turn = |is_there: bool, to: usize, label: &str| {
            is_there.then(|| blocks::button(&format!("{SHOWN_PAGE}{label}"), label, &to.to_string()))
        };
        let back = turn(page > 0, page.saturating_sub(1), "Previous page");
        let next = turn(page + 1 < count, page + 1, "Next page");
        let buttons: Vec<_> = back.into_iter().chain(next).collect();
        blocks.push(blocks::actions(&format!("page:{page}"), &buttons));
    }
    let mut view = window("The whole request", &blocks);
    view["private_metadata"] = json!(record.approval.as_str());
    view
}

/// Divides blocks into pages, with room for the buttons that turn them.
fn pages(blocks: Vec<Value>) -> Vec<Vec<Value>> {
    let mut pages: Vec<Vec<Value>> = Vec::new();
    let mut room = 0;
    for block in blocks {
        let bytes = block.to_string().len();
        match pages.last_mut() {
            Some(page) if page.len() < MAX_BLOCKS - 2 && bytes <= room => {
                room -= bytes;
                page.push(block);
            }
            _ => {
                room = MAX_PAGE_BYTES.saturating_sub(bytes);
                pages.push(vec![block]);
            }
        }
    }
    pages
}

/// Returns the full content of a card.
fn whole(record: &ActionRecord, resolved: &ResolvedNames) -> Vec<Value> {
    let mut blocks = vec![blocks::section(&Mrkdwn::new(2900).bold(&record.card.title).finish())];
    for group in record.card.facts.chunk_by(|a, b| quotation(a).is_none() && quotation(b).is_none()) {
        match group.first().and_then(quotation) {
            Some(quotation) => blocks.push(quotation),
            None => blocks.extend(sections(&group.iter().map(line_of).collect::<Vec<_>>())),
        }
    }
    let origin = record.evidence.suggested.as_ref().map(|suggested| suggested.sentence(&record.requested_by));
    let warnings = origin.iter().chain(&record.card.warnings).map(|warning| Text::from("⚠️ ").join(warning.clone()));
    for group in [warnings.collect(), record.card.notes.clone()] {
        blocks.extend(sections(&group));
    }
    let asked =
        Mrkdwn::new(500).plain(render::opening(record.is_suggested())).person(&record.requested_by).plain(" · ");
    let asked = asked.moment(record.requested_at);
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
    blocks.append(&mut render::code(&mrkdwn::spelled_out(&exact)));
    blocks.push(blocks::context(&Mrkdwn::new(300).plain("Digest ").code(record.digest.as_str()).finish()));
    blocks
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
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn invisible_characters_in_parameters_are_shown() {
        let saved = include_str!("../../../../tests/fixtures/shapes/action_record.json");
        let mut record = serde_json::from_str::<Vec<ActionRecord>>(saved).unwrap().remove(0);
        record.parameters = serde_json::json!({ "users": ["ana\u{200b}", "\u{202e}nimda"] }).into();
        let window = draw(&record, &ResolvedNames::default(), 0).to_string();
        assert!(window.contains(r"ana\\u{200b}") && window.contains(r"\\u{202e}nimda"), "{window}");
        assert!(window.contains(r#"{\n  \"users\": [\n"#), "a line for each value: {window}");
    }

    #[test]
    fn everything_is_on_some_page() {
        let saved = include_str!("../../../../tests/fixtures/shapes/action_record.json");
        let mut record = serde_json::from_str::<Vec<ActionRecord>>(saved).unwrap().remove(0);
        let users: Vec<_> = (0..20_000).map(|nth| format!("user-{nth:05}")).collect();
        let fact = Fact::new("Users", users.join(", "));
        record.card.facts.push(fact);
        record.parameters = json!({ "users": users }).into();
        let mut shown = String::new();
        for page in 0.. {
            let view = draw(&record, &ResolvedNames::default(), page);
            let blocks = view["blocks"].as_array().unwrap();
            assert!(blocks.len() <= MAX_BLOCKS && view.to_string().len() < 250_000);
            shown += &view.to_string();
            if !view.to_string().contains("Next page") {
                break;
            }
        }
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for word in shown.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            *seen.entry(word).or_default() += 1;
        }
        assert!(users.iter().all(|user| seen.get(&**user) == Some(&2)), "each is in the values and in the parameters");
        assert!(!shown.contains("more"), "nothing is only counted");
    }
}
