//! What a capability knows of the words for its things: the phrases that are understood without a language model.

use serde_json::{Map, Value};

use super::{
    lines::Candidate,
    situation::Situation,
    wish::{Understood, Wish},
    words::{Word, text},
};

/// A message that is read.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// Its words, without politeness.
    pub words: &'a [Word],
    /// What is known beside it.
    pub situation: &'a Situation,
    /// Whether it ends with a question mark.
    pub asks: bool,
}

impl<'h> Heard<'h> {
    /// Whether this word names a thing of another capability alone.
    pub(crate) fn is_of_another(&self, word: &Word, owner: &str) -> bool {
        word.owner.as_deref().is_some_and(|of| of != owner)
    }

    /// What was talked about, if it may be a thing of this capability.
    pub(crate) fn subject_of(&self, owner: &str) -> Option<&'h str> {
        let subject = self.situation.last_subject.as_deref()?;
        let mut owners = self.situation.names.iter().filter(|name| name.subject && name.name == subject);
        let known = owners.clone().any(|name| !name.owner.is_empty());
        (!known || owners.any(|name| name.owner == owner)).then_some(subject)
    }
}

/// The phrases of a capability. Only the words for its things have to be there.
///
/// Most of what can be said is data: [`Phrases::lines`]. What is left is read by functions.
pub trait Phrases: Send + Sync {
    /// What its things are called, singular and plural, such as `document` and `documents`; the first names one of
    /// them.
    fn things(&self) -> &'static [&'static str];

    /// Whether what it does is about things of other capabilities.
    fn about_others(&self) -> bool {
        false
    }

    /// What its groups of people are called where an id follows, such as `class`.
    fn groups(&self) -> &'static [&'static str] {
        &[]
    }

    /// Words after which a list follows, whose last item is no request of its own.
    fn lists(&self) -> &'static [&'static str] {
        &[]
    }

    /// Requests as lines of text; see [`super::lines`].
    fn lines(&self) -> &'static str {
        ""
    }

    /// The values that a slot of its own can have at the beginning of these words.
    fn slot(&self, kind: &str, heard: Heard<'_>) -> Vec<Candidate> {
        let _ = (kind, heard);
        Vec::new()
    }

    /// What a line asks for, where that depends on its values.
    fn settled(&self, wish: Wish) -> Wish {
        wish
    }

    /// What comes before all requests: something that only looks like one of them.
    fn first(&self, heard: Heard<'_>) -> Option<Understood> {
        let _ = heard;
        None
    }

    /// A change that is read by its places.
    fn change(&self, heard: Heard<'_>) -> Option<Understood> {
        let _ = heard;
        None
    }

    /// A question that is read by its places.
    fn question(&self, heard: Heard<'_>) -> Option<Understood> {
        let _ = heard;
        None
    }

    /// A question by what it mentions, where nothing else fits.
    fn mentioned(&self, heard: Heard<'_>) -> Option<Wish> {
        let _ = heard;
        None
    }

    /// A correction of what is worked out, or waits on a card.
    fn correction(&self, heard: Heard<'_>) -> Option<Understood> {
        let _ = heard;
        None
    }

    /// The answer to an open question about one of its changes.
    fn answer(&self, heard: Heard<'_>) -> Option<Understood> {
        let _ = heard;
        None
    }

    /// The value of a parameter, as it is written in these words.
    fn value(&self, parameter: &str, words: &[Word]) -> Value {
        let _ = parameter;
        text(words).into()
    }

    /// Whether words are parts of a description and nothing else.
    fn only_parts(&self, words: &[Word]) -> bool {
        let _ = words;
        false
    }

    /// The name of the thing that a change is about.
    fn about(&self, params: &Map<String, Value>) -> Option<String> {
        let _ = params;
        None
    }

    /// What shows the thing of this name, or all of them.
    fn shown(&self, name: Option<String>) -> Option<Wish> {
        let _ = name;
        None
    }

    /// Whether this wish only shows something.
    fn only_shows(&self, wish: &Wish) -> bool {
        let _ = wish;
        false
    }

    /// Whether this action makes something new, whose name may be any words.
    fn makes_new(&self, action: &str) -> bool {
        let _ = action;
        false
    }

    /// What was not done, where this change is not wanted: “started”.
    fn not_done(&self, action: &str, params: &Map<String, Value>) -> &'static str {
        let _ = (action, params);
        "changed"
    }

    /// How to ask for this change in words.
    fn request(&self, action: &str, params: &Map<String, Value>) -> Option<String> {
        let _ = (action, params);
        None
    }

    /// What people ask for and nobody here can do; phrases, separated by `|`.
    fn never(&self) -> &'static str {
        ""
    }

    /// What can be asked and what can be changed, for “help”: a heading, and a line for each.
    fn help(&self) -> &'static str {
        ""
    }

    /// The simplest requests, in italics, where nothing was understood.
    fn simple(&self) -> &'static str {
        ""
    }

    /// Its things in a greeting: “Ask me about your …”.
    fn greeting(&self) -> &'static str {
        self.things().get(1).copied().unwrap_or_default()
    }

    /// What somebody can begin with, as buttons: label, and what is said when it is pressed. The last one explains
    /// something.
    fn first_steps(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}
