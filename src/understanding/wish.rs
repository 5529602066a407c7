//! What a message was understood to be.

use serde_json::{Map, Value};

/// What a person wishes.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// Nothing to look up.
    Talk(Talk),
    /// What a word means.
    Term {
        /// The word.
        name: &'static str,
        /// What it means.
        meaning: &'static str,
    },
    /// A question that one tool answers.
    Read {
        /// The tool.
        tool: String,
        /// With what.
        arguments: Map<String, Value>,
    },
    /// A change.
    Change {
        /// The action.
        action: String,
        /// What was said of it.
        params: Map<String, Value>,
    },
    /// More about the draft, or about the change on the card.
    Update(Map<String, Value>),
    /// The draft is not wanted any more.
    Drop,
    /// Understood, and nothing that can be done here.
    Unsupported,
    /// Not understood, or in several ways: then these are the ways.
    Unclear {
        /// What to ask.
        question: String,
        /// What may be meant, each as a full request.
        options: Vec<String>,
    },
}

/// What to chat about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk {
    /// “Hello.”
    Greeting,
    /// “Thanks!”
    Thanks,
    /// “What can you do?”
    Help,
    /// “What is waiting?”
    Pending,
    /// “How does approval work?”
    Approval,
    /// “Undo that”, and there is nothing.
    NothingToUndo,
    /// “Try again”, and there is nothing.
    NothingToRepeat,
    /// “Yes” or “no”, and nothing was asked.
    NothingAsked,
    /// “Ok”, and a card is open: that decides nothing.
    CardWaits,
    /// “Don't start it.”; the word for what was not done.
    NothingDone(&'static str),
}

/// A wish, and how sure that it is meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Understood {
    /// The wish.
    pub wish: Wish,
    /// From 0 to 1.
    pub confidence: f64,
    /// Whether it is known that every word was used.
    pub is_whole: bool,
}

impl Understood {
    /// Not understood at all.
    pub fn nothing() -> Self {
        Self { wish: Wish::Unclear { question: String::new(), options: Vec::new() }, confidence: 0.3, is_whole: false }
    }

    /// May be one of these.
    pub fn unclear(question: impl Into<String>, options: Vec<String>) -> Self {
        Self { wish: Wish::Unclear { question: question.into(), options }, confidence: 0.5, is_whole: false }
    }

    /// All but these words.
    pub fn all_but(words: &str) -> Self {
        Self::unclear(format!("I did not understand “{words}”. Please say it in other words."), Vec::new())
    }
}

impl From<Wish> for Understood {
    fn from(wish: Wish) -> Self {
        Self { wish, confidence: 0.95, is_whole: false }
    }
}

impl Wish {
    /// A question for a tool.
    pub fn read<const N: usize>(tool: &str, arguments: [(&str, Option<String>); N]) -> Self {
        let given = arguments.into_iter().filter_map(|(key, value)| Some((key.to_owned(), Value::String(value?))));
        Self::Read { tool: tool.to_owned(), arguments: given.collect() }
    }

    /// A change.
    pub fn change(action: &str, params: Map<String, Value>) -> Self {
        Self::Change { action: action.to_owned(), params }
    }
}
