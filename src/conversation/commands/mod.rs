//! Commands: quick answers that only the asker sees, without any language model.
//!
//! | room | does |
//! | --- | --- |
//! | [`grammar`] | what can be asked, and what somebody may have meant |
//! | [`sight`] | which actions somebody may be shown |
//! | [`records`] | what waits and what was done, from the store |
//! | [`settings`] | who may decide what here, and the limits |
//! | [`in_thread`] | “@bot status” and “@bot cancel”, where Slack allows no commands |
//! | [`replies`] | the sentences |
//!
//! What is said of the platform comes from [`QuickAnswers`], which waits for no longer than it says and tells how old an
//! answer is. What is said of actions comes from the store and is as old as the answer itself.

pub mod grammar;
pub mod in_thread;
pub mod records;
pub mod replies;
pub mod settings;
pub mod sight;

use std::sync::Arc;

use self::{grammar::Asked, records::Records, settings::Settings, sight::Asker};
use super::{
    entry::Command,
    groups::Groups,
    links::{self, Links},
};
use crate::{
    assistant::quick::QuickAnswers,
    clock::Clock,
    graph::{
        action::Label,
        store::{Error, Store},
    },
    ids::{ThreadId, UserId},
    reply::Reply,
};

/// Answers commands.
#[derive(Clone)]
pub struct Commands(Arc<Parts>);

/// What [`Commands`] need.
pub struct Parts {
    /// Where actions are.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What the platform says.
    pub quick: QuickAnswers,
    /// Who is in which user group.
    pub groups: Groups,
    /// Where cards are.
    pub links: Links,
    /// What is set.
    pub settings: Settings,
}

impl Commands {
    /// Answers from these parts.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// The answer to a command. Never fails: what went wrong is the answer then.
    pub async fn answer(&self, command: &Command) -> Reply {
        let parts = &self.0;
        let answer = match grammar::read(&command.command, &command.text) {
            Ok(Asked::Platform) => Ok(parts.quick.health().await),
            Ok(Asked::List(filter)) => Ok(parts.quick.list(&filter).await),
            Ok(Asked::Show(name)) => Ok(parts.quick.show(&name).await),
            Ok(Asked::Pending) => self.records().pending(&self.asker(command).await).await,
            Ok(Asked::Runs) => self.records().runs(&self.asker(command).await).await,
            Ok(Asked::Mine) => self.records().mine(&command.by).await,
            Ok(Asked::Notebook(link)) => self.notebook_of(command, link.as_deref()).await,
            Ok(Asked::Settings) => Ok(self.settings().await),
            Ok(Asked::Help) => Ok(replies::help(&command.command)),
            Err(wrong) => Ok(replies::wrong(&command.command, &wrong)),
        };
        answer.unwrap_or_else(|error: Error| replies::unavailable(&error))
    }

    /// Puts the notebook of a thread into that thread, where only those can read it who can read the thread; what the
    /// person who wanted it is told. Without a thread: how to name one.
    pub async fn notebook(&self, by: &UserId, thread: Option<&ThreadId>) -> Reply {
        let _ = by;
        replies::notebook(thread)
    }

    /// The notebook of the thread that a link leads to, or of the thread in which the asker asked for something last.
    async fn notebook_of(&self, command: &Command, link: Option<&str>) -> Result<Reply, Error> {
        let thread = match link {
            Some(link) => match links::read(link) {
                Some((channel, _, root)) => Some(ThreadId { team: command.team.clone(), channel, root }),
                None => return Ok(replies::no_link(link)),
            },
            None => {
                let latest = self.0.store.actions_under(&[Label::AskedBy(command.by.clone())], &[], 1).await?;
                latest.into_iter().next().map(|record| record.thread)
            }
        };
        Ok(self.notebook(&command.by, thread.as_ref()).await)
    }

    fn records(&self) -> Records<'_> {
        let Parts { store, clock, links, .. } = &*self.0;
        Records { store: &**store, links, now: clock.now() }
    }

    async fn asker(&self, command: &Command) -> Asker {
        Asker {
            by: command.by.clone(),
            place: (command.team.clone(), command.channel.clone()),
            groups: self.0.groups.of(&command.by).await,
        }
    }

    async fn settings(&self) -> Reply {
        let platform = self.0.quick.health_fact().await;
        replies::settings(&self.0.settings, platform.as_ref().ok(), self.0.clock.now())
    }
}
