//! The phrases of a capability, which are understood without a language model: data, and a trait for the rest.

use serde_json::{Map, Value};

use super::{
    lines::Candidate,
    situation::{Situation, Topic},
    user_request::{Interpretation, UserRequest},
    words::{Word, strip_politeness},
};

/// A message or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Utterance<'a> {
    /// The words, without politeness.
    pub words: &'a [Word],
    /// The words of the whole message, with politeness.
    pub typed: &'a [Word],
    /// The situation of the message.
    pub situation: &'a Situation,
    /// True if the message ends with a question mark.
    pub is_question: bool,
}

impl<'h> Utterance<'h> {
    /// Creates an utterance of these words, which is no question.
    pub fn of(words: &'h [Word], situation: &'h Situation) -> Self {
        Self { words, typed: words, situation, is_question: false }
    }

    /// Creates the utterance of a whole message, whose words these are.
    pub(super) fn whole(typed: &'h [Word], situation: &'h Situation) -> Self {
        let is_question = situation.said.trim_end().ends_with('?');
        Self { words: strip_politeness(typed), typed, situation, is_question }
    }

    /// Returns true if this word names a thing that belongs only to another capability.
    pub(crate) fn is_of_another(&self, word: &Word, owner: &str) -> bool {
        word.owner.as_deref().is_some_and(|of| of != owner)
    }

    /// Returns the topic of the thread, if it is of this capability.
    pub fn topic_of(&self, owner: &str) -> Option<&'h Topic> {
        self.situation.topic.as_ref().filter(|topic| topic.capability == owner)
    }

    /// Returns 0 if the last call of the thread is one of this capability, 1 if the thread is about its things.
    pub(crate) fn place_of(&self, owner: &str) -> Option<usize> {
        let places = [&self.situation.aside, &self.situation.topic];
        places.into_iter().position(|place| place.as_ref().is_some_and(|place| place.capability == owner))
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

/// A point in the reading of a message at which a capability reads the words itself. [`super::phrase_book`] has their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A correction of the draft, or of the change on a card.
    Correction,
    /// Words that only look like a request. Tried before all requests.
    First,
    /// A question by position.
    Question,
    /// A change by position.
    Change,
    /// The answer to an open question about one of its changes.
    Answer,
    /// One of the answers that were offered to such a question; the words are the whole answer.
    OfferedAnswer,
    /// Words that are only parts of a description, and no request.
    Parts,
    /// A question by the things that it mentions, if nothing else matches.
    Mention,
}

/// Requests that together do what one sentence asks for, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Division {
    /// The sentence combines them: “print it in colour” sets the colour and then prints.
    Combined(Vec<String>),
    /// They may be what is meant, so the person is asked: a start “for class 5B only” first limits who takes part.
    Suggested(Vec<String>),
}

/// A change in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wording {
    /// The past participle, as in “nothing was started”.
    pub participle: &'static str,
    /// The change as a request, if there is one.
    pub request: Option<String>,
    /// The known parameters of something new: `“Foo” in mathstream, 60/40`; `None` if none is known.
    pub so_far: Option<String>,
}

/// The phrases of a capability. Only [`Phrases::vocabulary`] is required.
///
/// Most phrases are data ([`Vocabulary`]); the others are read by [`Phrases::read`].
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

    /// Reads words that are too free for a line.
    fn read(&self, stage: Stage, utterance: Utterance<'_>) -> Option<Interpretation> {
        let _ = (stage, utterance);
        None
    }

    /// Returns the requests that a sentence with one verb consists of.
    fn divided(&self, utterance: Utterance<'_>) -> Option<Division> {
        let _ = utterance;
        None
    }

    /// Adjusts the request of a line to the values in it.
    fn finish_request(&self, user_request: UserRequest) -> UserRequest {
        user_request
    }

    /// Returns one of its changes in words.
    fn worded(&self, action: &str, params: &Map<String, Value>) -> Option<Wording> {
        let _ = (action, params);
        None
    }
}

/// A vocabulary is all that most capabilities say.
impl Phrases for Vocabulary {
    fn vocabulary(&self) -> Vocabulary {
        *self
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
    /// The parameters that name the thing which a change or a question is about; the first one that is given counts.
    pub subjects: &'static [&'static str],
    /// The parameters whose values belong to one thing alone, so that the same is not asked for another one.
    pub own: &'static [&'static str],
    /// The kinds of names, other than of its things, that limit requests. Each is also a parameter and a kind of value.
    pub kinds: &'static [&'static str],
    /// The actions that can be asked for again as they were, with another number of users.
    pub repeats: &'static [&'static str],
    /// The calls that begin something, each with the request that ends it: `stop watching “<thing>”`, with a value of the
    /// call. The tools among them take the parameter `instead`, which is true if the earlier one is to end.
    pub ended_by: &'static [(&'static str, &'static str)],
    /// The actions that create something, whose name may be any text.
    pub creates: &'static [&'static str],
    /// The tools that show its things.
    pub shows: Option<Shows>,
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

/// The tools that show the things of a capability.
#[derive(Clone, Copy, Debug)]
pub struct Shows {
    /// The tool that shows one thing, and its parameter for the name.
    pub one: (&'static str, &'static str),
    /// The tool that lists all things.
    pub all: &'static str,
}

impl Shows {
    /// Returns the request that shows the thing of this name, or all things for `None`.
    pub(super) fn request(&self, name: Option<String>) -> UserRequest {
        match name {
            Some(name) => UserRequest::read(self.one.0, [(self.one.1, Some(name))]),
            None => UserRequest::read(self.all, []),
        }
    }
}

impl Vocabulary {
    /// Returns the name of the thing that a change or a question is about.
    pub fn about(&self, params: &Map<String, Value>) -> Option<String> {
        let named = self.subjects.iter().find_map(|key| params.get(*key)?.as_str());
        named.map(str::to_owned)
    }

    /// Creates a vocabulary of these nouns; the second is the word for its things in a greeting.
    pub const fn new(things: &'static [&'static str]) -> Self {
        let greeting = if things.len() > 1 { things[1] } else { "" };
        Self {
            things,
            groups: &[],
            lists: &[],
            subjects: &[],
            own: &[],
            kinds: &[],
            repeats: &[],
            ended_by: &[],
            creates: &[],
            shows: None,
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
