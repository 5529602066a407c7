//! What the assistant can do: tools that read, actions that change.
//!
//! A capability is a folder here: `tools.rs` for what the model may call at any time, `actions/<verb>.rs` for what a
//! person must approve, `replies.rs` for what it says. [`Registry`] is all of them together.

pub mod experiments;
pub mod standing;

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use serde_json::Value;

use crate::{
    clock::Clock,
    graph::action::{ActionKind, ErrorKind, Reader},
    reply::Reply,
    services::upgrade::client::UpgradeClient,
};

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

/// All tools and actions by name.
#[derive(Clone, Default)]
pub struct Registry {
    /// What reads.
    pub tools: BTreeMap<&'static str, Arc<dyn Tool>>,
    /// What changes.
    pub actions: BTreeMap<&'static str, Arc<dyn ActionKind>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("tools", &self.tools.keys()).field("actions", &self.actions.keys()).finish()
    }
}

/// Everything the assistant can do, with the services it does it through. The clock tells which dates are to come.
pub fn registry(upgrade: Arc<UpgradeClient>, clock: Arc<dyn Clock>) -> Registry {
    experiments::registry(upgrade, clock)
}
