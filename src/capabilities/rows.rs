//! Tools and actions as rows: what they are called, what they take, and the few functions in which they differ.
//!
//! [`Read`] is a tool and [`Change`] an action, both over a client `D` and the parameters `A` that a person or model gives. A row
//! derives from these types what would otherwise be written for each: the JSON schema, the parsing of the parameters with a
//! refusal that says what is wrong, and of those that were stored with the record. What a row leaves out
//! ([`Read::new`], [`Change::new`]) has the meaning that [`Tool`] or [`ActionKind`] gives it.

use std::time::Duration;

use async_trait::async_trait;
use countersign_core::reply::{Fact, Reply, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Batches, ErrorKind, Form, Outcome, Performed, PrepareError, Probed, Proposal,
    Reader, Recovery, differences,
};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    ShownList, Tool, ToolError, ToolInfo,
    parameters::{parameters, schema},
};

/// No parameters.
#[derive(Debug, serde::Deserialize, JsonSchema)]
pub struct Nothing {}

/// The function of a tool, [`Tool::call`].
pub type Call<D, A> = for<'a> fn(&'a D, A, Option<&'a Reader>) -> BoxFuture<'a, Result<Value, ToolError>>;

/// A tool.
pub struct Read<D, A> {
    /// The client that it reads with.
    pub deps: D,
    /// Its properties.
    pub info: ToolInfo,
    /// The fields of `A` that it takes, if several tools share the type; `None` for all.
    pub takes: Option<&'static [&'static str]>,
    /// Completes the schema of `A` with what only the client knows.
    pub schema: fn(&D, &mut Value),
    /// Reads.
    pub call: Call<D, A>,
    /// [`Tool::present`].
    pub present: fn(&D, &Value, &Value) -> Option<Reply>,
    /// [`Tool::subject`].
    pub subject: fn(&Value, &Value) -> Option<String>,
    /// [`Tool::listed`].
    pub listed: fn(&Value, &Value) -> Option<ShownList>,
}

impl<D, A> Read<D, A> {
    /// Creates a tool whose answers are shown as data and are about no single thing.
    pub fn new(deps: D, info: ToolInfo, call: Call<D, A>) -> Self {
        Self {
            deps,
            info,
            takes: None,
            schema: |_, _| (),
            call,
            present: |_, _, _| None,
            subject: |_, _| None,
            listed: |_, _| None,
        }
    }
}

#[async_trait]
impl<D, A> Tool for Read<D, A>
where
    D: Send + Sync,
    A: DeserializeOwned + JsonSchema + Send,
{
    fn info(&self) -> ToolInfo {
        self.info
    }

    fn schema(&self) -> Value {
        let mut schema = schema::<A>();
        if let Some(takes) = self.takes
            && let Some(all) = schema["properties"].as_object_mut()
        {
            all.retain(|name, _| takes.contains(&name.as_str()));
        }
        if schema["properties"].is_null() {
            schema["properties"] = Value::Object(Map::new());
        }
        (self.schema)(&self.deps, &mut schema);
        schema
    }

    async fn call(&self, arguments: &Value, reader: Option<&Reader>) -> Result<Value, ToolError> {
        let nothing = Value::Object(Map::new());
        let given = parameters(if arguments.is_null() { &nothing } else { arguments })?;
        (self.call)(&self.deps, given, reader).await
    }

    fn present(&self, arguments: &Value, answer: &Value) -> Option<Reply> {
        (self.present)(&self.deps, arguments, answer)
    }

    fn subject(&self, arguments: &Value, answer: &Value) -> Option<String> {
        (self.subject)(arguments, answer)
    }

    fn listed(&self, arguments: &Value, answer: &Value) -> Option<ShownList> {
        (self.listed)(arguments, answer)
    }
}

/// How an attempt without an answer is settled: [`Recovery`], with the function that reads back.
pub enum Settle<D, A, S> {
    /// Send it again: the target recognises a repeat, or repeating changes nothing.
    Again,
    /// Read back, at first when the request must have arrived.
    ReadBack {
        /// The time after sending during which a request may still arrive.
        in_flight: fn(&D) -> Duration,
        /// True if making the change twice has the same effect as making it once.
        repeatable: bool,
        /// [`ActionKind::probe`].
        probe: Probe<D, A, S>,
    },
    /// A person has to check.
    Ask,
    /// A person has to check, and can have it read back ([`ActionKind::probe`]).
    AskAfter(Probe<D, A, S>),
}

/// The function that makes a proposal, [`ActionKind::prepare`].
pub type Prepare<D, A, S> =
    for<'a> fn(&'a Change<D, A, S>, A, Option<&'a Reader>) -> BoxFuture<'a, Result<Proposal, PrepareError>>;

/// A function on a record and the parameters that are stored with it.
pub type OnRecord<D, A, S, T> = for<'a> fn(&'a Change<D, A, S>, S, &'a ActionRecord) -> BoxFuture<'a, T>;

/// The function that reads back, [`ActionKind::probe`].
pub type Probe<D, A, S> = OnRecord<D, A, S, Probed>;

/// The function that makes a form, [`ActionKind::form`].
pub type MakeForm<D, A, S> = for<'a> fn(&'a Change<D, A, S>, &'a Value) -> BoxFuture<'a, Option<Form>>;

/// An action: a person or model gives `A`; what was decided on is stored as `S`.
///
/// Its functions are given the row, so that they can use its client, and itself as an [`ActionKind`].
pub struct Change<D, A, S> {
    /// The client that it reads and sends with.
    pub deps: D,
    /// Its properties.
    pub info: ActionInfo,
    /// [`ActionKind::prepare`].
    pub prepare: Prepare<D, A, S>,
    /// [`ActionKind::preconditions`]; by default there are none.
    pub now: OnRecord<D, A, S, Result<Value, Outcome>>,
    /// [`ActionKind::perform`].
    pub send: OnRecord<D, A, S, Performed>,
    /// [`ActionKind::recovery`] and [`ActionKind::probe`].
    pub settle: Settle<D, A, S>,
    /// [`ActionKind::form`] for parameters that can be edited in a form.
    pub form: Option<MakeForm<D, A, S>>,
    /// [`ActionKind::is_editable`], if there is a form.
    pub is_editable: fn(&Value) -> bool,
    /// [`ActionKind::differences`].
    pub differences: fn(&ActionRecord, &Value) -> Vec<Fact>,
    /// [`ActionKind::already`].
    pub already: fn(&ActionRecord, &Value) -> Option<Text>,
    /// [`ActionKind::is_new_version`].
    pub is_new_version: fn(&Value, &Value) -> bool,
    /// [`ActionKind::beside`].
    pub beside: fn(&Value, &[ActionRecord]) -> Vec<Text>,
    /// [`ActionKind::batches`].
    pub batches: Option<fn(&Self) -> &dyn Batches>,
    /// [`ActionKind::report`].
    pub report: fn(&Self, &ActionRecord, Reply) -> Reply,
}

impl<D, A, S> Change<D, A, S> {
    /// Creates an action without preconditions and without a form. Without an answer it is sent again, so what it sends
    /// has to be recognised as a repeat, or change nothing the second time; otherwise set [`Change::settle`].
    pub fn new(deps: D, info: ActionInfo, prepare: Prepare<D, A, S>, send: OnRecord<D, A, S, Performed>) -> Self {
        Self {
            deps,
            info,
            prepare,
            now: |_, _, _| Box::pin(async { Ok(Value::Object(Map::new())) }),
            send,
            settle: Settle::Again,
            form: None,
            is_editable: |_| true,
            differences: |record, found| differences(&record.preconditions, found),
            already: |_, _| None,
            is_new_version: |_, _| false,
            beside: |_, _| Vec::new(),
            batches: None,
            report: |_, _, reply| reply,
        }
    }

    /// Creates an action that is made in batches, and so has no single request.
    pub fn in_batches(
        deps: D,
        info: ActionInfo,
        prepare: Prepare<D, A, S>,
        batches: fn(&Self) -> &dyn Batches,
    ) -> Self {
        let send = |_: &Self, _: S, record: &ActionRecord| -> BoxFuture<'_, Performed> {
            let detail = format!("{} has no single request", record.name);
            Box::pin(async { Performed::NoAnswer { detail } })
        };
        Self { settle: Settle::Ask, batches: Some(batches), ..Self::new(deps, info, prepare, send) }
    }
}

/// Reads the parameters that are stored with a record.
///
/// # Errors
///
/// The outcome of an action whose parameters cannot be read: nothing was done.
pub fn stored<S: DeserializeOwned>(record: &ActionRecord) -> Result<S, Outcome> {
    S::deserialize(&*record.parameters).map_err(|_| Outcome::Failed {
        error: ErrorKind::Execution,
        summary: Text::from("The stored request can't be read, so nothing was done. Ask again."),
    })
}

#[async_trait]
impl<D, A, S> ActionKind for Change<D, A, S>
where
    D: Send + Sync,
    A: DeserializeOwned + JsonSchema + Send,
    S: DeserializeOwned + Send,
{
    fn info(&self) -> ActionInfo {
        self.info
    }

    fn schema(&self) -> Value {
        schema::<A>()
    }

    fn is_editable(&self, parameters: &Value) -> bool {
        self.form.is_some() && (self.is_editable)(parameters)
    }

    async fn form(&self, parameters: &Value) -> Option<Form> {
        match self.form {
            Some(form) if (self.is_editable)(parameters) => form(self, parameters).await,
            _ => None,
        }
    }

    async fn prepare(&self, given: &Value, reader: Option<&Reader>) -> Result<Proposal, PrepareError> {
        (self.prepare)(self, parameters(given)?, reader).await
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        (self.now)(self, stored(record)?, record).await
    }

    fn differences(&self, record: &ActionRecord, found: &Value) -> Vec<Fact> {
        (self.differences)(record, found)
    }

    fn already(&self, record: &ActionRecord, found: &Value) -> Option<Text> {
        (self.already)(record, found)
    }

    fn is_new_version(&self, shown: &Value, asked: &Value) -> bool {
        (self.is_new_version)(shown, asked)
    }

    fn beside(&self, parameters: &Value, open: &[ActionRecord]) -> Vec<Text> {
        (self.beside)(parameters, open)
    }

    fn batches(&self) -> Option<&dyn Batches> {
        self.batches.map(|batches| batches(self))
    }

    fn report(&self, record: &ActionRecord, reply: Reply) -> Reply {
        (self.report)(self, record, reply)
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        match stored(record) {
            Ok(parameters) => (self.send)(self, parameters, record).await,
            Err(outcome) => Performed::Ended(outcome),
        }
    }

    fn recovery(&self) -> Recovery {
        match &self.settle {
            Settle::Again => Recovery::Idempotent,
            Settle::ReadBack { in_flight, repeatable, .. } => {
                Recovery::Probe { in_flight: in_flight(&self.deps), repeatable: *repeatable }
            }
            Settle::Ask | Settle::AskAfter(_) => Recovery::Ask,
        }
    }

    async fn probe(&self, record: &ActionRecord) -> Probed {
        match (&self.settle, stored(record)) {
            (Settle::ReadBack { probe, .. } | Settle::AskAfter(probe), Ok(parameters)) => {
                probe(self, parameters, record).await
            }
            (Settle::ReadBack { .. } | Settle::AskAfter(_), Err(_)) => {
                Probed::CannotTell { evidence: Text::from("The stored request can't be read.") }
            }
            (Settle::Again | Settle::Ask, _) => {
                Probed::CannotTell { evidence: Text::from("I can't check whether it happened.") }
            }
        }
    }
}
