//! The text of a proposal, with which the words of a request are compared: what is not in it was left out.

use countersign_core::reply::Text;
use countersign_graph::action::Proposal;
use countersign_understanding::situation::Draft;
use serde_json::Value;

/// Returns the text of a proposal: its action, its parameters as given and as resolved, and its
/// card.
pub(super) fn proposal_text(change: &Draft, proposal: &Proposal) -> String {
    let card = &proposal.card;
    let mut texts = vec![change.action.clone(), Value::from(change.params.clone()).to_string()];
    texts.push(proposal.parameters.to_string());
    texts.push(card.title.clone());
    for fact in &card.facts {
        texts.push(fact.label.clone());
        texts.extend(fact.before.iter().chain([&fact.after]).map(Text::words));
    }
    texts.extend(card.warnings.iter().chain(&card.notes).map(Text::words));
    texts.join("\n")
}

/// Removes the ids from `text` that `said` does not contain: any number that was said may occur by
/// chance among the 32 digits of an id.
pub(super) fn without_ids(text: &str, said: &str) -> String {
    let in_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let pieces = text.split_inclusive(|c: char| !in_word(c));
    let is_id = |piece: &&str| {
        let word = piece.trim_end_matches(|c: char| !in_word(c));
        word.len() == 36 && uuid::Uuid::try_parse(word).is_ok() && !said.contains(word)
    };
    pieces.map(|piece| if is_id(&piece) { " " } else { piece }).collect()
}
