//! A kind of action: its parameters, its card, its request, and the recovery from a lost response.

use std::time::Duration;

use async_trait::async_trait;
use countersign_core::reply::{Card, Fact, Reply, Text};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActionRecord, Batches, ErrorKind, Form, Outcome, Reader, Scope, Undo, differences};

/// A validated change, ready for its card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The exact change.
    pub parameters: Value,
    /// The current state of the target.
    pub preconditions: Value,
    /// The card that people see.
    pub card: Card,
    /// The action that would undo the change.
    pub undo: Option<Undo>,
    /// The things that the change affects.
    #[serde(default, skip_serializing_if = "Scope::is_empty")]
    pub scope: Scope,
}

impl Proposal {
    /// Creates a change without preconditions, that cannot be undone by an action and affects nothing else.
    ///
    /// # Panics
    ///
    /// Panics if `parameters` is not plain data, such as a map whose keys are not strings.
    pub fn new(parameters: impl Serialize, card: Card) -> Self {
        Self {
            parameters: serde_json::to_value(parameters).expect("parameters are plain data"),
            preconditions: Value::Object(serde_json::Map::new()),
            card,
            undo: None,
            scope: Scope::default(),
        }
    }
}

/// The reason why a change cannot be proposed.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// Parameters are missing. The first one is asked for, and the given ones are kept.
    Missing(Vec<MissingParameter>),
    /// The change is refused, for example because it is already made, not allowed, or names
    /// something unknown.
    Refused {
        /// The kind of error.
        error: ErrorKind,
        /// The reply, with what people can do next.
        reply: Reply,
    },
}

/// A parameter that a person still has to provide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingParameter {
    /// The name in the action's schema.
    pub name: String,
    /// The question for the person.
    pub question: String,
    /// The possible answers, if known. They are shown as buttons.
    #[serde(default)]
    pub options: Vec<String>,
}

/// The result of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Performed {
    /// The attempt ended, with success or failure.
    Ended(Outcome),
    /// The request was sent, but no response arrived.
    NoAnswer {
        /// The known details, for the operator's log.
        detail: String,
    },
}

/// The result of reading the state back after an attempt without a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Probed {
    /// The change happened.
    Happened(Outcome),
    /// The state is unchanged: the change has not happened so far.
    DidNotHappen,
    /// A part of the change happened, and the rest of the state is unchanged. The change can be
    /// continued.
    Unfinished {
        /// The parts that happened, and those that did not.
        evidence: Text,
    },
    /// The state is neither the old one nor the intended one.
    Otherwise {
        /// The state that was read back.
        evidence: Text,
    },
    /// The change could not be read back.
    CannotTell {
        /// The reason.
        evidence: Text,
    },
}

/// The way to settle an action that is found in `Intent` without an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Send it again with the same key: the target recognises a repeat, or repeating changes nothing.
    Idempotent,
    /// Read the state back, several times if necessary: first when the request must have arrived,
    /// then at increasing intervals until the engine's `settle_within` has elapsed.
    Probe {
        /// The time after sending during which a request may still arrive, by this process's
        /// clocks.
        in_flight: Duration,
        /// True if making the change twice has the same effect as making it once. If false, a
        /// request without a response is never sent again; a person has to decide.
        repeatable: bool,
    },
    /// A person has to check.
    Ask,
}

/// The properties of a kind of action, such as its name and description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionInfo {
    /// The name, such as `archive_document`.
    pub name: &'static str,
    /// One sentence that tells a language model when to use the action.
    pub description: &'static str,
    /// The version, which must be increased when the meaning of the parameters or the request changes.
    pub version: u32,
    /// True if changes of this kind cannot be undone.
    pub irreversible: bool,
    /// True if the change affects only the person who asks, who then decides alone, regardless of the settings.
    pub is_personal: bool,
}

impl ActionInfo {
    /// Creates the first version of a kind whose changes can be undone and affect everyone.
    pub const fn new(name: &'static str, description: &'static str) -> Self {
        Self { name, description, version: 1, irreversible: false, is_personal: false }
    }
}

impl dyn ActionKind + '_ {
    /// Returns true if changes of this kind cannot be undone.
    pub fn irreversible(&self) -> bool {
        self.info().irreversible
    }
}

/// A kind of change in the outside world: its parameters, its card, its request.
#[async_trait]
pub trait ActionKind: Send + Sync {
    /// Returns the properties of the kind. It makes no calls.
    fn info(&self) -> ActionInfo;

    /// Returns [`ActionInfo::name`]. It is asked for often, so a kind whose other properties take a look overrides it.
    fn name(&self) -> &'static str {
        self.info().name
    }

    /// Returns the JSON schema of the parameters that a person or model gives.
    fn schema(&self) -> Value;

    /// Returns the form in which a person edits these parameters, or enters them from scratch
    /// (`{}`). The choices may be read from the system. Returns `None` if there is nothing to
    /// edit in a form.
    async fn form(&self, parameters: &Value) -> Option<Form> {
        let _ = parameters;
        None
    }

    /// Returns true if [`Self::form`] has fields for these parameters. Called each time a card is
    /// created.
    fn is_editable(&self, parameters: &Value) -> bool {
        let _ = parameters;
        false
    }

    /// Checks the parameters against the live system and determines the exact change. It only
    /// reads. `reader` is the person in a conversation who asks, if there is one: it matters for data that not everyone
    /// may see, and for times in the person's zone.
    ///
    /// # Errors
    ///
    /// [`PrepareError`], which states whether a person or a later attempt can help.
    async fn prepare(&self, parameters: &Value, reader: Option<&Reader>) -> Result<Proposal, PrepareError>;

    /// Reads the state in [`Proposal::preconditions`] again. If it differs, the execution is
    /// refused.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot be read. Nothing has been sent.
    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome>;

    /// Returns the changes since the card was shown, as lines of a card. `found` is the result of
    /// [`Self::preconditions`] now; the record has the one of then.
    fn differences(&self, record: &ActionRecord, found: &Value) -> Vec<Fact> {
        differences(&record.preconditions, found)
    }

    /// Returns a sentence if the state that was `found` is already the one that the change would make, so that there is
    /// nothing to do and nothing to try again. Called if the state differs from the one on the card.
    fn already(&self, record: &ActionRecord, found: &Value) -> Option<Text> {
        let _ = (record, found);
        None
    }

    /// Returns true if a change with the parameters `asked` is a new version of the one with the
    /// parameters `shown`, such as another value for the same setting. A plan that waits for the card
    /// of the latter then waits for the new card. Both are [`Proposal::parameters`].
    fn is_new_version(&self, shown: &Value, asked: &Value) -> bool {
        let _ = (shown, asked);
        false
    }

    /// Returns warnings about other open requests of the thread, `open`, that the card of a change with these parameters
    /// shows, such as one whose value is not set yet.
    fn beside(&self, parameters: &Value, open: &[ActionRecord]) -> Vec<Text> {
        let _ = (parameters, open);
        Vec::new()
    }

    /// Returns the time within which an approved change must be claimed by the program that carries it out elsewhere
    /// ([`ActionRecord::claimed`]); `None` if the engine carries it out itself. Such a change waits for its outcome in its
    /// [`Self::batches`].
    fn claimed_within(&self, record: &ActionRecord) -> Option<Duration> {
        let _ = record;
        None
    }

    /// Returns the batches of the change if it is too large for one request. In that case,
    /// [`Self::perform`], [`Self::recovery`] and [`Self::probe`] are not used, since they apply to
    /// a single request.
    fn batches(&self) -> Option<&dyn Batches> {
        None
    }

    /// Adds figures or an image to the reply about the outcome.
    fn report(&self, record: &ActionRecord, reply: Reply) -> Reply {
        let _ = record;
        reply
    }

    /// Sends the request, once.
    async fn perform(&self, record: &ActionRecord) -> Performed {
        Performed::NoAnswer { detail: format!("{} has no single request", record.name) }
    }

    /// Returns the way to settle an attempt without a response.
    fn recovery(&self) -> Recovery {
        Recovery::Ask
    }

    /// Reads the state back to find out whether the change happened.
    async fn probe(&self, record: &ActionRecord) -> Probed {
        let _ = record;
        Probed::CannotTell { evidence: Text::from("I can't check whether it happened.") }
    }
}

/// The reason why [`ActionKind::prepare`] returned no proposal.
#[derive(Clone, Debug, PartialEq)]
pub enum PrepareError {
    /// The change is refused, or a person has to give more parameters.
    Refusal(Refusal),
    /// The request is answered without a change.
    Answered {
        /// The answer.
        reply: Reply,
        /// The answer as data, such as for the condition of a later step.
        result: Value,
    },
    /// The system cannot be reached at the moment.
    Unavailable {
        /// The kind of error.
        error: ErrorKind,
        /// The reply.
        reply: Reply,
    },
}

impl From<Refusal> for PrepareError {
    fn from(refusal: Refusal) -> Self {
        Self::Refusal(refusal)
    }
}
