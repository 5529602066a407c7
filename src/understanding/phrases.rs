//! The trait of a capability's phrases, which are understood without a language model.

use serde_json::{Map, Value};

use super::{
    lines::Candidate,
    situation::{Situation, Topic},
    user_request::{Interpretation, UserRequest},
    words::{Word, text},
};

/// A message or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Utterance<'a> {
    /// The words, without politeness.
    pub words: &'a [Word],
    /// The situation of the message.
    pub situation: &'a Situation,
    /// True if the message ends with a question mark.
    pub is_question: bool,
}

impl<'h> Utterance<'h> {
    /// Returns true if this word names a thing that belongs only to another capability.
    pub(crate) fn is_of_another(&self, word: &Word, owner: &str) -> bool {
        word.owner.as_deref().is_some_and(|of| of != owner)
    }

    /// Returns the topic of the thread, if it is of this capability.
    pub fn topic_of(&self, owner: &str) -> Option<&'h Topic> {
        self.situation.topic.as_ref().filter(|topic| topic.capability == owner)
    }

    /// Returns the name of the last subject of the thread, if it may be a thing of this capability.
    pub fn subject_of(&self, owner: &str) -> Option<&'h str> {
        let subject = self.situation.last_subject.as_deref()?;
        let mut owners = self.situation.names.iter().filter(|name| name.subject && name.name == subject);
        let known = owners.clone().any(|name| !name.owner.is_empty());
        let may_be_its = match &self.situation.topic {
            _ if known => owners.any(|name| name.owner == owner),
            Some(topic) => topic.capability == owner,
            None => true,
        };
        may_be_its.then_some(subject)
    }
}

/// The phrases of a capability. Only [`Phrases::vocabulary`] is required.
///
/// Most phrases are data ([`Vocabulary::lines`]); the others are read by methods.
pub trait Phrases: Send + Sync {
    /// Returns the words that are data.
    fn vocabulary(&self) -> Vocabulary;

    /// Returns a number that changes when the phrases do. As long as it is the same, the same message in the same situation
    /// has to have the same meaning.
    fn generation(&self) -> u64 {
        0
    }

    /// Returns the values of a kind defined by this capability with which these words can begin.
    fn slot(&self, kind: &str, utterance: Utterance<'_>) -> Vec<Candidate> {
        let _ = (kind, utterance);
        Vec::new()
    }

    /// Returns the requests that a sentence with one verb combines, in order: “print it in colour” sets the colour and
    /// then prints.
    fn combined_requests(&self, utterance: Utterance<'_>) -> Option<Vec<String>> {
        let _ = utterance;
        None
    }

    /// Returns the requests that together do what a request with a restriction asks for, in order: a start “for class 5B
    /// only” first limits who takes part. The person is asked whether they are meant.
    fn in_steps(&self, utterance: Utterance<'_>) -> Option<Vec<String>> {
        let _ = utterance;
        None
    }

    /// Adjusts the request of a line to the values in it.
    fn finish_request(&self, user_request: UserRequest) -> UserRequest {
        user_request
    }

    /// Reads words that only look like a request. Tried before all requests.
    fn first(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let _ = utterance;
        None
    }

    /// Reads a change by position.
    fn change(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let _ = utterance;
        None
    }

    /// Reads a question by position.
    fn question(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let _ = utterance;
        None
    }

    /// Reads a question by the things that it mentions, if nothing else matches.
    fn mentioned(&self, utterance: Utterance<'_>) -> Option<UserRequest> {
        let _ = utterance;
        None
    }

    /// Reads a correction of the draft, or of the change on a card.
    fn correction(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let _ = utterance;
        None
    }

    /// Reads the answer to an open question about one of its changes.
    fn answer(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let _ = utterance;
        None
    }

    /// Returns the value of a parameter that is written in these words.
    fn value(&self, parameter: &str, words: &[Word]) -> Value {
        let _ = parameter;
        text(words).into()
    }

    /// Returns true if the words are only parts of a description.
    fn only_parts(&self, words: &[Word]) -> bool {
        let _ = words;
        false
    }

    /// Returns the name of the thing that a change or a question is about.
    fn about(&self, params: &Map<String, Value>) -> Option<String> {
        let _ = params;
        None
    }

    /// Returns the request that shows the thing of this name, or all things for `None`.
    fn show_request(&self, name: Option<String>) -> Option<UserRequest> {
        let _ = name;
        None
    }

    /// Returns true if this request only shows something.
    fn only_shows(&self, user_request: &UserRequest) -> bool {
        let _ = user_request;
        false
    }

    /// Returns true if this action creates something, whose name may be any text.
    fn makes_new(&self, action: &str) -> bool {
        let _ = action;
        false
    }

    /// Returns the parameters of a new thing that are known, in words: `“Foo” in mathstream, 60/40`.
    fn so_far(&self, action: &str, params: &Map<String, Value>) -> Option<String> {
        let _ = (action, params);
        None
    }

    /// Returns the past participle for a change, as in “nothing was started”.
    fn past_participle(&self, action: &str, params: &Map<String, Value>) -> &'static str {
        let _ = (action, params);
        "changed"
    }

    /// Returns this change worded as a request.
    fn request(&self, action: &str, params: &Map<String, Value>) -> Option<String> {
        let _ = (action, params);
        None
    }
}

/// The words of a capability that are data.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary {
    /// The nouns for its things, singular and plural, such as `document` and `documents`. The first is a singular.
    pub things: &'static [&'static str],
    /// The words for groups of people that may precede the id of a group, such as `class`.
    pub groups: &'static [&'static str],
    /// The words that introduce a list. An item of such a list is not a separate request.
    pub lists: &'static [&'static str],
    /// Its requests as lines of text; see [`super::lines`].
    pub lines: &'static str,
    /// Phrases for requests that cannot be served, separated by `|`.
    pub unsupported_requests: &'static str,
    /// The possible questions and changes, for “help”: a heading, and a line for each.
    pub help: &'static str,
    /// The simplest requests, in italics, for a reply to words that were not understood.
    pub simplest_requests: &'static str,
    /// The word for its things in a greeting: “Ask me about your …”. Empty if it has no things that a thread can be about.
    pub greeting: &'static str,
    /// Buttons for first requests: the label, and the message that is sent when it is pressed. The last one explains
    /// something.
    pub first_steps: &'static [(&'static str, &'static str)],
    /// True if its tools and actions are about things of other capabilities.
    pub about_others: bool,
}

impl Vocabulary {
    /// Creates a vocabulary of these nouns; the second is the word for its things in a greeting.
    pub const fn new(things: &'static [&'static str]) -> Self {
        let greeting = if things.len() > 1 { things[1] } else { "" };
        Self {
            things,
            groups: &[],
            lists: &[],
            lines: "",
            unsupported_requests: "",
            help: "",
            simplest_requests: "",
            greeting,
            first_steps: &[],
            about_others: false,
        }
    }
}
