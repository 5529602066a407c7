//! A model without a language model: it understands words by the phrases of all capabilities.
//!
//! It makes the same tool calls from a person's words that a language model would make, so the graph cannot tell them
//! apart. It serves the playground, the tests that need no script, and every outage. It never guesses: words that fit
//! no phrase get a low confidence, and a few examples of phrases that work.
//!
//! **Names first.** Names of existing things are found in a message before anything else ([`lexicon`]); each capability
//! lists its names, and the situation holds those that are mentioned. Then [`slots`] takes out moments, weights,
//! numbers, users and politeness, and [`intents`] looks for the rest of the sentence in the rows of each capability:
//! verbs, nouns, the slots they take. Phrases with a fixed order, and questions, are [`lines`] of text. A capability
//! brings both ([`phrases::Phrases`]), and [`book`] tries all of them in turn; if two fit equally well, the person is
//! asked.
//!
//! **Nothing said is dropped.** Each word of a change is in a value, part of how it is asked for, or politeness; if
//! words are left over, they are reported and nothing is done.
//!
//! A message is divided into requests in [`steps`]; a request becomes a [`user_request::UserRequest`] in [`book`]; [`RulesModel`]
//! turns the request into calls or words. It reads nothing but the [`situation::Situation`].
//!
//! It names no platform. Start reading at [`book`], then at [`lines`].
//!
//! The design not taken: one large regular expression per phrase. Names are free text in the middle of a sentence, and
//! their end is easier to describe with words than with groups.

mod answers;
pub mod book;
mod calls;
#[cfg(any(test, feature = "checking"))]
pub mod checking;
pub mod conditions;
pub mod dates;
mod doubts;
pub mod intents;
mod left_out;
pub mod lexicon;
pub mod lines;
pub mod phrases;
pub mod situation;
pub mod slots;
mod steps;
mod talk;
pub mod user_request;
pub mod words;

use std::sync::Arc;

use async_trait::async_trait;
use countersign_model::{Error, Model, Request, Response};
use serde_json::Value;

pub use self::{
    answers::{ForbiddenChange, ends_draft, forbidden_change, is_cancellation, is_retraction},
    calls::Hint,
    left_out::left_out,
};
use self::{
    book::{Book, MENTION_CONFIDENCE},
    phrases::Utterance,
    situation::Situation,
    user_request::{Talk, UserRequest},
    words::strip_politeness,
};

/// A [`Model`] that answers from the phrases of a [`Book`].
#[derive(Clone, Debug, Default)]
pub struct RulesModel(pub Arc<Book>);

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
        Ok(calls::answer(&self.0, request, &situation))
    }
}

/// The meaning of words that may not be addressed to the bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A request to look something up or to change it.
    Request,
    /// A correction of the draft, or of the change on a card.
    Correction,
    /// The draft is not wanted any more.
    Drop,
    /// “Ok” or “rather not”, to a card or a change.
    Agreement,
    /// “Hello”, “thanks”.
    Chat,
    /// Words that are not understood.
    Nothing,
}

/// Questions of the rest of the program about words.
impl Book {
    /// Returns the tools and actions that these words seem to call for, before a model is asked.
    pub fn hint(&self, situation: &Situation) -> Hint {
        calls::hint(self, situation)
    }

    /// Returns the one tool that answers these words and its arguments, if they are a documented question: then the
    /// result of the tool can be shown as it is, and no model has to put it into words.
    pub fn documented_read(&self, situation: &Situation) -> Option<(String, Value)> {
        match self.understand(situation).user_request {
            UserRequest::Read { tool, arguments } => Some((tool, Value::Object(arguments))),
            _ => None,
        }
    }

    /// Returns true if the meaning of these words depends on the existing names: they ask for a change, for something
    /// by its name, or are not understood otherwise.
    pub fn wants_names(&self, situation: &Situation) -> bool {
        let interpretation = self.understand(situation);
        match &interpretation.user_request {
            _ if interpretation.confidence <= MENTION_CONFIDENCE => true,
            user_request @ UserRequest::Read { .. } => self.phrases().any(|phrases| phrases.only_shows(user_request)),
            UserRequest::Change { .. } | UserRequest::Unclear { .. } => true,
            UserRequest::Talk(_)
            | UserRequest::Term { .. }
            | UserRequest::Update(_)
            | UserRequest::Drop
            | UserRequest::Unsupported => false,
        }
    }

    /// Returns the requests of a message in order, if it holds several; else nothing.
    pub fn steps(&self, situation: &Situation) -> Vec<String> {
        steps::steps(self, situation)
    }

    /// Returns the meaning of words, as far as the phrases can tell.
    pub fn meaning(&self, situation: &Situation) -> Meaning {
        if !steps::steps(self, situation).is_empty() {
            return Meaning::Request;
        }
        let interpretation = self.understand(situation);
        match interpretation.user_request {
            UserRequest::Unclear { options, .. } if !options.is_empty() => Meaning::Request,
            _ if interpretation.confidence < 0.7 => Meaning::Nothing,
            UserRequest::Read { .. }
            | UserRequest::Change { .. }
            | UserRequest::Unsupported
            | UserRequest::Term { .. } => Meaning::Request,
            UserRequest::Update(_) => Meaning::Correction,
            UserRequest::Drop => Meaning::Drop,
            UserRequest::Talk(Talk::Greeting | Talk::Thanks | Talk::NothingAsked) => Meaning::Chat,
            UserRequest::Talk(Talk::CardWaits | Talk::NothingDone(_)) => Meaning::Agreement,
            UserRequest::Talk(
                Talk::Help | Talk::Pending | Talk::Approval | Talk::NothingToUndo | Talk::NothingToRepeat,
            ) => Meaning::Request,
            UserRequest::Unclear { .. } => Meaning::Nothing,
        }
    }

    /// Returns true if words are parts of a description and nothing else: “weights 60/40, in assign-prog”.
    pub fn only_parts(&self, said: &str) -> bool {
        let words = self.words(said, None);
        self.phrases().any(|phrases| phrases.only_parts(strip_politeness(&words)))
    }

    /// Returns the family of the tool or action that these words ask for, as far as the phrases can tell.
    pub fn capability(&self, situation: &Situation) -> Option<String> {
        self.family_of(&self.understand(situation).user_request, situation).map(str::to_owned)
    }

    /// Returns a request for the change that these words only consider, as in “should I start Math Hints?”
    pub fn considered_request(&self, situation: &Situation) -> Option<String> {
        let words = self.words(&situation.said, None);
        doubts::considered_request(self, Utterance { words: strip_politeness(&words), situation, is_question: true })
    }

    /// Returns true if these words, said about a change in hand, correct it or ask for another one.
    pub fn asks_otherwise(&self, situation: &Situation) -> bool {
        matches!(self.understand(situation).user_request, UserRequest::Update(_) | UserRequest::Change { .. })
    }

    /// Returns buttons with first requests: the label, and the words that are said when it is pressed.
    pub fn first_steps(&self) -> Vec<(&'static str, &'static str)> {
        talk::first_steps(self)
    }

    /// Returns the reply to words that agree while a card is open without deciding anything, that decline a change, or
    /// that ask for a word of the glossary. No model is needed for these, and none may take them for a decision or a
    /// request.
    pub fn without_a_request(&self, situation: &Situation) -> Option<String> {
        match self.understand(situation).user_request {
            UserRequest::Talk(talk @ (Talk::CardWaits | Talk::NothingDone(_))) => {
                Some(talk::reply_to(self, talk, situation).0)
            }
            UserRequest::Term { meaning, .. } => Some(meaning.to_owned()),
            _ => None,
        }
    }
}
