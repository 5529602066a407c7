//! The abilities of the assistant: tools that read, actions that change.
//!
//! Each capability is a separate crate: `tools.rs` for the tools that the model may call at any time,
//! `actions/<verb>.rs` for the changes that a person must approve, `replies.rs` for the texts. It implements
//! [`Capability`]; [`Registry`] contains all of them.
//!
//! This crate depends on no domain, not on Slack, and on no store. Start reading at [`Capability`], then [`Registry`].

mod allowance;
mod calls_in_progress;
mod command;
pub mod dates;
mod events;
pub mod facts;
mod family;
mod history;
mod observed;
pub mod parameters;
pub mod picture;
mod planning;
mod registry;
pub mod rows;
mod schemas;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_config::Measure;
use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, UserId},
    reply::{Choice, Reply},
};
use countersign_graph::action::{ActionKind, ActionRecord, ErrorKind, PrepareError, Reader, Refusal};
use countersign_planner::condition::Verdict;
use countersign_understanding::{lexicon::Names, phrases::Phrases};
use serde_json::Value;

use self::facts::Facts;
pub use self::{
    allowance::{Allowance, AllowancePlace, Allowances, Counts},
    calls_in_progress::CallsInProgress,
    command::{Command, Takes, Word},
    events::EventSource,
    family::Family,
    history::History,
    observed::{Observed, ObservedPart, Observer, Phase},
    planning::ASSISTANT,
    registry::{Effect, OWN_COMMAND, Registry, RegistryError},
    schemas::ParameterSchema,
};

/// One domain, as the rest of the program sees it. Only name, purpose, tools and actions are required.
#[async_trait]
pub trait Capability: Send + Sync {
    /// Returns its properties. It makes no calls.
    fn info(&self) -> CapabilityInfo;

    /// Returns the tools, which read.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Returns the actions, which change something once a person has approved it.
    fn actions(&self) -> Vec<Arc<dyn ActionKind>>;

    /// Returns the families of its tools and actions; a language model is sent only those that a request needs. The
    /// default is one family.
    fn families(&self) -> Vec<Family> {
        let CapabilityInfo { name, purpose, .. } = self.info();
        let all = Family::new(name, purpose).often();
        let tools = self.tools();
        let actions = self.actions();
        vec![all.tools(tools.iter().map(|tool| tool.name())).actions(actions.iter().map(|action| action.name()))]
    }

    /// Returns the name of the thing that a change is about, to which “it” refers afterwards; `None` if the change is
    /// not about a single thing. `result` is the result of the change, null before it was made.
    fn subject(&self, parameters: &Value, result: &Value) -> Option<String> {
        let _ = (parameters, result);
        None
    }

    /// Returns suggestions for the next request after a change has ended, as buttons.
    fn next_steps(&self, record: &ActionRecord) -> Vec<Choice> {
        let _ = record;
        Vec::new()
    }

    /// Returns the existing things of the domain, if they have names.
    fn things(&self) -> Option<&dyn Things> {
        None
    }

    /// Returns what an outside system offers, if that can change while the program runs.
    fn changing(&self) -> Option<&dyn ChangingOffer> {
        None
    }

    /// Checks the outside system for an operator. Returns the name of the line, and the version or the problem. The
    /// default calls the health tool of [`CapabilityInfo::service`].
    async fn check(&self) -> Option<(&'static str, Result<String, String>)> {
        let service = self.info().service?;
        let tool = self.tools().into_iter().find(|tool| tool.name() == service.health)?;
        let said = |answer: Value| {
            let of = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
            format!("{} {}", of("name"), of("version")).trim().to_owned()
        };
        let answer = tool.call(&Value::Object(serde_json::Map::new()), None).await;
        Some((service.name, answer.map(said).map_err(|error| error.reply.words())))
    }

    /// Answers a word of its slash command; `rest` is the text after it. This never fails: an error becomes the answer.
    /// Only commands about data that is not public use the reader.
    async fn answer(&self, word: &str, rest: &str, facts: &Facts, reader: &Reader) -> Reply {
        let _ = (word, rest, facts, reader);
        Reply::default()
    }

    /// Returns the section of everyone's Home tab.
    async fn home(&self, facts: &Facts) -> Option<Reply> {
        let _ = facts;
        None
    }

    /// Returns the section of this person's Home tab. The person is known to be a member of `channels`, which are some of
    /// the capabilities' [`CapabilityInfo::home_channel`].
    async fn home_of(&self, person: &UserId, channels: &BTreeSet<ChannelId>) -> Option<Reply> {
        let _ = (person, channels);
        None
    }

    /// Returns the notes that the capability keeps about a person. They complete a request of that person that leaves
    /// something out.
    async fn notes(&self, person: &UserId) -> Vec<String> {
        let _ = person;
        Vec::new()
    }

    /// Evaluates a condition on a result of its tools or actions, such as `it is even`; `None` if it does not know the
    /// condition.
    fn verdict(&self, condition: &str, result: &Value) -> Option<Verdict> {
        let _ = (condition, result);
        None
    }

    /// Sets the reader of past changes. It is called before the other methods are used, or never if there is no store,
    /// as in a check of the settings.
    fn remember_by(&self, history: Arc<dyn History>) {
        let _ = history;
    }

    /// Returns the follower of the events that its actions wait for.
    fn events(&self) -> Option<Arc<dyn EventSource>> {
        None
    }

    /// Returns the reader of its things for those who follow them over time; `None` if nothing can be followed.
    fn observer(&self) -> Option<Arc<dyn Observer>> {
        None
    }
}

/// The existing things of a domain, which people call by their names.
#[async_trait]
pub trait Things: Send + Sync {
    /// Returns the names of existing things that were read last. They are recognised in a message before it is parsed.
    fn names(&self) -> Arc<Names> {
        Arc::default()
    }

    /// Reads these names again if they are old, or were read before `since`. This takes only a short time and never fails.
    async fn refresh_names(&self, since: Option<Timestamp>) {
        let _ = since;
    }

    /// Returns a value of a parameter in the canonical form for comparison; `None` if the value can be compared as it
    /// is.
    fn canonical(&self, parameter: &str, value: &str) -> Option<String> {
        let _ = (parameter, value);
        None
    }

    /// Returns the existing things that the settings can name.
    ///
    /// # Errors
    ///
    /// The reason why they cannot be read.
    async fn nameable(&self) -> Result<Nameable, String> {
        Ok(Nameable::default())
    }

    /// Returns the thing or the context with this name, for a standing approval.
    ///
    /// # Errors
    ///
    /// A refusal that suggests similar names, or says that the platform cannot be reached.
    async fn place(&self, name: &str) -> Result<AllowancePlace, PrepareError> {
        let reply = Reply::text(format!("Nothing here is called “{name}”, so I can't allow this in it."));
        Err(parameters::refused(ErrorKind::NotFound, reply))
    }

    /// Returns the names of its things, to choose from.
    async fn places(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The offer of an outside system that can change while the program runs.
#[async_trait]
pub trait ChangingOffer: Send + Sync {
    /// Returns a number that changes when the descriptions or schemas of its tools and actions do, or [`Self::hidden`].
    fn generation(&self) -> u64 {
        0
    }

    /// Returns the tools and actions that are not offered to a model at present.
    fn hidden(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Shows an operator what the outside system offers now, and accepts it if `keep`; for systems whose offer may
    /// change without notice. `tell` shows at once what the operator has to do first, such as to sign in. Returns the
    /// name of the system, and a line for each thing or the problem; `None` if there is nothing to accept.
    async fn accept(&self, keep: bool, tell: &Tell<'_>) -> Option<(&'static str, Result<Vec<String>, String>)> {
        let _ = (keep, tell);
        None
    }

    /// Closes the connections that are kept, and ends the processes that were started for them. It is called when the
    /// program ends, and takes at most a few seconds.
    async fn close(&self) {}
}

/// Returns what outside systems offer that can change while the program runs.
pub fn changing(capabilities: &[Arc<dyn Capability>]) -> impl Iterator<Item = &dyn ChangingOffer> {
    capabilities.iter().filter_map(|capability| capability.changing())
}

/// The properties of a capability, such as its name and phrases.
#[derive(Clone)]
pub struct CapabilityInfo {
    /// The name, such as `documents`.
    pub name: &'static str,
    /// The purpose in one line.
    pub purpose: &'static str,
    /// The phrases that are understood without a language model.
    pub phrases: Option<&'static dyn Phrases>,
    /// Suggested first requests: a label, and the request.
    pub suggestions: &'static [(&'static str, &'static str)],
    /// Examples of its abilities: a few words, and a request.
    pub examples: &'static [(&'static str, &'static str)],
    /// Requests to try in a new conversation: a reason, and the request.
    pub invitations: &'static [(&'static str, &'static str)],
    /// The knowledge of the domain for a language model, as a section of its instructions, in Markdown.
    pub instructions: &'static str,
    /// The outside system that the capability depends on.
    pub service: Option<Service>,
    /// The slash command.
    pub command: Option<Command>,
    /// The forms for new things, which can be opened from anywhere in Slack.
    pub shortcuts: &'static [Shortcut],
    /// The action that shows the steps of a plan on a card, and begins them once they are approved.
    pub plan_action: Option<&'static str>,
    /// The kinds of changes that standing approvals can allow in advance.
    pub allowances: &'static [Allowance],
    /// The measures that envelopes can limit. The settings of the capability declare the same ones.
    pub measures: &'static [Measure],
    /// The channel whose members may see more than other people in [`Capability::home_of`].
    pub home_channel: Option<ChannelId>,
}

impl CapabilityInfo {
    /// Creates a capability with nothing but tools and actions.
    pub const fn new(name: &'static str, purpose: &'static str) -> Self {
        Self {
            name,
            purpose,
            phrases: None,
            suggestions: &[],
            examples: &[],
            invitations: &[],
            instructions: "",
            service: None,
            command: None,
            shortcuts: &[],
            plan_action: None,
            allowances: &[],
            measures: &[],
            home_channel: None,
        }
    }
}

impl dyn Capability + '_ {
    /// Returns the name, such as `documents`.
    pub fn name(&self) -> &'static str {
        self.info().name
    }
}

/// A function that shows an operator a line at once.
pub type Tell<'a> = dyn Fn(&str) + Sync + 'a;

/// An outside system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The name people use.
    pub name: &'static str,
    /// The tool whose answer has its `name` and `version`.
    pub health: &'static str,
    /// The time limit of a call.
    pub timeout: Duration,
    /// The time during which the effect of a change without an answer is looked up.
    pub settle_within: Duration,
}

/// The things of a domain that the settings can name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nameable {
    /// The word for one of its things, such as “document”.
    pub thing: &'static str,
    /// The names of the contexts.
    pub contexts: Vec<String>,
    /// The names of its things.
    pub things: Vec<String>,
}

/// A form for a new thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortcut {
    /// The callback id by which Slack names it.
    pub callback: &'static str,
    /// The title of the window, such as “New document”.
    pub title: &'static str,
    /// The new thing, such as “new document”.
    pub what: &'static str,
    /// The label of the button that proposes it, such as “Propose document”.
    pub submit: &'static str,
    /// The same request in words.
    pub says: &'static str,
    /// The action that creates the new thing; its form is shown.
    pub action: &'static str,
}

/// A tool: it only reads, and the model may call it at any time.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns its properties. It makes no calls.
    fn info(&self) -> ToolInfo;

    /// Returns [`ToolInfo::name`]. It is asked for often, so a tool whose description takes a look overrides it.
    fn name(&self) -> &'static str {
        self.info().name
    }

    /// Returns the JSON schema of the arguments.
    fn schema(&self) -> Value;

    /// Calls the tool. The answer is data for the model and for `gathered_info`. `reader` is the person in a conversation
    /// who asks, if there is one; only tools whose data is not public use it.
    ///
    /// # Errors
    ///
    /// [`ToolError`], with a sentence for people.
    async fn call(&self, arguments: &Value, reader: Option<&Reader>) -> Result<Value, ToolError>;

    /// Returns the answer for people; `None` if it is shown as data.
    fn present(&self, arguments: &Value, answer: &Value) -> Option<Reply> {
        let _ = (arguments, answer);
        None
    }

    /// Returns the thing to which “it” refers after this answer: the name of the thing that was asked about.
    fn subject(&self, arguments: &Value, answer: &Value) -> Option<String> {
        let _ = (arguments, answer);
        None
    }

    /// Returns the entries that the answer shows, if it is a list of things. “The second one” then means one of them.
    fn listed(&self, arguments: &Value, answer: &Value) -> Option<ShownList> {
        let _ = (arguments, answer);
        None
    }
}

/// The properties of a tool, such as its name and description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolInfo {
    /// The name, such as `get_context_metadata`.
    pub name: &'static str,
    /// The description for the model: when to use it.
    pub description: &'static str,
    /// The action that an answer of this tool makes superfluous: its draft is then dropped, and the plan that waited for
    /// it continues.
    pub settles: Option<&'static str>,
    /// A name for the answers, such as “the list of documents”, if a model may read the newest one again without a new
    /// call.
    pub read_back: Option<&'static str>,
    /// True if a recent answer may be given again, with its age, instead of a new call.
    pub may_be_repeated: bool,
}

impl ToolInfo {
    /// Creates a tool that is called each time, and settles nothing.
    pub const fn new(name: &'static str, description: &'static str) -> Self {
        Self { name, description, settles: None, read_back: None, may_be_repeated: false }
    }
}

/// The entries of a list, as far as they are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownList {
    /// The names, in the order in which they are shown.
    pub names: Vec<String>,
    /// True if the list has no other entries.
    pub is_complete: bool,
}

/// The error of a tool that has no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolError {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The reply for the person, with what to do now.
    pub reply: Reply,
    /// True if asking again soon may help.
    pub transient: bool,
}

impl From<PrepareError> for ToolError {
    /// A tool looks things up as an action does.
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Refusal(Refusal::Refused { error, reply }) => Self { kind: error, reply, transient: false },
            PrepareError::Unavailable { error, reply } => {
                Self { kind: error, reply, transient: error == ErrorKind::Network }
            }
            PrepareError::Answered { reply, .. } => Self { kind: ErrorKind::Execution, reply, transient: false },
            PrepareError::Refusal(Refusal::Missing(missing)) => Self {
                kind: ErrorKind::UserInput,
                reply: match missing.into_iter().next() {
                    Some(missing) => parameters::question(missing),
                    None => parameters::unreadable("something is missing"),
                },
                transient: false,
            },
        }
    }
}
