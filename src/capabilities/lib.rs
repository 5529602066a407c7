//! What the assistant can do: tools that read, actions that change.
//!
//! A capability is a folder here: `tools.rs` for what the model may call at any time, `actions/<verb>.rs` for what a
//! person must approve, `replies.rs` for what it says. It is described by one [`Capability`], and [`Registry`] is all of
//! them together.

mod allowance;
mod command;
pub mod facts;
mod family;
pub mod moment;
pub mod parameters;
mod registry;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_config::Measure;
use countersign_core::reply::{Choice, Reply};
use countersign_graph::action::{ActionKind, ActionRecord, ErrorKind, PrepareError, Reader};
use countersign_understanding::{lexicon::Names, phrases::Phrases};
use serde_json::Value;

use self::facts::Facts;
pub use self::{
    allowance::{Allowance, Allowances, Counts, Place},
    command::{Command, Takes, Word},
    family::Family,
    registry::{OWN_COMMAND, Registry, RegistryError},
};

/// One domain: everything that the rest of the program knows of it. Only name, purpose, tools and actions have to be there.
#[async_trait]
pub trait Capability: Send + Sync {
    /// Its name, such as `documents`.
    fn name(&self) -> &'static str;

    /// What it is for, in one line.
    fn purpose(&self) -> &'static str;

    /// What reads.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// What changes, once a person has approved it.
    fn actions(&self) -> Vec<Arc<dyn ActionKind>>;

    /// How its tools and actions are divided for a language model, which is sent only what a request needs. One family unless
    /// it says otherwise.
    fn families(&self) -> Vec<Family> {
        let all = Family::new(self.name(), self.purpose()).often();
        let tools = self.tools();
        let actions = self.actions();
        vec![all.tools(tools.iter().map(|tool| tool.name())).actions(actions.iter().map(|action| action.name()))]
    }

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

    /// What it understands without a language model.
    fn phrases(&self) -> Option<&'static dyn Phrases> {
        None
    }

    /// What exists and has a name, as it was read last: found in a message before it is read.
    fn names(&self) -> Arc<Names> {
        Arc::default()
    }

    /// Reads these names again, where they are old; within a short time, and never with an error.
    async fn refresh_names(&self) {}

    /// What somebody can begin with: a label, and the request.
    fn suggestions(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// What it can do, in a few words each, with a request as an example.
    fn examples(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// What to try where nothing was said yet: why, and the request.
    fn invitations(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// What a language model has to know of the domain, as a section of its instructions, in Markdown.
    fn instructions(&self) -> &'static str {
        ""
    }

    /// The outside system that it stands on.
    fn service(&self) -> Option<Service> {
        None
    }

    /// How the outside system is, for an operator: the name of the line, and what is wrong and would be right. What the tool
    /// says that tells its health, unless it says more.
    async fn check(&self) -> Option<(&'static str, Result<String, String>)> {
        let service = self.service()?;
        let tool = self.tools().into_iter().find(|tool| tool.name() == service.health)?;
        let said = |answer: Value| {
            let of = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
            format!("{} {}", of("name"), of("version")).trim().to_owned()
        };
        let answer = tool.call(&Value::Object(serde_json::Map::new())).await;
        Some((service.name, answer.map(said).map_err(|error| error.reply.words())))
    }

    /// What the settings can name of it, as it is there now.
    ///
    /// # Errors
    ///
    /// Why that cannot be told.
    async fn nameable(&self) -> Result<Nameable, String> {
        Ok(Nameable::default())
    }

    /// A value of a parameter in the one form in which it is compared; `None`: as it is.
    fn canonical(&self, parameter: &str, value: &str) -> Option<String> {
        let _ = (parameter, value);
        None
    }

    /// A slash command of its own.
    fn command(&self) -> Option<Command> {
        None
    }

    /// The answer to a word of that command, `rest` being what was typed after it. Never fails: what went wrong is the
    /// answer then.
    async fn answer(&self, word: &str, rest: &str, facts: &Facts) -> Reply {
        let _ = (word, rest, facts);
        Reply::default()
    }

    /// Windows in which something new can be asked for, from everywhere.
    fn shortcuts(&self) -> &'static [Shortcut] {
        &[]
    }

    /// Its section of the Home tab.
    async fn home(&self, facts: &Facts) -> Option<Reply> {
        let _ = facts;
        None
    }

    /// What standing approvals can allow beforehand.
    fn allowances(&self) -> &'static [Allowance] {
        &[]
    }

    /// The thing or the context of this name, for a standing approval.
    ///
    /// # Errors
    ///
    /// A refusal with what was meant perhaps, or that the platform cannot be asked.
    async fn place(&self, name: &str) -> Result<Place, PrepareError> {
        let reply = Reply::text(format!("There is nothing called “{name}” in which this could be allowed."));
        Err(parameters::refused(ErrorKind::NotFound, reply))
    }

    /// The names of its things, to choose from.
    async fn places(&self) -> Vec<String> {
        Vec::new()
    }

    /// What envelopes can limit. Its settings bring the same.
    fn measures(&self) -> &'static [Measure] {
        &[]
    }
}

/// An outside system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// What people call it.
    pub name: &'static str,
    /// The tool whose answer has its `name` and `version`.
    pub health: &'static str,
    /// How long a call may take.
    pub timeout: Duration,
    /// How long a change that got no answer is looked for.
    pub settle_within: Duration,
}

/// What the settings can name of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nameable {
    /// What one of its things is called, such as “document”.
    pub thing: &'static str,
    /// The contexts.
    pub contexts: Vec<String>,
    /// Its things, by name.
    pub things: Vec<String>,
}

/// A window in which something new can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortcut {
    /// By which Slack names it.
    pub callback: &'static str,
    /// At the top of the window, such as “New document”.
    pub title: &'static str,
    /// What is new, such as “new document”.
    pub what: &'static str,
    /// How to ask for it in words.
    pub says: &'static str,
    /// The action that makes it, whose form is shown.
    pub action: &'static str,
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

    /// What its answers are, such as “the list of documents”, if a model may read the newest one back without asking anew.
    fn read_back(&self) -> Option<&'static str> {
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
