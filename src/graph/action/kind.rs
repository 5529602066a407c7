//! What an action is made of: parameters, card, request, and how a lost answer is settled.

use std::time::Duration;

use async_trait::async_trait;
use countersign_core::reply::{Card, Fact, Reply, Text};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActionRecord, Batches, ErrorKind, Form, Outcome, Reader, Scope, Undo, differences};

/// A validated change, ready for its card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// Exactly what will be done.
    pub parameters: Value,
    /// What is true of the target now.
    pub preconditions: Value,
    /// What people will see.
    pub card: Card,
    /// What would put things back.
    pub undo: Option<Undo>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Scope::is_empty")]
    pub scope: Scope,
}

/// Why a change cannot be proposed.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// Parameters are missing: ask for the first, keep the rest.
    Missing(Vec<MissingParameter>),
    /// It is not to be done, and why: already so, not allowed, unknown name.
    Refused {
        /// What is wrong.
        error: ErrorKind,
        /// What to say, with a way on.
        reply: Reply,
    },
}

/// A parameter that a person still has to give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingParameter {
    /// Its name in the action's schema.
    pub name: String,
    /// How to ask for it.
    pub question: String,
    /// What can be answered, where that is known; drawn as buttons.
    #[serde(default)]
    pub options: Vec<String>,
}

/// What became of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Performed {
    /// It ended, well or badly.
    Ended(Outcome),
    /// The request left and no answer came.
    NoAnswer {
        /// What is known, for the operator's log.
        detail: String,
    },
}

/// What reading back showed after an attempt without an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Probed {
    /// It did happen.
    Happened(Outcome),
    /// Everything reads as before: it has not happened so far.
    DidNotHappen,
    /// A part of it is there, and the rest reads as before: it can be gone on with.
    Unfinished {
        /// What is there, and what is not.
        evidence: Text,
    },
    /// It was read back, and is neither as it was nor as it was to be.
    Otherwise {
        /// What was read back.
        evidence: Text,
    },
    /// It cannot be told: it could not be read back.
    CannotTell {
        /// Why not.
        evidence: Text,
    },
}

/// What to do with an action that is found in `Intent` without an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Send it again with the same key: the target recognises a repeat, or repeating changes nothing.
    Idempotent,
    /// Read back, several times if need be: first when a request must have arrived, then at growing distances for as long
    /// as the engine's `settle_within`.
    Probe {
        /// How long a request may still arrive after it left, by the clocks of this side.
        in_flight: Duration,
        /// Whether doing it twice leaves the same as doing it once. What is not repeatable is never sent again without an
        /// answer: a person is asked.
        repeatable: bool,
    },
    /// A person has to look.
    Ask,
}

/// One thing that can be done to the outside world: its parameters, its card, its request.
#[async_trait]
pub trait ActionKind: Send + Sync {
    /// Its name, such as `archive_document`.
    fn name(&self) -> &'static str;

    /// Counts up when parameters or request change their meaning.
    fn version(&self) -> u32 {
        1
    }

    /// One sentence for the language model: when to use it.
    fn description(&self) -> &'static str;

    /// The JSON schema of the parameters a person or model gives.
    fn schema(&self) -> Value;

    /// Whether it cannot be put back.
    fn irreversible(&self) -> bool {
        false
    }

    /// The form in which a person changes these parameters, or gives them from nothing (`{}`). It may read what can be
    /// chosen. `None`: there is nothing that a form could change.
    async fn form(&self, parameters: &Value) -> Option<Form> {
        let _ = parameters;
        None
    }

    /// Whether [`Self::form`] has something for these parameters; asked each time a card is made.
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

    /// The same for somebody in a conversation. Only what is not for everybody to see looks at who that is.
    ///
    /// # Errors
    ///
    /// As [`Self::prepare`].
    async fn prepare_for(&self, parameters: &Value, reader: &Reader) -> Result<Proposal, PrepareError> {
        let _ = reader;
        self.prepare(parameters).await
    }

    /// Reads what [`Proposal::preconditions`] holds, again. A difference refuses the execution.
    ///
    /// # Errors
    ///
    /// If the system cannot be read; nothing has been sent.
    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome>;

    /// What changed between the card and now, as lines of a card: what [`Self::preconditions`] read then, and what it
    /// reads now.
    fn differences(&self, shown: &Value, found: &Value) -> Vec<Fact> {
        differences(shown, found)
    }

    /// How it is made in batches, if it is too large for one request. [`Self::perform`], [`Self::recovery`] and
    /// [`Self::probe`] are for one request, and are not used then.
    fn batches(&self) -> Option<&dyn Batches> {
        None
    }

    /// Adds to the reply about the outcome what its sentence does not say: figures, a picture.
    fn report(&self, record: &ActionRecord, reply: Reply) -> Reply {
        let _ = record;
        reply
    }

    /// Sends the request, once.
    async fn perform(&self, record: &ActionRecord) -> Performed {
        Performed::NoAnswer { detail: format!("{} has no single request", record.name) }
    }

    /// How an attempt without an answer is settled.
    fn recovery(&self) -> Recovery {
        Recovery::Ask
    }

    /// Reads back whether it happened.
    async fn probe(&self, record: &ActionRecord) -> Probed {
        let _ = record;
        Probed::CannotTell { evidence: Text::from("This cannot be looked up.") }
    }
}

/// Why [`ActionKind::prepare`] has no proposal.
#[derive(Clone, Debug, PartialEq)]
pub enum PrepareError {
    /// A person can help.
    Refusal(Refusal),
    /// The system cannot be asked at the moment.
    Unavailable {
        /// What is wrong.
        error: ErrorKind,
        /// What to say.
        reply: Reply,
    },
}

impl From<Refusal> for PrepareError {
    fn from(refusal: Refusal) -> Self {
        Self::Refusal(refusal)
    }
}
