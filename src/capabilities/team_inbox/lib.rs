//! The team's inbox: `/mail`, the section of the Home tab, figures with pictures, and a daily digest.
//!
//! The mail graph classifies and answers mails; this capability only shows what it has done, and can pause it. It reads
//! the mails through [`MailList`], so it knows neither the graph nor the mail account.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`mail_list`] | the mails as they are shown, and the trait of their source |
//! | [`figures`] | numbers of mails, and the times until an answer |
//! | [`tools`] | questions in a conversation |
//! | [`digest`] | the daily digest, posted once |
//! | [`replies`] | the sentences |
//!
//! *Architecture Invariant:* senders and subjects are shown only in the channel of mails, and in the Home tab of people who
//! are known to be its members. Everywhere else there are numbers and links, which work only for those members.

mod chart;
mod commands;
pub mod digest;
pub mod figures;
mod home;
pub mod mail_list;
mod phrases;
pub mod replies;
#[cfg(test)]
mod testing;
pub mod tools;

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use countersign_capabilities::{Capability, CapabilityInfo, Family, Tool, facts::Facts};
use countersign_core::{
    clock::Clock,
    ids::{ChannelId, UserId},
    reply::Reply,
};
use countersign_graph::action::{ActionKind, Reader};

use self::{mail_list::MailList, tools::Deps};

/// The capability for the team's inbox.
#[derive(Debug)]
pub struct TeamInbox(Deps);

impl TeamInbox {
    /// Creates the capability for the mails in this book.
    pub fn new(book: Arc<dyn MailList>, clock: Arc<dyn Clock>) -> Self {
        Self(Deps { book, clock })
    }
}

#[async_trait]
impl Capability for TeamInbox {
    fn info(&self) -> CapabilityInfo {
        CapabilityInfo {
            phrases: Some(&phrases::OF_MAIL),
            examples: &[
                ("Email", "which emails are waiting?"),
                ("Email of a customer", "any email from Ada?"),
                ("Email today", "what happened in the inbox today?"),
                ("Response times", "how fast do we answer email?"),
            ],
            command: Some(commands::COMMAND),
            home_channel: Some(self.0.book.channel().clone()),
            ..CapabilityInfo::new("mail", "The team's email: what is waiting for a reply, and how fast replies go out.")
        }
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        tools::all(&self.0)
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        Vec::new()
    }

    fn families(&self) -> Vec<Family> {
        let family = Family::new("mail", "the team's email: its status, what waits for a reply, figures");
        vec![family.tools([tools::STATUS, tools::WAITING, tools::FIND, tools::FIGURES])]
    }

    async fn answer(&self, word: &str, rest: &str, _: &Facts, reader: &Reader) -> Reply {
        commands::answer(&*self.0.book, word, rest, reader, self.0.clock.now()).await
    }

    async fn home_of(&self, _: &UserId, channels: &BTreeSet<ChannelId>) -> Option<Reply> {
        home::section(&*self.0.book, channels, self.0.clock.now()).await
    }
}
