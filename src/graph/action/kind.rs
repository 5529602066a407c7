//! A kind of action: parameters, card, request, and the recovery from a lost answer.

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
    /// The present state of the target.
    pub preconditions: Value,
    /// The card that people see.
    pub card: Card,
    /// The action that would undo the change.
    pub undo: Option<Undo>,
    /// The things that the change is about.
    #[serde(default, skip_serializing_if = "Scope::is_empty")]
    pub scope: Scope,
}

/// The reason why a change cannot be proposed.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// Parameters are missing: ask for the first, keep the rest.
    Missing(Vec<MissingParameter>),
    /// The change is refused: already made, not allowed, unknown name.
    Refused {
        /// The kind of error.
        error: ErrorKind,
        /// The reply, with a way on.
        reply: Reply,
    },
}

/// A parameter that a person still has to give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingParameter {
    /// The name in the action's schema.
    pub name: String,
    /// The question that asks for it.
    pub question: String,
    /// The possible answers, where they are known; drawn as buttons.
    #[serde(default)]
    pub options: Vec<String>,
}

/// The result of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Performed {
    /// The attempt ended, with success or failure.
    Ended(Outcome),
    /// The request left and no answer came.
    NoAnswer {
        /// The known details, for the operator's log.
        detail: String,
    },
}

/// The result of reading back after an attempt without an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Probed {
    /// The change happened.
    Happened(Outcome),
    /// Everything reads as before: it has not happened so far.
    DidNotHappen,
    /// A part of it happened, and the rest reads as before: it can be continued.
    Unfinished {
        /// The parts that are there, and those that are not.
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
    /// Read back, several times if need be: first when a request must have arrived, then at growing distances for as
    /// long as the engine's `settle_within`.
    Probe {
        /// The time for which a request may still arrive after it left, by the clocks of this side.
        in_flight: Duration,
        /// True if doing it twice has the same effect as once. If false, it is never sent again without an answer: a
        /// person is asked.
        repeatable: bool,
    },
    /// A person has to look.
    Ask,
}

/// A kind of change in the outside world: its parameters, its card, its request.
#[async_trait]
pub trait ActionKind: Send + Sync {
    /// Returns the name, such as `archive_document`.
    fn name(&self) -> &'static str;

    /// Returns the version, which counts up when parameters or request change their meaning.
    fn version(&self) -> u32 {
        1
    }

    /// Describes in one sentence for the language model when to use it.
    fn description(&self) -> &'static str;

    /// Returns the JSON schema of the parameters that a person or model gives.
    fn schema(&self) -> Value;

    /// Returns true if it cannot be undone.
    fn irreversible(&self) -> bool {
        false
    }

    /// Returns true if it concerns nobody but the person who asks, who then decides alone, whatever the settings say.
    fn is_personal(&self) -> bool {
        false
    }

    /// Returns the form in which a person changes these parameters, or gives them from nothing (`{}`). It may read the
    /// choices from the system. `None`: there is nothing that a form could change.
    async fn form(&self, parameters: &Value) -> Option<Form> {
        let _ = parameters;
        None
    }

    /// Returns true if [`Self::form`] has fields for these parameters; asked each time a card is made.
    fn is_editable(&self, parameters: &Value) -> bool {
        let _ = parameters;
        false
    }

    /// Checks the parameters against the live system and works out the exact change. Reads only.
    ///
    /// # Errors
    ///
    /// [`PrepareError`] says whether a person, or time, can help.
    async fn prepare(&self, parameters: &Value) -> Result<Proposal, PrepareError>;

    /// Does the same for a person in a conversation. The reader matters only for data that not everyone may see.
    ///
    /// # Errors
    ///
    /// As [`Self::prepare`].
    async fn prepare_for(&self, parameters: &Value, reader: &Reader) -> Result<Proposal, PrepareError> {
        let _ = reader;
        self.prepare(parameters).await
    }

    /// Reads the state again that [`Proposal::preconditions`] holds. A difference refuses the execution.
    ///
    /// # Errors
    ///
    /// If the system cannot be read; nothing has been sent.
    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome>;

    /// Returns the changes between the card and now, as lines of a card: the state that [`Self::preconditions`] read
    /// then, and the state it reads now.
    fn differences(&self, shown: &Value, found: &Value) -> Vec<Fact> {
        differences(shown, found)
    }

    /// Returns the batches of the change if it is too large for one request. [`Self::perform`], [`Self::recovery`] and
    /// [`Self::probe`] are for one request, and are not used then.
    fn batches(&self) -> Option<&dyn Batches> {
        None
    }

    /// Adds figures or a picture to the reply about the outcome.
    fn report(&self, record: &ActionRecord, reply: Reply) -> Reply {
        let _ = record;
        reply
    }

    /// Sends the request, once.
    async fn perform(&self, record: &ActionRecord) -> Performed {
        Performed::NoAnswer { detail: format!("{} has no single request", record.name) }
    }

    /// Returns the way to settle an attempt without an answer.
    fn recovery(&self) -> Recovery {
        Recovery::Ask
    }

    /// Reads back whether the change happened.
    async fn probe(&self, record: &ActionRecord) -> Probed {
        let _ = record;
        Probed::CannotTell { evidence: Text::from("This cannot be looked up.") }
    }
}

/// The reason why [`ActionKind::prepare`] has no proposal.
#[derive(Clone, Debug, PartialEq)]
pub enum PrepareError {
    /// A person can help.
    Refusal(Refusal),
    /// The system cannot be asked at the moment.
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
