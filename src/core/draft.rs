//! The draft of an answer: what people see of it while a language model writes it. It is replaced by the answer.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde::{Deserialize, Serialize};

use crate::ids::UserId;

/// The maximum number of parts of a draft. Slack shows at most 50 tasks.
const MAX_PARTS: usize = 40;

/// A draft. Parts are only added, and the words of the last one only continued: what is shown cannot be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// The person who is answered.
    pub to: UserId,
    /// The parts, in order.
    pub parts: Vec<Part>,
}

/// A part of a draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Words of the model, as Markdown.
    Words(String),
    /// What is being done, in a few words. It is done when another part follows.
    Task(String),
}

impl Draft {
    /// Creates an empty draft of an answer to this person.
    pub fn to(person: UserId) -> Self {
        Self { to: person, parts: Vec::new() }
    }

    /// Returns true if there are words in it.
    pub fn has_words(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Words(_)))
    }

    /// Adds what is being done now, unless it is the last part already.
    pub(crate) fn add_task(&mut self, title: &str) {
        let is_last = matches!(self.parts.last(), Some(Part::Task(last)) if last == title);
        if !title.is_empty() && !is_last && self.parts.len() < MAX_PARTS {
            self.parts.push(Part::Task(title.to_owned()));
        }
    }

    /// Replaces the words of the part at `at`, or adds them. Returns the place of the part. An answer that was begun again
    /// may have other words than those that are shown; they are left out until they continue them.
    pub(crate) fn write(&mut self, at: Option<usize>, words: &str) -> Option<usize> {
        let has_room = self.parts.len() < MAX_PARTS;
        if let Some(Part::Words(known)) = at.and_then(|at| self.parts.get_mut(at)) {
            if words.len() > known.len() && words.starts_with(known.as_str()) {
                words.clone_into(known);
            }
            return at;
        }
        has_room.then(|| {
            self.parts.push(Part::Words(words.to_owned()));
            self.parts.len() - 1
        })
    }
}

/// Tells whether answers are shown while they are written. Those who write drafts and those who show them share it.
#[derive(Clone, Debug, Default)]
pub struct Drafting(Arc<AtomicBool>);

impl Drafting {
    /// Creates it, switched on or off.
    pub fn new(on: bool) -> Self {
        Self(Arc::new(AtomicBool::new(on)))
    }

    /// Returns true if drafts are shown.
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Switches it off for good, since drafts cannot be shown here.
    pub fn switch_off(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
