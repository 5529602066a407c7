//! The value of a parameter that was refused: the rest of the change stays a draft, and the card says what is missing.

use countersign_core::reply::Reply;
use countersign_understanding::situation::{Draft, DraftQuestion};
use serde::{Deserialize, Serialize};

use super::{history::shorten, state::AgentState};

/// A value of a parameter that was refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RefusedValue {
    /// The parameter.
    pub parameter: String,
    /// The value in words.
    pub words: String,
}

impl AgentState {
    /// Keeps an incomplete change without the value of a parameter that was refused for the reason in `reply`, which is
    /// asked for again. A value that was known before stays.
    pub fn keep_without(&mut self, mut draft: Draft, known: Option<&Draft>, parameter: &str, reply: &Reply) {
        let refused = draft.params.remove(parameter).unwrap_or_default();
        if let Some(value) = known.and_then(|known| known.params.get(parameter)) {
            draft.params.insert(parameter.to_owned(), value.clone());
        }
        let words = refused.as_str().map_or_else(|| refused.to_string(), str::to_owned);
        self.refused_value = Some(RefusedValue { parameter: parameter.to_owned(), words: shorten(&words, 80) });
        draft.asked = Some(DraftQuestion {
            parameter: parameter.to_owned(),
            question: shorten(&reply.words(), 300),
            options: reply.choices.iter().map(|choice| choice.label.clone()).collect(),
        });
        self.keep_draft(draft);
    }
}
