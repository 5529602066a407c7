//! What the assistant can do: tools that read, actions that change.
//!
//! A capability is a folder here: `tools.rs` for what the model may call at any time, `actions/<verb>.rs` for what a
//! person must approve, `replies.rs` for what it says. It is described by one [`Capability`], and [`Registry`] is all of
//! them together.

pub mod experiments;
mod registry;
pub mod standing;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

pub use self::registry::{Registry, RegistryError};
use crate::{
    graph::action::{ActionKind, ActionRecord, ErrorKind, Reader},
    reply::{Choice, Reply},
};

/// One domain: everything that the rest of the program knows of it.
pub trait Capability: Send + Sync {
    /// Its name, such as `experiments`.
    fn name(&self) -> &'static str;

    /// What it is for, in one line.
    fn purpose(&self) -> &'static str;

    /// What reads.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// What changes, once a person has approved it.
    fn actions(&self) -> Vec<Arc<dyn ActionKind>>;

    /// The name of the thing that one of its changes is about, from then on “it”. `result` is what the change brought, null
    /// before it was made. `None`: it is about no single thing.
    fn subject(&self, parameters: &Value, result: &Value) -> Option<String> {
        let _ = (parameters, result);
        None
    }

    /// What can be asked next once one of its changes has ended, as buttons.
    fn next_steps(&self, record: &ActionRecord) -> Vec<Choice> {
        let _ = record;
        Vec::new()
    }

    /// What somebody can begin with: a label, and the request.
    fn suggestions(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// What it can do, in a few words each, with a request as an example.
    fn examples(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}

/// Something the model may call at any time: it reads.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Its name, such as `get_context_metadata`.
    fn name(&self) -> &'static str;

    /// When to use it, for the model.
    fn description(&self) -> &'static str;

    /// The JSON schema of its arguments.
    fn schema(&self) -> Value;

    /// Reads. The answer is data for the model and for `gathered_info`.
    ///
    /// # Errors
    ///
    /// [`ToolError`], with a sentence for people.
    async fn call(&self, arguments: &Value) -> Result<Value, ToolError>;

    /// The same for somebody in a conversation. Only what is not for everybody to see looks at who that is.
    ///
    /// # Errors
    ///
    /// As [`Self::call`].
    async fn call_for(&self, arguments: &Value, reader: &Reader) -> Result<Value, ToolError> {
        let _ = reader;
        self.call(arguments).await
    }

    /// Its answer as a person reads it. `None`: it is shown as data.
    fn present(&self, arguments: &Value, answer: &Value) -> Option<Reply> {
        let _ = (arguments, answer);
        None
    }

    /// What “it” means once this was answered: the name of the thing that was asked about.
    fn subject(&self, arguments: &Value, answer: &Value) -> Option<String> {
        let _ = (arguments, answer);
        None
    }

    /// Whether an answer of a moment ago may be given again, with its age, in place of asking anew.
    fn may_be_repeated(&self) -> bool {
        false
    }
}

/// Why a tool has no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolError {
    /// What kind of thing went wrong.
    pub kind: ErrorKind,
    /// What to say to the person, with what to do now.
    pub reply: Reply,
    /// Whether asking again soon may help.
    pub transient: bool,
}
