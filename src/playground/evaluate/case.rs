//! The utterances of an evaluation, and how they are read.

use std::path::Path;

use anyhow::Context as _;
use countersign_assistant::state::AgentState;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::platform_stand_in::LAST_SUBJECT;

/// An utterance, the state of the thread before it, and the expected interpretation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The message; the text of the mail, if it is one.
    pub said: String,
    /// The category in the table of results; if it is missing, the capability, or else the intent.
    #[serde(default)]
    pub category: Option<String>,
    /// The messages before it in the thread, from the first on.
    #[serde(default)]
    pub before: Vec<String>,
    /// The head of the mail, if it is one.
    #[serde(default)]
    pub mail: Option<MailHead>,
    /// The expected class of the mail.
    #[serde(default)]
    pub class: Option<String>,
    /// The state of the thread before the message; missing fields have their defaults.
    #[serde(default, deserialize_with = "state_before")]
    pub given: AgentState,
    /// The expected intent: `needs_info`, `direct_answer`, or `unclear` if the person should be
    /// asked. Nothing if it is a mail.
    #[serde(default)]
    pub intent: String,
    /// The expected capability; if it is missing, any will do.
    #[serde(default)]
    pub capability: Option<String>,
    /// The expected action, if the message requests a change.
    #[serde(default)]
    pub action: Option<String>,
    /// The expected tool, if there is one; `drop_draft` if the draft should be discarded.
    #[serde(default)]
    pub tool: Option<String>,
    /// The expected parameters of the action or tool; others are ignored.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// The number of requests in the message, if there are several.
    #[serde(default, deserialize_with = "at_least_two")]
    pub steps: Option<usize>,
}

/// The head of a mail.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailHead {
    /// The address of the sender.
    pub from: String,
    /// The subject.
    pub subject: String,
}

impl Case {
    /// Returns the category in the table of results.
    pub fn category(&self) -> String {
        let known = self.category.clone().or_else(|| self.capability.clone());
        known.unwrap_or_else(|| if self.mail.is_some() { "mail" } else { &*self.intent }.to_owned())
    }
}

fn state_before<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AgentState, D::Error> {
    let mut given = Map::deserialize(deserializer)?;
    if let Some(subject) = given.remove(LAST_SUBJECT) {
        given.insert("last_subject".to_owned(), subject);
    }
    serde_json::from_value(Value::Object(given)).map_err(serde::de::Error::custom)
}

fn at_least_two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let steps = usize::deserialize(deserializer)?;
    (steps > 1).then_some(Some(steps)).ok_or_else(|| serde::de::Error::custom("`steps` must be at least 2"))
}

/// Reads the utterances in a file, or those that come with the program.
///
/// # Errors
///
/// If the file cannot be read, or is not a list of [`Case`]s.
pub fn cases(file: Option<&Path>) -> anyhow::Result<Vec<Case>> {
    let Some(file) = file else {
        return Ok(serde_json::from_str(include_str!("../../../config/evaluation.json"))
            .expect("a test reads these utterances"));
    };
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a list of utterances", file.display()))
}
