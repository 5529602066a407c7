//! The turn of an [`super::state::AgentState`]: what is known of the message in hand.

use std::collections::BTreeMap;

use countersign_core::{
    clock::Timestamp,
    ids::{MessageTs, UserId},
    reply::Reply,
};
use countersign_graph::action::{Evidence, Proposal};
use countersign_model::{Message, limits::Reached};
use countersign_understanding::{
    lexicon::Mention,
    situation::{Analysis, Draft, Replan},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The maximum length of a message in a turn, in characters.
pub const MAX_MESSAGE_LENGTH: usize = 4_000;

/// A turn: from one message to its answer. As in [`super::state::AgentState`], empty fields are not stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Turn {
    /// The number of the turn: a count of the messages of the thread. It is always stored, because it identifies a
    /// suspended turn.
    pub number: u64,
    /// The message, within [`MAX_MESSAGE_LENGTH`].
    pub said: String,
    /// The length of the message in characters, if it was longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_from: Option<usize>,
    /// The person who wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// The time of the message.
    pub at: Timestamp,
    /// Slack's time stamp of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ts: Option<MessageTs>,
    /// The thing that “it” meant when the message came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub it: Option<String>,
    /// True if the message picked an offered choice, whose words are then [`Self::said`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_picked: bool,
    /// Earlier words of people that the turn is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<Heard>,
    /// True if a language model wrote the words of the turn, as a step of a plan.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_of_model: bool,
    /// The person's time zone, such as `Europe/Berlin`, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The names of existing things in the message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Mention>,
    /// The number of plans that were made in this turn.
    #[serde(skip_serializing_if = "is_default")]
    pub plans_created: u32,
    /// True if the person wants to see the plan of several requests before it begins.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub plan_first: bool,
    /// The plan that ended early, if this turn makes another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replan: Option<Replan>,
    /// The person's notes that gave the change a value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from_notes: Vec<String>,
    /// The phase of the turn.
    pub phase: Phase,
    /// The analysis of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// The change that is being worked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Draft>,
    /// True if the change was given as data, so that no words have to be understood.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_explicit: bool,
    /// True if the change is a correction of the change on an open card.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub corrects: bool,
    /// True if the message takes none of the choices that were offered: “never mind”.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub declines_offer: bool,
    /// The parameters that the change still lacks, as the model sees it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The answers of tools, by key, in the order of [`Self::reads`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gathered: BTreeMap<String, Value>,
    /// The calls of reading tools, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<ToolRead>,
    /// The problems of the turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Problem>,
    /// The families whose tools a model asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<String>,
    /// The number of calls of the gathering model.
    #[serde(skip_serializing_if = "is_default")]
    pub rounds: u32,
    /// The gathering model's messages and the results of its calls so far; empty when the gathering ends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exchange: Vec<Message>,
    /// The change that waits for its card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Proposal>,
    /// The words of people that ask for that change, if a language model proposed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The calls of the first round whose tools were not offered, by their ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_offered: Vec<String>,
    /// The answer in a model's words, until it is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Reply>,
    /// True if the language model did not answer and the grammar was used instead.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_model: bool,
    /// The limit that is the reason for that, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_limit: Option<Reached>,
    /// The final reply, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_response: Option<String>,
}

impl Turn {
    /// Returns true if the message asked for something that could not be done or found.
    pub(super) fn led_nowhere(&self) -> bool {
        let was_read = self.reads.iter().any(|read| read.failed.is_none());
        !was_read && (self.change.is_some() || !self.reads.is_empty())
    }
}

/// Words of a person that later ones may continue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Heard {
    /// Slack's time stamp of the message; `None` for a step of a plan that a person approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ts: Option<MessageTs>,
    /// The person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// The words, shortened.
    pub text: String,
    /// The thing that “it” meant then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub it: Option<String>,
    /// True if the words are those of an offered choice.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_picked: bool,
}

/// The phase of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Phase {
    /// The meaning of the message is being found.
    #[default]
    Analyzing,
    /// Facts and parameters are being gathered.
    GatheringInfo,
    /// A card is shown.
    Confirming,
    /// The answer is being written.
    Responding,
}

/// One call of a reading tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRead {
    /// The name of the tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
    /// The key of the answer in [`Turn::gathered`].
    pub key: String,
    /// The reply if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Reply>,
    /// The time of reading, if that was in an earlier turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
}

/// A problem in a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// The kind, such as `not_found`.
    pub kind: String,
    /// The problem in words.
    pub message: String,
}

/// Returns true for a default value. Such a field need not be stored: a missing field is read as its default.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
