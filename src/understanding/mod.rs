//! The model that is none: a small grammar of documented phrases.
//!
//! It makes the same tool calls from a person's words that a language model would make, so the graph above cannot tell
//! them apart. It serves the playground, the tests that need no script, and every outage. It never guesses: what it does
//! not understand gets a low confidence, and a few examples of what it does.
//!
//! **Names first.** What exists is found in a message before anything else ([`lexicon`]); each capability tells its names,
//! and the situation holds those that are mentioned. Then [`slots`] takes out moments, weights, numbers, users and
//! politeness, and what is left of a sentence is looked for in the rows of [`phrases`] by [`intents`]: verbs, nouns, the
//! slots they take. A sentence that fits no row is read by position, by the modules whose names say about what.
//!
//! **Nothing said is dropped.** Of a change each word is in a value, part of how it is asked for, or politeness; what is
//! left over is told, and nothing is done ([`accounting`]). `restrictions.rs` draws requests at random to hold it to that.
//!
//! A message is divided into requests in [`steps`]; a request becomes a [`wish::Wish`] in [`grammar`]; [`RulesModel`] turns
//! the wish into calls or words. It reads nothing but the [`situation::Situation`]. To teach it a phrase, add a row to a
//! table in [`phrases`] and one to a test.
//!
//! The design not taken: one large regular expression per phrase. Names of experiments are free text in the middle of
//! a sentence, and what ends them is easier to say with words than with groups.

mod accounting;
mod answers;
mod bulk;
mod calls;
mod capability;
mod changes;
mod clauses;
mod dates;
mod design;
mod details;
mod doubts;
mod factors;
mod grammar;
mod intents;
mod knowledge;
mod left_out;
pub mod lexicon;
mod lists;
mod membership;
mod moments;
mod names;
mod participants;
mod phrases;
#[cfg(test)]
mod phrasings;
mod questions;
mod reads;
#[cfg(test)]
mod restrictions;
pub mod situation;
mod slots;
mod standing;
mod steps;
mod talk;
mod testing;
#[cfg(test)]
mod tests;
mod wish;
mod words;

use async_trait::async_trait;
use serde_json::Value;

use self::situation::Situation;
pub use self::{
    answers::{Spared, ends_draft, lets_go, says_no, spared},
    calls::{Hint, hint},
    left_out::left_out,
};
use crate::model::{Error, Model, Request, Response};

/// The grammar, as a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct RulesModel;

#[async_trait]
impl Model for RulesModel {
    fn name(&self) -> &str {
        "rules"
    }

    fn is_remote(&self) -> bool {
        false
    }

    async fn respond(&self, request: &Request) -> Result<Response, Error> {
        let situation: Situation = serde_json::from_value(request.situation.clone())
            .map_err(|error| Error::Decode { reason: format!("the situation: {error}") })?;
        Ok(calls::answer(request, &situation))
    }
}

/// The one tool that answers these words, and with which arguments, where they are a documented question: then what the
/// tool says can be shown as it is, and no model has to put it into words.
pub fn documented_read(situation: &Situation) -> Option<(&'static str, Value)> {
    match grammar::understand(situation).wish {
        wish::Wish::Read { tool, arguments } => Some((tool, Value::Object(arguments))),
        _ => None,
    }
}

/// Whether it matters to what these words mean which names there are: they ask for a change, for something by its name, or
/// are not understood without it.
pub fn wants_names(situation: &Situation) -> bool {
    use wish::Wish;
    let understood = grammar::understand(situation);
    match understood.wish {
        _ if understood.confidence <= grammar::MENTIONED => true,
        Wish::Read { tool, .. } => tool == "get_experiment_details",
        Wish::Change { .. } | Wish::Unclear { .. } => true,
        Wish::Talk(_) | Wish::Term(_) | Wish::Update(_) | Wish::Drop | Wish::Unsupported => false,
    }
}

/// What words mean that may be meant for nobody here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Something to look up or to change.
    Request,
    /// What is worked out, or waits on a card, differently.
    Correction,
    /// What is worked out is not wanted any more.
    Drop,
    /// “Ok” or “rather not”, to a card or a change.
    Agreement,
    /// “Hello”, “thanks”.
    Chat,
    /// Nothing that is understood.
    Nothing,
}

/// What words mean, as far as the grammar can tell.
pub fn meaning(situation: &Situation) -> Meaning {
    use wish::{Talk, Wish};
    if !steps::steps(situation).is_empty() {
        return Meaning::Request;
    }
    let understood = grammar::understand(situation);
    match understood.wish {
        Wish::Unclear { options, .. } if !options.is_empty() => Meaning::Request,
        _ if understood.confidence < 0.7 => Meaning::Nothing,
        Wish::Read { .. } | Wish::Change { .. } | Wish::Unsupported | Wish::Term(_) => Meaning::Request,
        Wish::Update(_) => Meaning::Correction,
        Wish::Drop => Meaning::Drop,
        Wish::Talk(Talk::Greeting | Talk::Thanks | Talk::NothingAsked) => Meaning::Chat,
        Wish::Talk(Talk::CardWaits | Talk::NothingDone(_)) => Meaning::Agreement,
        Wish::Talk(Talk::Help | Talk::Pending | Talk::Approval | Talk::NothingToUndo | Talk::NothingToRepeat) => {
            Meaning::Request
        }
        Wish::Unclear { .. } => Meaning::Nothing,
    }
}

/// Whether words are parts of a description and nothing else: “weights 60/40, in assign-prog”.
pub fn only_parts(said: &str) -> bool {
    let words = words::words(said);
    let parts = clauses::clauses(words::polite(&words));
    parts.rest.is_empty() && !parts.params.is_empty()
}

/// The capability that these words ask for, as far as the grammar can tell.
pub fn capability(situation: &Situation) -> Option<String> {
    capability::of(&grammar::understand(situation).wish, situation).map(capability::Capability::name)
}

/// How to ask for the change that these words only consider, as in “should I start Math Hints?”
pub fn considered_request(situation: &Situation) -> Option<String> {
    doubts::request(words::polite(&words::words(&situation.said)), situation)
}

/// Whether these words, said about a change in hand, ask for another one.
pub fn asks_otherwise(situation: &Situation) -> bool {
    matches!(grammar::understand(situation).wish, wish::Wish::Update(_) | wish::Wish::Change { .. })
}

/// What somebody can begin with: label, and what is said when it is pressed.
pub const FIRST_STEPS: &[(&str, &str)] = talk::FIRST;

/// What to say to words that agree while a card is open without deciding anything, or that decline a change. No model
/// is needed for it, and none may take it for a decision or a wish. The same for a word of the glossary.
pub fn without_a_wish(situation: &Situation) -> Option<String> {
    match grammar::understand(situation).wish {
        wish::Wish::Talk(talk @ (wish::Talk::CardWaits | wish::Talk::NothingDone(_))) => {
            Some(talk::say(talk, situation).0)
        }
        wish::Wish::Term(term) => Some(term.meaning.to_owned()),
        _ => None,
    }
}
