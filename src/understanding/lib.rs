//! A rule-based model: it understands messages by the phrases of all capabilities, without a
//! language model.
//!
//! It answers a message with the same tool calls that a language model would make, so the graph
//! treats both alike. It serves the playground, the tests that need no script, and every outage. It
//! never guesses a change: for words that match no phrase, the nearest requests are suggested as buttons, which send a request
//! that the phrases read (`leftovers/suggestions.rs`).
//!
//! **The order.** A message is read from one folder to the next: `split` divides it into requests and words, `names` finds
//! the names of existing things in it, `requests` reads whole requests, `answers` what only has a meaning in its place, and
//! `leftovers` reports what was not used. [`mod@order`] has the order of the rules as tables.
//!
//! **Names first.** Names of existing things are found in a message before anything else
//! ([`lexicon`]); each capability lists its names, and the situation holds those that are
//! mentioned. Then [`slots`] extracts moments, weights, numbers and users and drops politeness, and
//! [`intents`] matches the rest of the sentence with the rows of each capability: verbs, nouns, and
//! the slots that they take. Phrases with a fixed order, and questions, are [`lines`] of text. A
//! capability provides both ([`phrases::Phrases`]), and [`phrase_book`] has those of all capabilities. If two
//! match equally well, the person is asked.
//!
//! **No word is dropped.** Each word of a request for a change belongs to a value, to the phrase or
//! to politeness. If words are left over, they are reported and nothing is done.
//!
//! Each request becomes a [`user_request::UserRequest`], and [`RulesModel`] answers with tool calls or text. The only
//! input is the [`situation::Situation`]. A turn asks several things about one message, which is
//! read only once ([`memory`]).
//!
//! This crate depends on no platform. Start reading at [`mod@order`], then at [`lines`].
//!
//! One large regular expression per phrase was rejected as a design: names are free text in the
//! middle of a sentence, and their end is easier to describe with words than with groups.

mod answers;
pub mod asked;
mod calls;
#[cfg(any(test, feature = "checking"))]
pub mod checking;
pub mod claims;
mod leftovers;
mod memory;
mod names;
mod order;
pub mod phrase_book;
pub mod phrases;
mod requests;
pub mod situation;
mod split;
pub mod user_request;

use std::{borrow::Cow, sync::Arc};

use async_trait::async_trait;
use countersign_model::{Error, Model, Purpose, Request, Response};
use serde::Deserialize as _;
use serde_json::{Map, Value};

pub use self::{
    answers::corrections,
    answers::refusals::{
        ForbiddenChange, declines, drops_any, ends_draft, forbidden_change, is_cancellation, is_no, is_retraction,
        refuses, says_forget, says_undo, withdraws,
    },
    answers::stop_words::{StopRequest, stop_request},
    calls::Hint,
    leftovers::left_out::left_out,
    names::lexicon,
    requests::{dates, intents, lines, slots},
    split::{conditions, id_lists, words},
};
use self::{
    answers::{follow_ups, refusals, stop_words},
    leftovers::{either, languages, quotations, suggestions},
    lexicon::Mention,
    names::references,
    phrase_book::{MENTION_CONFIDENCE, PhraseBook},
    phrases::{Stage, Utterance},
    requests::{doubts, in_place, own_terms, talk},
    situation::Situation,
    split::{asides, phrase_list, steps},
    user_request::{Talk, UserRequest},
    words::strip_politeness,
};

/// A [`Model`] that answers from the phrases of a [`PhraseBook`].
#[derive(Clone, Debug, Default)]
pub struct RulesModel(pub Arc<PhraseBook>);

#[async_trait]
impl Model for RulesModel {
    fn name(&self) -> &str {
        "rules"
    }

    fn is_remote(&self) -> bool {
        false
    }

    async fn respond(&self, request: &Request) -> Result<Response, Error> {
        if matches!(request.purpose, Purpose::Classify | Purpose::Generate) {
            let reason = "the documented phrases are for conversations, not for mail".to_owned();
            return Err(Error::Refused { reason });
        }
        let situation = Situation::deserialize(&request.situation)
            .map_err(|error| Error::Decode { reason: format!("the situation: {error}") })?;
        Ok(calls::answer(&self.0, request, &situation))
    }
}

/// The meaning of a message that may not be addressed to the bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A request to look something up or to change it.
    Request,
    /// A correction of the draft or of the change on a card.
    Correction,
    /// The draft is not wanted any more.
    Drop,
    /// “Ok” or “rather not”, said about a card or a change.
    Agreement,
    /// “Hello”, “thanks”.
    Chat,
    /// Words that are not understood.
    Nothing,
}

/// The queries of the rest of the program.
impl PhraseBook {
    /// Returns the tools and actions that the message seems to need, as a guess before a model is
    /// asked.
    pub fn hint(&self, situation: &Situation) -> Hint {
        calls::hint(self, situation)
    }

    /// Returns a message with names in place of references to the last list; `None` if it has no such references.
    pub fn with_names(&self, situation: &Situation) -> Option<String> {
        match self.resolved(situation) {
            Ok(Cow::Owned(resolved)) => Some(resolved.said),
            Ok(Cow::Borrowed(_)) | Err(_) => None,
        }
    }

    /// Returns the request as which the message is read, if no rule reads it as it is and the rules answered it nevertheless.
    pub fn taken_as(&self, situation: &Situation) -> Option<String> {
        calls::taken_as(self, situation)
    }

    /// Returns the tool that answers the message and its arguments, if the message is a documented
    /// question. The result of the tool can then be shown as it is, without a model to word the
    /// reply.
    pub fn documented_read(&self, situation: &Situation) -> Option<(String, Value)> {
        match self.understand(situation).user_request {
            UserRequest::Read { tool, arguments } => Some((tool, Value::Object(arguments))),
            _ => None,
        }
    }

    /// Returns what a message may mean that no rule reads: a question that is clearly meant, or the question which of the
    /// nearest requests is; `None` if none is near.
    pub fn suggest(&self, situation: &Situation) -> Option<user_request::Interpretation> {
        calls::suggestion(self, situation, &self.understand(situation)).map(suggestions::Suggestion::interpretation)
    }

    /// Returns true if the meaning of the message depends on the existing names: it asks for a
    /// change or for something by its name, or is not understood without them.
    pub fn wants_names(&self, situation: &Situation) -> bool {
        let interpretation = self.understand(situation);
        match &interpretation.user_request {
            _ if interpretation.confidence <= MENTION_CONFIDENCE => true,
            UserRequest::Read { arguments, .. } => self.about(arguments).is_some(),
            UserRequest::Change { .. } | UserRequest::Unclear { .. } => true,
            UserRequest::Talk(Talk::NothingDone(_)) => true, // “don't pause X, stop it”
            UserRequest::Talk(_)
            | UserRequest::Term { .. }
            | UserRequest::Update(_)
            | UserRequest::Drop
            | UserRequest::Unsupported => false,
        }
    }

    /// Returns true if the message names nothing that is known, although it asks for something by its name or is not
    /// understood. Something may be new. Each of several requests is looked at when it is due.
    pub fn lacks_names(&self, situation: &Situation) -> bool {
        if !steps::steps(self, situation).is_empty() {
            return false;
        }
        let interpretation = self.understand(situation);
        let names_nothing = |situation: &Situation| !situation.names.iter().any(|name| name.subject);
        match &interpretation.user_request {
            UserRequest::Unclear { .. } => names_nothing(situation),
            UserRequest::Read { .. } if interpretation.confidence <= MENTION_CONFIDENCE => names_nothing(situation),
            user_request => self.unknown_name(user_request, situation).is_some(),
        }
    }

    /// Returns the name of the thing that a request is about, if nothing is known by this name. It may be new, or no name.
    pub(crate) fn unknown_name(&self, user_request: &UserRequest, situation: &Situation) -> Option<String> {
        let name = match user_request {
            UserRequest::Change { action, params } if !self.makes_new(action) => self.about(params),
            UserRequest::Read { arguments, .. } => self.about(arguments),
            _ => None,
        }?;
        let names_it = |known: &Mention| known.subject && (known.name == name || known.said == name);
        let mut subjects = situation.subjects.values().chain(&situation.last_subject);
        let is_known = situation.names.iter().any(names_it) || subjects.any(|subject| *subject == name);
        (!is_known).then_some(name)
    }

    /// Returns the name of the thing that a request with these parameters is about.
    pub(crate) fn about(&self, params: &Map<String, Value>) -> Option<String> {
        self.phrases().find_map(|phrases| phrases.vocabulary().about(params))
    }

    /// Returns the parameters of a new thing that are known, in words; `None` if none is.
    pub fn so_far(&self, action: &str, params: &Map<String, Value>) -> Option<String> {
        self.worded(action, params)?.so_far
    }

    /// Returns true if this action creates something new.
    pub fn makes_new(&self, action: &str) -> bool {
        self.phrases().any(|phrases| phrases.vocabulary().creates.contains(&action))
    }

    /// Returns the requests in a message, in order, if there are several; otherwise nothing.
    pub fn steps(&self, situation: &Situation) -> Vec<String> {
        steps::steps(self, situation)
    }

    /// Returns the meaning of the message, as far as the phrases can tell.
    pub fn meaning(&self, situation: &Situation) -> Meaning {
        if !steps::steps(self, situation).is_empty() {
            return Meaning::Request;
        }
        let interpretation = self.understand(situation);
        match interpretation.user_request {
            UserRequest::Unclear { options, .. } if !options.is_empty() || interpretation.is_whole => Meaning::Request,
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
                Talk::Help
                | Talk::Limits
                | Talk::Pending
                | Talk::Approval
                | Talk::Why
                | Talk::AboutCard
                | Talk::NothingToUndo
                | Talk::NothingToRepeat,
            ) => Meaning::Request,
            UserRequest::Talk(Talk::Remark) | UserRequest::Unclear { .. } => Meaning::Nothing,
        }
    }

    /// Returns true if a text consists only of parts of a description: “weights 60/40, in
    /// assign-prog”.
    pub fn only_parts(&self, said: &str) -> bool {
        let (words, situation) = (self.words(said, &[]), Situation::default());
        let utterance = Utterance::of(strip_politeness(&words), &situation);
        self.phrases().any(|phrases| phrases.read(Stage::Parts, utterance).is_some())
    }

    /// Returns the family of the tool or action that the message asks for, as far as the phrases
    /// can tell.
    pub fn capability(&self, situation: &Situation) -> Option<String> {
        self.family_of(&self.understand(situation).user_request, situation).map(str::to_owned)
    }

    /// Returns a request for the change that the message only considers, as in “should I start Math
    /// Hints?”
    pub fn considered_request(&self, situation: &Situation) -> Option<String> {
        let words = self.words(&situation.said, &[]);
        doubts::considered_request(self, Utterance { is_question: true, ..Utterance::whole(&words, situation) })
    }

    /// Returns true if the message corrects the pending change or asks for another one.
    pub fn asks_otherwise(&self, situation: &Situation) -> bool {
        matches!(self.understand(situation).user_request, UserRequest::Update(_) | UserRequest::Change { .. })
    }

    /// Returns buttons for first requests: the label, and the message that is sent when it is
    /// pressed.
    pub fn first_steps(&self) -> Vec<(&'static str, &'static str)> {
        talk::first_steps(self)
    }

    /// Returns the reply to a message that agrees while a card is open but decides nothing, that
    /// declines a change, or that asks for a term of the glossary. These need no model, and no
    /// model may take them for a decision or a request.
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
