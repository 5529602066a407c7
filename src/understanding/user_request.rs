//! The request that a message expresses.

use serde_json::{Map, Value};

use super::situation::Draft;

/// A request of a person.
#[derive(Clone, Debug, PartialEq)]
pub enum UserRequest {
    /// Talk, with nothing to look up.
    Talk(Talk),
    /// A question about a term of the glossary.
    Term {
        /// The term.
        name: &'static str,
        /// The meaning.
        meaning: &'static str,
    },
    /// A question that one tool answers.
    Read {
        /// The tool.
        tool: String,
        /// The arguments of the tool.
        arguments: Map<String, Value>,
    },
    /// A change.
    Change {
        /// The action.
        action: String,
        /// The parameters that were given.
        params: Map<String, Value>,
    },
    /// Further parameters of the draft or of the change on the card.
    Update(Map<String, Value>),
    /// The draft is not wanted any more.
    Drop,
    /// A request that is understood but not supported.
    Unsupported,
    /// Words that are not understood or ambiguous.
    Unclear {
        /// The question to ask.
        question: String,
        /// The possible meanings, each as a full request.
        options: Vec<String>,
    },
}

/// A kind of talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk {
    /// “Hello.”
    Greeting,
    /// “Thanks!”
    Thanks,
    /// “What can you do?”
    Help,
    /// “What can't you do?”
    Limits,
    /// “What is waiting?”
    Pending,
    /// “How does approval work?”
    Approval,
    /// “Why?”
    Why,
    /// “Undo that”, without anything to undo.
    NothingToUndo,
    /// “Try again”, without anything to try again.
    NothingToRepeat,
    /// “Yes” or “no”, without an open question.
    NothingAsked,
    /// A statement that asks for nothing: “we stopped it last week”, “brb lunch”.
    Remark,
    /// “Does that delete the data too?” while a card is open.
    AboutCard,
    /// “Ok” while a card is open, which does not decide it.
    CardWaits,
    /// “Don't start it”, with the past participle for the change that was not made: `started`.
    NothingDone(&'static str),
}

/// A request, with the confidence that it was meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Interpretation {
    /// The request.
    pub user_request: UserRequest,
    /// The confidence, from 0 to 1.
    pub confidence: f64,
    /// True if every word is known to be used.
    pub is_whole: bool,
    /// The change as far as it is understood, if a part of its description is not.
    pub draft: Option<Box<Draft>>,
}

impl Interpretation {
    /// Returns the interpretation of words that are not understood at all.
    pub fn nothing() -> Self {
        Self {
            user_request: UserRequest::Unclear { question: String::new(), options: Vec::new() },
            confidence: 0.3,
            is_whole: false,
            draft: None,
        }
    }

    /// Returns true if nothing was understood and there is no question to ask.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(&self.user_request, UserRequest::Unclear { question, options } if options.is_empty() && question.is_empty())
    }

    /// Returns the interpretation of a request of which every word is known to be used.
    pub fn whole(user_request: UserRequest) -> Self {
        Self { is_whole: true, ..user_request.into() }
    }

    /// Returns the interpretation of a value for one parameter of the change in hand.
    pub fn update(parameter: &str, value: impl Into<Value>) -> Self {
        UserRequest::Update(Map::from_iter([(parameter.to_owned(), value.into())])).into()
    }

    /// Returns the interpretation of words that may mean one of these options.
    pub fn unclear(question: impl Into<String>, options: Vec<String>) -> Self {
        Self {
            user_request: UserRequest::Unclear { question: question.into(), options },
            confidence: 0.5,
            is_whole: false,
            draft: None,
        }
    }

    /// Returns the interpretation of a message that this answers, such as what cannot be done.
    pub fn answered(answer: impl Into<String>) -> Self {
        Self { is_whole: true, ..Self::unclear(answer, Vec::new()) }
    }

    /// Returns the interpretation of a request for a change in whose description these words are not understood. The
    /// rest of the change is kept as a draft.
    pub fn partly_understood(words: &str, action: &str, params: Map<String, Value>) -> Self {
        let found = Self::unclear(
            format!("I couldn't make sense of “{words}”. What did you mean by it? You can also continue without it."),
            Vec::new(),
        );
        Self { draft: Some(Box::new(Draft::begun(action, params))), ..found }
    }

    /// Returns the interpretation of a message in which these words are not understood.
    pub fn partly_unclear(words: &str) -> Self {
        Self::unclear(format!("I couldn't make sense of “{words}”. What did you mean by it?"), Vec::new())
    }
}

impl From<UserRequest> for Interpretation {
    fn from(user_request: UserRequest) -> Self {
        match user_request {
            UserRequest::Unclear { question, options } => Self::unclear(question, options),
            user_request => Self { user_request, confidence: 0.95, is_whole: false, draft: None },
        }
    }
}

impl UserRequest {
    /// Creates a question that a tool answers. Arguments without a value are omitted.
    pub fn read<const N: usize>(tool: &str, arguments: [(&str, Option<String>); N]) -> Self {
        let given = arguments.into_iter().filter_map(|(key, value)| Some((key.to_owned(), Value::String(value?))));
        Self::Read { tool: tool.to_owned(), arguments: given.collect() }
    }

    /// Creates a change.
    pub fn change(action: &str, params: Map<String, Value>) -> Self {
        Self::Change { action: action.to_owned(), params }
    }
}
