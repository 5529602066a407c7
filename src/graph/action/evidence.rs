//! Where a change comes from: the words of a person that name what changes, and how.
//!
//! Code finds the words when the change is proposed, and no model does. A change that a person gave as data, in a form, with
//! a button or a command, has no words and needs none. What no person named was suggested: its card says so, and nothing
//! that was agreed beforehand may be spent on it.

use countersign_core::{
    ids::{MessageTs, UserId},
    reply::Text,
};
use serde::{Deserialize, Serialize};

use super::ActionRecord;

/// The maximum number of names in the first line of a card.
const MAX_NAMES: usize = 3;

/// Where a change comes from. Empty if a person gave the change directly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// The words that name what changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target: Vec<Words>,
    /// The words that name the kind of change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kind: Vec<Words>,
    /// What no person named, if the assistant suggested the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested: Option<Suggested>,
}

/// Words of a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Words {
    /// The message; `None` for a step of a plan that a person approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageTs>,
    /// The place of the first character in the message, counted from 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub from: u32,
    /// The place after the last character; 0 for the whole message.
    #[serde(skip_serializing_if = "is_zero")]
    pub to: u32,
    /// The name that the words stand for, if they only point to it: “it”.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub means: Option<String>,
}

/// What no person named of a change that the assistant suggested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Suggested {
    /// The names of things that change and that no person named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unnamed: Vec<String>,
    /// True if no person asked for a change of this kind.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
    /// What was read in the same turn and contains the first of these names: its own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_in: Option<String>,
}

fn is_zero(place: &u32) -> bool {
    *place == 0
}

impl Evidence {
    /// Returns true if a person gave the change itself, and there is nothing to store.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Suggested {
    /// Returns what no person named, as a sentence about the person who was answered: “@ana didn't mention exp-1.”
    pub fn sentence(&self, answered: &UserId) -> Text {
        let line = Text::new().person(answered.clone());
        let line = match self.unnamed.len() {
            0 => line.plain(" didn't ask for this change."),
            count => {
                let more = count.saturating_sub(MAX_NAMES);
                let names = self.unnamed.iter().take(MAX_NAMES).map(|name| Text::new().bold(name));
                let others = (more > 0).then(|| Text::from(format!("{more} more")));
                let names = Text::listed(names.chain(others).collect::<Vec<_>>(), "or");
                let line = line.plain(" didn't mention ").join(names);
                line.plain(if self.unasked { ", and didn't ask for this change." } else { "." })
            }
        };
        match &self.read_in {
            Some(source) => line.plain(" It comes from what I read about ").bold(source).plain("."),
            None => line,
        }
    }
}

impl ActionRecord {
    /// Returns true if no person named what changes, or how, so that the assistant suggested it.
    pub fn is_suggested(&self) -> bool {
        self.evidence.suggested.is_some()
    }

    /// Returns who wanted the change: “asked by @ana”, or “suggested by the assistant while answering @ana”.
    pub fn asked_by(&self) -> Text {
        Text::from(asked_by(self.is_suggested())).person(self.requested_by.clone())
    }
}

/// Returns the words before the name of the person who asked, or whom a suggestion answered.
pub fn asked_by(is_suggested: bool) -> &'static str {
    if is_suggested { "suggested by the assistant while answering " } else { "asked by " }
}
