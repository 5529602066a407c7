//! Commands: quick answers that only the asker sees, without any language model.
//!
//! | room | does |
//! | --- | --- |
//! | [`grammar`] | what can be asked, and what somebody may have meant |
//! | [`records`] | what waits and what was done, from the store |
//! | [`settings`] | who may decide what here, and the limits |
//! | [`in_thread`] | “@bot status” and “@bot cancel”, where Slack allows no commands |
//! | [`replies`] | the sentences |
//!
//! *Architecture Invariant:* nothing here decides an action, but that “cancel” withdraws one; no language model is asked.
//!
//! What is said of platforms comes from [`Facts`], which waits for no longer than it says and tells how old an
//! answer is. What is said of actions comes from the store and is as old as the answer itself.

pub mod grammar;
pub mod in_thread;
pub mod records;
pub mod replies;
pub mod settings;

use std::sync::Arc;

use countersign_capabilities::facts::Facts;
use countersign_core::{
    clock::Clock,
    ids::{ChannelId, TeamId, ThreadId, UserId},
    reply::Reply,
};
use countersign_graph::{
    action::{Label, Reader},
    engine::PolicyFor,
    store::{ActionFilter, Error, Store},
};
use countersign_standing as standing;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::{grammar::Asked, records::Records, settings::Settings};
use crate::{
    approvals::groups::Groups,
    presentation::links::{self, Links},
    record::{
        notebook::{self, Notebook},
        sight::Asker,
    },
};

/// A slash command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// The word with its slash.
    pub command: String,
    /// What follows it.
    pub text: String,
    /// Who.
    pub by: UserId,
    /// The workspace.
    pub team: TeamId,
    /// Where.
    pub channel: ChannelId,
    /// Where to answer.
    pub response_url: String,
}

/// Answers commands.
#[derive(Clone)]
pub struct Commands(Arc<CommandsDeps>);

/// What [`Commands`] need.
pub struct CommandsDeps {
    /// Where actions are.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What the platforms say.
    pub facts: Facts,
    /// Who is in which user group.
    pub groups: Groups,
    /// Who may decide.
    pub policy_for: PolicyFor,
    /// Where cards are.
    pub links: Links,
    /// Exports threads.
    pub notebook: Notebook,
    /// What is set.
    pub settings: Settings,
}

/// How many actions of a thread are looked at to know whether somebody asked for one.
const SEARCHED: usize = 200;

/// The answer to a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// What the person is told.
    pub reply: Reply,
    /// The thread in which something is to be said besides.
    pub spoke_in: Option<ThreadId>,
}

impl Answered {
    fn with(reply: Reply) -> Self {
        Self { reply, spoke_in: None }
    }
}

impl Commands {
    /// Answers from these dependencies.
    pub fn new(deps: CommandsDeps) -> Self {
        Self(Arc::new(deps))
    }

    /// The answer to a command. Never fails: what went wrong is the answer then.
    pub async fn answer(&self, command: &Command) -> Answered {
        let deps = &self.0;
        let asked = grammar::read(deps.facts.registry(), &command.command, &command.text);
        if let Ok(Asked::Notebook(link)) = &asked {
            let answered = self.notebook_of(command, link.as_deref()).await;
            return answered.unwrap_or_else(|error| Answered::with(replies::unavailable(&error)));
        }
        let answer = match asked {
            Ok(Asked::Of { capability, word, rest }) => {
                let capability = &deps.facts.registry().capabilities[capability];
                Ok(capability.answer(word, &rest, &deps.facts).await)
            }
            Ok(Asked::Pending) => self.records().pending(&self.asker(command).await).await,
            Ok(Asked::Runs) => self.records().runs(&self.asker(command).await).await,
            Ok(Asked::Mine) => self.records().mine(&command.by).await,
            Ok(Asked::Standing) => Ok(self.standing(&reader(command)).await),
            Ok(Asked::Settings) => Ok(self.settings().await),
            Ok(Asked::Help | Asked::Notebook(_)) => Ok(replies::help(deps.facts.registry(), &command.command)),
            Err(wrong) => Ok(replies::wrong(&command.command, &wrong)),
        };
        Answered::with(answer.unwrap_or_else(|error: Error| replies::unavailable(&error)))
    }

    /// Puts the notebook of a thread into that thread, where only those can read it who can read the thread; what the
    /// person who wanted it is told.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub async fn notebook(&self, by: &UserId, thread: &ThreadId) -> Result<Reply, Error> {
        match self.0.notebook.put_into_thread(thread, by).await {
            Ok(exported) => {
                let url = self.0.links.message(&thread.channel, &thread.root, &thread.root);
                Ok(replies::exported(exported.title.as_deref(), &thread.channel, url))
            }
            Err(notebook::Error::Store(error)) => Err(error),
            Err(error) => {
                tracing::warn!(thread.id = %thread, error = countersign_core::cause::chain(&error), "A thread was not exported");
                Ok(notebook::cannot(&error))
            }
        }
    }

    /// The notebook of the thread that a link leads to, or of the thread in which the asker asked for something last.
    ///
    /// A file is put into a thread only for those who read it: who typed the command in its channel, or asked for
    /// something in the thread.
    async fn notebook_of(&self, command: &Command, link: Option<&str>) -> Result<Answered, Error> {
        let own = [Label::AskedBy(command.by.clone())];
        let thread = match link.map(links::read) {
            Some(Some((channel, _, root))) => {
                let thread = ThreadId { team: command.team.clone(), channel, root };
                let is_here = thread.channel == command.channel;
                let filter = ActionFilter { thread: Some(thread.clone()), statuses: Vec::new(), limit: SEARCHED };
                let asked = async || -> Result<bool, Error> {
                    Ok(self.0.store.actions(&filter).await?.iter().any(|record| record.is_under(&own)))
                };
                if !is_here && !asked().await? {
                    return Ok(Answered::with(replies::not_your_thread()));
                }
                thread
            }
            Some(None) => return Ok(Answered::with(replies::no_link())),
            None => match self.0.store.actions_under(&own, &[], 1).await?.pop() {
                Some(record) => record.thread,
                None => return Ok(Answered::with(replies::no_thread())),
            },
        };
        let reply = self.notebook(&command.by, &thread).await?;
        Ok(Answered { reply, spoke_in: Some(thread) })
    }

    fn records(&self) -> Records<'_> {
        let CommandsDeps { store, clock, policy_for, links, .. } = &*self.0;
        Records { store: &**store, policy_for, links, now: clock.now() }
    }

    async fn asker(&self, command: &Command) -> Asker {
        let groups = self.0.groups.of(&command.by).await;
        Asker {
            by: command.by.clone(),
            place: (command.team.clone(), command.channel.clone()),
            is_named: self.0.groups.names(&command.by, &groups),
            groups,
        }
    }

    async fn settings(&self) -> Reply {
        let services = self.0.facts.health().await;
        replies::settings(&self.0.settings, &services, self.0.clock.now())
    }

    /// What may be done without asking each time, as far as somebody may be told.
    async fn standing(&self, reader: &Reader) -> Reply {
        match self.0.facts.read_for(standing::list::NAME, &json!({}), reader).await {
            Ok(answer) => standing::replies::list_alone(&answer),
            Err(Some(reply)) => reply,
            Err(None) => standing::replies::not_now(),
        }
    }
}

/// Whoever typed a command, for what is shown to them alone.
fn reader(command: &Command) -> Reader {
    let Command { by, team, channel, .. } = command.clone();
    Reader { by: Some(by), team, channel, alone: true }
}
