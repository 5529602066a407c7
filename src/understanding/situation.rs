//! The situation that a model receives with a request: the contract between the assistant's nodes
//! and every model.
//!
//! A language model receives it as JSON in the last message, and the phrases use it directly. The
//! code that fills it limits the size of all content, so that the cost of a turn does not grow with
//! the length of the thread.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lexicon::Mention;

/// The data about a message and its thread that a model receives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Situation {
    /// The message, as typed.
    pub said: String,
    /// The author of the message.
    pub by: String,
    /// The current date in the author's time zone, such as `2025-01-31`.
    pub today: String,
    /// The author's time zone, such as `Europe/Berlin`; UTC if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The names of existing things that the message mentions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Mention>,
    /// One line for each turn that is no longer in the history.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<String>,
    /// The analysis of the message; `None` before it is analysed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// An incomplete change from an earlier message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<Draft>,
    /// The change on the newest open card. A correction creates a new version of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_card: Option<Draft>,
    /// The last requested change, if it was rejected and nothing was requested since. A correction
    /// requests it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turned_down: Option<RejectedChange>,
    /// The plan that ended early, for which one other plan may be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replan: Option<Replan>,
    /// The name of the thing that “it” refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_subject: Option<String>,
    /// The last subjects of the capabilities that [`Self::last_subject`] does not belong to, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub subjects: BTreeMap<String, String>,
    /// The last list that the thread showed, to which “the second one” and “those” refer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed: Option<Listed>,
    /// The topic of the thread; `None` before its first request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<Topic>,
    /// The last call, if it came after that of the topic and its capability has no things to talk about, such as a watch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aside: Option<Topic>,
    /// The cards that are waiting for a decision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_cards: Vec<OpenCard>,
    /// The most recent changes made in this thread, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recent_changes: Vec<RecentChange>,
    /// The results of the tools in this turn, by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gathered: BTreeMap<String, Value>,
    /// The errors of this turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

impl Situation {
    /// Returns the situation with a message that lacks the lines which quote something, such as a file: they are not what
    /// the person says. A message of quotes only is left as it is.
    pub fn without_quotes(&self) -> Cow<'_, Self> {
        let is_quoted = |line: &&str| line.starts_with("> ");
        let own: Vec<&str> = self.said.lines().filter(|line| !is_quoted(line)).collect();
        let said = own.join("\n").trim().to_owned();
        match said.is_empty() || !self.said.lines().any(|line| is_quoted(&line)) {
            true => Cow::Borrowed(self),
            false => Cow::Owned(Self { said, ..self.clone() }),
        }
    }

    /// Returns the change that a correction applies to: the draft, or else [`Self::asked_for`].
    pub fn in_hand(&self) -> Option<&Draft> {
        self.draft.as_ref().or_else(|| self.asked_for())
    }

    /// Returns the change on the newest open card, or else the one that was rejected last.
    pub fn asked_for(&self) -> Option<&Draft> {
        self.on_card.as_ref().or_else(|| Some(&self.turned_down.as_ref()?.change))
    }
}

/// The topic of a thread: the tool or action that was used last. It decides between capabilities if the words of a
/// message do not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Topic {
    /// The name of the capability.
    pub capability: String,
    /// The tool or action.
    pub call: String,
    /// Its parameters, unless they are long.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

/// A list that was shown, as far as it was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listed {
    /// The tool that read it.
    pub call: String,
    /// The parameters of the tool.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// The names of its entries, in the order in which they were shown.
    pub names: Vec<String>,
    /// True if the list has no other entries.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_complete: bool,
    /// True if the thread was about a single thing since.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_passed: bool,
}

/// A change that a person rejected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RejectedChange {
    /// The change.
    pub change: Draft,
    /// The reason, in the words of the person who rejected it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A plan that ended before its last step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Replan {
    /// The reason, in one sentence or in the words of the person who refused the plan.
    pub reason: String,
    /// The requests that were done, each with its result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    /// The requests that were not done, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<String>,
}

/// The meaning of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The kind of message.
    pub intent_type: IntentType,
    /// The family of tools and actions that the request needs; `None` for small talk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// The confidence, from 0 to 1. Below 0.7, the person is asked what they mean.
    pub confidence: f64,
    /// The request in one self-contained sentence.
    #[serde(default)]
    pub user_request_summary: String,
    /// The reason for this analysis.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The reply, if there is nothing to look up.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// The question to ask if the request is not clear.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// The possible meanings of an unclear request, each as a full request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The individual requests of a message that contains several, in execution order. Each is a
    /// full request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
}

impl Analysis {
    /// Returns the analysis of one of several requests. Its confidence is 1, since the whole
    /// message has already been analysed.
    pub fn of_step(request: &str) -> Self {
        Self {
            intent_type: IntentType::NeedsInfo,
            confidence: 1.0,
            user_request_summary: request.to_owned(),
            ..Self::default()
        }
    }
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentType {
    /// General knowledge or small talk, which can be answered at once.
    #[default]
    DirectAnswer,
    /// A question about the platform's data, or a change.
    NeedsInfo,
}

/// An action with its parameters, complete or incomplete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// The name of the action.
    pub action: String,
    /// The parameters known so far.
    pub params: Map<String, Value>,
    /// The question that was asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<DraftQuestion>,
    /// The question about a part of the request that was not understood, until it is answered or left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

impl Draft {
    /// Creates a draft without an open question.
    pub fn begun(action: &str, params: Map<String, Value>) -> Self {
        Self { action: action.to_owned(), params, asked: None, unread: None }
    }
}

/// The open question about a draft.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DraftQuestion {
    /// The parameter that is asked for.
    pub parameter: String,
    /// The text of the question.
    #[serde(default)]
    pub question: String,
    /// The answers that were offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// A card that is waiting for a decision, and the ways to decide it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenCard {
    /// The question on the card.
    pub title: String,
    /// The label of the button that approves.
    pub approve: String,
    /// The label of the button that rejects.
    pub reject: String,
    /// True if a plain “yes” in the thread also approves it, as long as no other card is open and nobody has said no.
    pub typed: bool,
    /// The lines of the card, such as `Status: inactive → running`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// The warnings and notes on the card.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// True if the change cannot be undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub irreversible: bool,
}

/// A change that was made or attempted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecentChange {
    /// The outcome, in one sentence.
    pub what: String,
    /// The action that undoes the change, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Draft>,
    /// The same action again, if the change was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Draft>,
}
