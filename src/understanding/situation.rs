//! What is known when a model is asked: the contract between the assistant's nodes and every model.
//!
//! A real model gets it as JSON in the last message; the grammar reads it as data. Everything in it is bounded by
//! whoever fills it, so that a turn costs the same on the first day of a thread and on the last.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lexicon::Mention;

/// What is known now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Situation {
    /// The person's words, as they were typed.
    pub said: String,
    /// Who said them.
    pub by: String,
    /// The date, such as `2025-01-31`.
    pub today: String,
    /// The names in the words of things that exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Mention>,
    /// One line for each turn that is no longer in the history.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<String>,
    /// What the words were found to mean; absent while that is the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// A change that still lacks something, from an earlier message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<Draft>,
    /// The change on the newest open card: a correction makes a new version of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_card: Option<Draft>,
    /// What somebody turned down last, and nobody has asked for anything since: a correction asks for it once more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turned_down: Option<TurnedDown>,
    /// The name of the thing that “it” means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_subject: Option<String>,
    /// The cards that wait for a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_cards: Vec<OpenCard>,
    /// The newest changes made in this thread, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recent_changes: Vec<RecentChange>,
    /// What the tools returned in this turn, by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gathered: BTreeMap<String, Value>,
    /// What went wrong in this turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

impl Situation {
    /// The change that a correction is about: what is being worked out, else what was asked for.
    pub fn in_hand(&self) -> Option<&Draft> {
        self.draft.as_ref().or_else(|| self.asked_for())
    }

    /// What waits on a card, else what was turned down.
    pub fn asked_for(&self) -> Option<&Draft> {
        self.on_card.as_ref().or_else(|| Some(&self.turned_down.as_ref()?.change))
    }
}

/// A change that somebody said no to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnedDown {
    /// The change.
    pub change: Draft,
    /// Why, in the words of who did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a message was found to mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// Whether anything has to be looked up or changed.
    pub intent_type: IntentType,
    /// What it needs, in the names that the capabilities give to what they do; talk needs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// From 0 to 1; below 0.7 the person is asked.
    pub confidence: f64,
    /// The request in one sentence, complete in itself.
    #[serde(default)]
    pub user_request_summary: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// What to say, where nothing has to be looked up.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// What to ask when it is not clear.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// What the person may have meant, each as a full request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Several requests in one message, in the order in which they are to be done, each a full request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
}

impl Analysis {
    /// Of one of several requests: that it is one was found out with the whole message.
    pub fn of_step(request: &str) -> Self {
        Self {
            intent_type: IntentType::NeedsInfo,
            confidence: 1.0,
            user_request_summary: request.to_owned(),
            ..Self::default()
        }
    }
}

/// Whether a message can be answered at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentType {
    /// General knowledge and talk: nothing to look up.
    #[default]
    DirectAnswer,
    /// Facts of the platform, or a change.
    NeedsInfo,
}

/// A change that is being worked out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// The name of the action.
    pub action: String,
    /// What is known of it so far.
    pub params: Map<String, Value>,
    /// What was asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
}

/// The question that a draft waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The parameter.
    pub parameter: String,
    /// The words of the question.
    #[serde(default)]
    pub question: String,
    /// What was offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// A card that waits for a person, and how it is decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenCard {
    /// What it asks.
    pub title: String,
    /// The words on the button that approves.
    pub approve: String,
    /// The words on the button that rejects.
    pub reject: String,
    /// Whether a plain “yes” in the thread approves as well, as long as no other card is open.
    pub typed: bool,
}

/// A change that was made, or was to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecentChange {
    /// What became of it, in one sentence.
    pub what: String,
    /// The action that puts it back, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Draft>,
    /// The same action once more, where it did not come about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Draft>,
}
