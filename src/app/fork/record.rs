//! What a thread has read, which answers the tools of its copy; and the capabilities of the copy, which ask nothing else.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use countersign_assistant::{
    blob_cache::{self, MIN_RETENTION},
    state::ToolRead,
};
use countersign_capabilities::{
    Capability, CapabilityInfo, Family, ShownList, Things, Tool, ToolError, ToolInfo, parameters,
};
use countersign_core::reply::{Choice, Reply, Text};
use countersign_graph::{
    action::{ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, PrepareError, Proposal, Reader},
    store::{Keep, Store, Version},
};
use countersign_planner::condition::Verdict;
use countersign_understanding::lexicon::{Mention, Name, Names};
use serde::Deserialize as _;
use serde_json::{Value, json};

/// The reply for a read that the thread has not made.
const NOT_ON_RECORD: &str = "This thread is a copy, and that isn't on its record, so I can't look it up here.";

/// The reply for a change.
const NOTHING_CHANGED: &str = "This thread is a copy: nothing is changed from here.";

/// The reads of a thread, the names in its messages, and what its copy asked for in vain.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// The step that is copied.
    step: Version,
    reads: Vec<Read>,
    names: Vec<Name>,
    not_on_record: Mutex<Vec<Value>>,
    refused: Mutex<Vec<Value>>,
}

/// A read of a tool.
#[derive(Debug)]
struct Read {
    /// The step after which the answer was there.
    step: Version,
    /// The number of the turn.
    turn: u64,
    tool: String,
    arguments: Value,
    answer: Result<Value, Reply>,
}

impl Record {
    /// Creates an empty record for the copy of this step.
    pub(super) fn as_of(step: Version) -> Self {
        Self { step, ..Self::default() }
    }

    /// Adds the reads and names of a turn, as they are after a step.
    pub(super) fn learn(&mut self, step: Version, turn: &Value) {
        let number = turn["number"].as_u64().unwrap_or_default();
        for read in turn["reads"].as_array().into_iter().flatten() {
            let Ok(ToolRead { tool, arguments, key, failed, .. }) = ToolRead::deserialize(read) else { continue };
            let is_same = |known: &Read| known.turn == number && known.tool == tool && known.arguments == arguments;
            let answer = match (failed, &turn["gathered"][key]) {
                (Some(reply), _) => Err(reply),
                (None, Value::Null) => continue,
                (None, answer) => Ok(answer.clone()),
            };
            if !self.reads.iter().any(is_same) {
                self.reads.push(Read { step, turn: number, tool, arguments, answer });
            }
        }
        for mention in turn["names"].as_array().into_iter().flatten() {
            let Ok(Mention { kind, name, owner, subject, .. }) = Mention::deserialize(mention) else { continue };
            self.names.push(Name { kind, name, id: None, owner, subject });
        }
    }

    /// Replaces the names of large answers in `source` by the answers, which are kept in `copy` under the same names. Those
    /// that are gone are not on record.
    pub(super) async fn fetch(&mut self, source: &dyn Store, copy: &dyn Store) -> anyhow::Result<()> {
        for mut read in std::mem::take(&mut self.reads) {
            if let Some(name) = read.answer.as_ref().ok().and_then(blob_cache::name_of) {
                let Some(bytes) = source.get_blob(name).await? else { continue };
                copy.put_blob(&bytes, Keep::For(MIN_RETENTION)).await?;
                read.answer = Ok(serde_json::from_slice(&bytes)?);
            }
            self.reads.push(read);
        }
        Ok(())
    }

    /// Lists the reads.
    pub(super) fn summary(&self) -> Value {
        let reads = self.reads.iter();
        reads.map(|read| json!({ "tool": read.tool, "arguments": read.arguments, "step": read.step })).collect()
    }

    /// Returns the last answer to this call before the copied step, or else the first one after it.
    fn answer(&self, tool: &str, arguments: &Value) -> Option<&Result<Value, Reply>> {
        let (before, after): (Vec<_>, Vec<_>) = self
            .reads
            .iter()
            .filter(|read| read.tool == tool && read.arguments == *arguments)
            .partition(|read| read.step <= self.step);
        before.last().or(after.first()).map(|read| &read.answer)
    }

    /// Removes and returns the reads that were not on record, and the changes that were refused, each once.
    pub(super) fn take_asked_in_vain(&self) -> (Vec<Value>, Vec<Value>) {
        let take = |list: &Mutex<Vec<Value>>| {
            let mut asked = std::mem::take(&mut *list.lock().unwrap_or_else(PoisonError::into_inner));
            asked.dedup();
            asked
        };
        (take(&self.not_on_record), take(&self.refused))
    }
}

fn note(list: &Mutex<Vec<Value>>, asked: Value) {
    list.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
}

/// A capability that reads from the record and changes nothing.
pub(super) struct Recorded {
    inner: Arc<dyn Capability>,
    names: Arc<Names>,
    record: Arc<Record>,
}

impl Recorded {
    /// Puts the record in the place of the outside system of a capability.
    pub(super) fn new(inner: Arc<dyn Capability>, record: Arc<Record>) -> Self {
        let names = record.names.iter().filter(|name| name.owner == inner.name()).cloned();
        let names = Arc::new(Names::new(names.collect::<Vec<_>>()));
        Self { inner, names, record }
    }
}

#[async_trait]
impl Capability for Recorded {
    fn info(&self) -> CapabilityInfo {
        self.inner.info()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let recorded = |inner| -> Arc<dyn Tool> { Arc::new(RecordedTool { inner, record: self.record.clone() }) };
        self.inner.tools().into_iter().map(recorded).collect()
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        let refused = |inner| -> Arc<dyn ActionKind> { Arc::new(RefusedAction { inner, record: self.record.clone() }) };
        self.inner.actions().into_iter().map(refused).collect()
    }

    fn families(&self) -> Vec<Family> {
        self.inner.families()
    }

    fn subject(&self, parameters: &Value, result: &Value) -> Option<String> {
        self.inner.subject(parameters, result)
    }

    fn next_steps(&self, record: &ActionRecord) -> Vec<Choice> {
        self.inner.next_steps(record)
    }

    fn things(&self) -> Option<&dyn Things> {
        self.inner.things().map(|_| self as &dyn Things)
    }

    fn verdict(&self, condition: &str, result: &Value) -> Option<Verdict> {
        self.inner.verdict(condition, result)
    }
}

impl Things for Recorded {
    fn names(&self) -> Arc<Names> {
        self.names.clone()
    }

    fn canonical(&self, parameter: &str, value: &str) -> Option<String> {
        self.inner.things()?.canonical(parameter, value)
    }
}

struct RecordedTool {
    inner: Arc<dyn Tool>,
    record: Arc<Record>,
}

#[async_trait]
impl Tool for RecordedTool {
    fn info(&self) -> ToolInfo {
        self.inner.info()
    }

    fn schema(&self) -> Value {
        self.inner.schema()
    }

    async fn call(&self, arguments: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let failed = |kind, reply| ToolError { kind, reply, transient: false };
        match self.record.answer(self.name(), arguments) {
            Some(Ok(answer)) => Ok(answer.clone()),
            Some(Err(reply)) => Err(failed(ErrorKind::Unknown, reply.clone())),
            None => {
                note(&self.record.not_on_record, json!({ "tool": self.name(), "arguments": arguments }));
                Err(failed(ErrorKind::Execution, Reply::text(NOT_ON_RECORD)))
            }
        }
    }

    fn present(&self, arguments: &Value, answer: &Value) -> Option<Reply> {
        self.inner.present(arguments, answer)
    }

    fn subject(&self, arguments: &Value, answer: &Value) -> Option<String> {
        self.inner.subject(arguments, answer)
    }

    fn listed(&self, arguments: &Value, answer: &Value) -> Option<ShownList> {
        self.inner.listed(arguments, answer)
    }
}

/// An action that is never prepared, so that there is never a card.
struct RefusedAction {
    inner: Arc<dyn ActionKind>,
    record: Arc<Record>,
}

#[async_trait]
impl ActionKind for RefusedAction {
    fn info(&self) -> ActionInfo {
        self.inner.info()
    }

    fn schema(&self) -> Value {
        self.inner.schema()
    }

    async fn prepare(&self, parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        note(&self.record.refused, json!({ "action": self.name(), "parameters": parameters }));
        Err(parameters::refused(ErrorKind::Execution, Reply::text(NOTHING_CHANGED)))
    }

    async fn preconditions(&self, _: &ActionRecord) -> Result<Value, Outcome> {
        Err(Outcome::Failed { error: ErrorKind::Execution, summary: Text::from(NOTHING_CHANGED) })
    }
}
