//! Commands, whose answers only the asker sees and which use no language model.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`grammar`] | the words of commands, and suggestions for mistyped ones |
//! | [`records`] | the open and past actions, from the store |
//! | [`settings`] | the approvers of each action, and the limits |
//! | [`in_thread`] | “@bot status” and “@bot cancel” in threads, where Slack has no slash commands |
//! | [`replies`] | the texts of the replies |
//!
//! *Architecture Invariant:* nothing here decides an action, except that “cancel” withdraws
//! requests, and no language model is used.
//!
//! Statements about platforms come from [`Facts`], which has a time-out and reports the age of an
//! answer. Statements about actions are read from the store for each answer.

pub mod grammar;
pub mod in_thread;
pub mod records;
pub mod replies;
pub mod settings;

use std::sync::Arc;

use countersign_capabilities::facts::Facts;
use countersign_core::{
    ids::{ChannelId, TeamId, ThreadId, UserId},
    reply::Reply,
};
use countersign_graph::{
    action::{ActionRecord, Label, Reader, Status},
    store::{ActionFilter, Error},
};
use countersign_standing as standing;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::{
    grammar::ParsedCommand,
    in_thread::{Approvable, ThreadCommandRequest},
    records::Records,
    settings::Settings,
};
use crate::{
    approvals::{
        inbox::{Approvals, ApprovalsDeps},
        policy,
        replies::denied,
        withdraw::open_cards,
    },
    presentation::links,
    record::{
        integrity,
        notebook::{self, Notebook},
        sight::Asker,
    },
};

/// A slash command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// The word with its slash.
    pub command: String,
    /// The text after it.
    pub text: String,
    /// The person who typed it.
    pub by: UserId,
    /// The workspace.
    pub team: TeamId,
    /// The channel in which it was typed.
    pub channel: ChannelId,
    /// The address for the answer.
    pub response_url: String,
}

/// The service that answers commands.
#[derive(Clone)]
pub struct Commands(Arc<CommandsDeps>);

/// The dependencies of [`Commands`].
pub struct CommandsDeps {
    /// The rules of decisions, with the store.
    pub approvals: Approvals,
    /// The facts from the platforms.
    pub facts: Facts,
    /// The exporter of threads.
    pub notebook: Notebook,
    /// The settings to show.
    pub settings: Settings,
}

/// The maximum number of a thread's actions that are searched for a request of the asker.
const MAX_ACTIONS: usize = 200;

/// The answer to a command.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandAnswer {
    /// The reply to the person.
    pub reply: Reply,
    /// The thread in which a message was posted as well, if any.
    pub posted_in: Option<ThreadId>,
}

impl CommandAnswer {
    fn with(reply: Reply) -> Self {
        Self { reply, posted_in: None }
    }
}

impl Commands {
    /// Creates the service from its dependencies.
    pub fn new(deps: CommandsDeps) -> Self {
        Self(Arc::new(deps))
    }

    /// Answers a command. If an error occurs, the answer reports it.
    pub async fn answer(&self, command: &Command) -> CommandAnswer {
        let deps = &self.0;
        let asked = match grammar::parse(deps.facts.registry(), &command.command, &command.text) {
            Ok(asked) => asked,
            // Its button asks for the change in a conversation.
            Err(wrong) => return CommandAnswer::with(replies::wrong(&command.command, &wrong)),
        };
        if let ParsedCommand::Notebook(link) = &asked {
            let answered = self.notebook_of(command, link.as_deref()).await;
            return answered.unwrap_or_else(|error| CommandAnswer::with(replies::unavailable(&error)));
        }
        let asker = self.asker(&command.by, &command.team, &command.channel);
        let answer = match asked {
            ParsedCommand::Capability { capability, word, rest } => {
                let capability = &deps.facts.registry().capabilities[capability];
                Ok(capability.answer(word, &rest, &deps.facts, &reader(command)).await)
            }
            ParsedCommand::Pending => self.records().pending(&asker.await).await,
            ParsedCommand::Runs => self.records().runs(&asker.await).await,
            ParsedCommand::Mine => self.records().mine(&command.by).await,
            ParsedCommand::Standing => Ok(self.standing(&reader(command)).await),
            ParsedCommand::Settings => Ok(self.settings().await),
            ParsedCommand::Help | ParsedCommand::Notebook(_) => {
                Ok(replies::help(deps.facts.registry(), &command.command))
            }
        };
        let mut reply = answer.unwrap_or_else(|error: Error| replies::unavailable(&error));
        reply.choices.clear(); // suggestions are for a conversation
        CommandAnswer::with(reply)
    }

    /// Answers a question that was typed in a thread but is about more than the thread. If an error occurs, the answer
    /// reports it.
    pub async fn answer_question(&self, request: &ThreadCommandRequest) -> Reply {
        match in_thread::approvable(&request.text) {
            Some(Approvable::Kind(kind)) => {
                return replies::approvers(&self.0.settings, &self.actions_called(&kind));
            }
            Some(Approvable::ThisThread) => {
                let cards = self.cards_in_question(&request.thread).await;
                return cards.map_or_else(
                    |error| replies::unavailable(&error),
                    |cards| match cards.is_empty() {
                        true => replies::approvers(&self.0.settings, &[]),
                        false => replies::approvers_of(&cards),
                    },
                );
            }
            Some(Approvable::ByAsker) => {
                let newest = self.cards_in_question(&request.thread).await.map(|cards| cards.into_iter().next());
                return match newest {
                    Err(error) => replies::unavailable(&error),
                    Ok(None) => replies::approvers(&self.0.settings, &[]),
                    Ok(Some(card)) if card.status != Status::Pending => replies::approvers_of(&[card]),
                    Ok(Some(card)) => {
                        let person = self.0.approvals.groups.person(&card, &request.by, true).await;
                        match policy::may_approve(&card, &request.by, &person) {
                            Ok(()) => replies::you_may_approve(&card),
                            Err(denial) => denied(&card, &request.by, true, denial),
                        }
                    }
                };
            }
            None => {}
        }
        let asker = self.asker(&request.by, &request.thread.team, &request.thread.channel).await;
        self.records().pending(&asker).await.unwrap_or_else(|error| replies::unavailable(&error))
    }

    /// Returns the cards that “this” means in a thread: the open ones, or else the newest one.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    async fn cards_in_question(&self, thread: &ThreadId) -> Result<Vec<ActionRecord>, Error> {
        let open = open_cards(&*self.0.approvals.store, thread).await?;
        if !open.is_empty() {
            return Ok(open);
        }
        let newest = ActionFilter::of(thread, &[], 1);
        self.0.approvals.store.actions(&newest).await
    }

    /// Returns the actions of a kind of change, such as `deletes` or `starting`, and true for those that cannot
    /// be undone. There are none if the words name no change.
    fn actions_called(&self, kind: &str) -> Vec<(String, bool)> {
        let registry = self.0.facts.registry();
        let first = kind.split_whitespace().find(|word| !["a", "an", "the", "any", "all", "to"].contains(word));
        let verbs = first.map(verbs_of).unwrap_or_default();
        let calls = |verb: &String| registry.calls_of(&format!("{verb} it"));
        let found =
            verbs.iter().map(calls).find(|calls| calls.iter().any(|call| registry.actions.contains_key(call.as_str())));
        let actions = found.unwrap_or_default().into_iter();
        let known = actions.filter_map(|call| Some((registry.actions.get(call.as_str())?.irreversible(), call)));
        known.map(|(irreversible, call)| (call, irreversible)).collect()
    }

    /// Posts the notebook of a thread in that thread, where only its readers can see it, and
    /// returns the reply to the person.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn notebook(&self, by: &UserId, thread: &ThreadId) -> Result<Reply, Error> {
        match self.0.notebook.export_to_thread(thread, by).await {
            Ok(exported) => {
                let url = self.0.approvals.links.message(&thread.channel, &thread.root, &thread.root);
                Ok(replies::exported(exported.title.as_deref(), &thread.channel, url))
            }
            Err(integrity::Error::Store(error)) => Err(error),
            Err(error) => {
                error.log(thread);
                Ok(notebook::refusal_reply(&error))
            }
        }
    }

    /// Exports the thread of a linked message, or the thread of the asker's latest request in this conversation. A thread of
    /// another conversation is only exported by its link.
    ///
    /// A file is posted only if the asker can read the thread: they typed the command in its
    /// channel, or requested a change in the thread.
    async fn notebook_of(&self, command: &Command, link: Option<&str>) -> Result<CommandAnswer, Error> {
        let own = [Label::AskedBy(command.by.clone())];
        let thread = match link.map(links::read) {
            Some(Some((channel, _, root))) => {
                let thread = ThreadId { team: command.team.clone(), channel, root };
                let is_here = thread.channel == command.channel;
                let filter = ActionFilter::of(&thread, &[], MAX_ACTIONS);
                let asked = async || -> Result<bool, Error> {
                    Ok(self.0.approvals.store.actions(&filter).await?.iter().any(|record| record.is_under(&own)))
                };
                if !is_here && !asked().await? {
                    return Ok(CommandAnswer::with(replies::not_your_thread()));
                }
                thread
            }
            Some(None) => return Ok(CommandAnswer::with(replies::no_link())),
            None => {
                let own = self.0.approvals.store.actions(&ActionFilter::under(&own, &[], MAX_ACTIONS)).await?;
                let Some(last) = own.first() else { return Ok(CommandAnswer::with(replies::no_thread())) };
                match own.iter().find(|record| record.thread.channel == command.channel) {
                    Some(record) => record.thread.clone(),
                    None => {
                        let url =
                            self.0.approvals.links.message(&last.thread.channel, &last.thread.root, &last.thread.root);
                        return Ok(CommandAnswer::with(replies::no_thread_here(last, url.as_deref())));
                    }
                }
            }
        };
        let reply = self.notebook(&command.by, &thread).await?;
        Ok(CommandAnswer { reply, posted_in: Some(thread) })
    }

    fn records(&self) -> Records<'_> {
        let ApprovalsDeps { store, clock, policy_for, links, .. } = &*self.0.approvals;
        Records { store: &**store, policy_for, links, now: clock.now() }
    }

    async fn asker(&self, by: &UserId, team: &TeamId, channel: &ChannelId) -> Asker {
        let groups = self.0.approvals.groups.of(by).await;
        Asker {
            by: by.clone(),
            place: (team.clone(), channel.clone()),
            is_named: self.0.approvals.groups.names_approver(by, &groups),
            groups,
        }
    }

    async fn settings(&self) -> Reply {
        let services = self.0.facts.health().await;
        replies::settings(&self.0.settings, &services, self.0.approvals.clock.now())
    }

    /// Lists the standing approvals that the reader may see.
    async fn standing(&self, reader: &Reader) -> Reply {
        match self.0.facts.read_for(standing::list::NAME, &json!({}), reader).await {
            Ok(answer) => standing::replies::plain_list_reply(&answer),
            Err(Some(reply)) => reply,
            Err(None) => standing::replies::unavailable(),
        }
    }
}

/// Returns the verbs that a word for a kind of change may come from: `deletes`, `deleting` and `deletion` from `delete`.
fn verbs_of(word: &str) -> Vec<String> {
    let singular = word.strip_suffix('s').unwrap_or(word);
    let mut verbs = vec![word.to_owned(), singular.to_owned()];
    for ending in ["ing", "ion", "ation", "lation"] {
        if let Some(stem) = singular.strip_suffix(ending).filter(|stem| stem.len() > 2) {
            verbs.extend([stem.to_owned(), format!("{stem}e")]);
            // `stopping`
            let mut letters = stem.chars().rev();
            if let (Some(last), true) = (letters.next(), letters.next() == stem.chars().next_back()) {
                verbs.extend(stem.strip_suffix(last).map(str::to_owned));
            }
        }
    }
    verbs
}

/// Returns the person who typed a command as the only reader of the answer.
fn reader(command: &Command) -> Reader {
    let Command { by, team, channel, .. } = command.clone();
    Reader { by: Some(by), team, channel, thread: None, alone: true, zone: None }
}
