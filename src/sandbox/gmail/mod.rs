//! The stand-in for Gmail and its Pub/Sub notifications: a real HTTP server on this machine with one mailbox.
//!
//! It keeps messages, threads, drafts, labels and the history, and answers and refuses as Gmail does: a reply joins a
//! thread only with the right references and subject, a draft can be sent once and its copy has another id, an old
//! history id is not found, and unknown fields, parameters, ids, tokens and scopes are refused in Google's format. It may
//! replace each `Message-ID` of a sent mail ([`Options::replaces_message_ids`]).
//!
//! Start at [`SandboxGmail`]. A request goes through `server` (faults, ledger) to `routes`, which check it and work on
//! `mailbox` and `pubsub`. People outside write with [`SandboxGmail::receives`] and read with [`SandboxGmail::sent`].
//! Tokens are issued by [`crate::google`].

mod failure;
mod letter;
mod mailbox;
mod mime;
mod persistence;
mod pubsub;
mod routes;
mod server;
mod strict;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use countersign_core::clock::{Clock, SystemClock, Timestamp};

pub use self::letter::{Letter, SentMail, StoredMail};
use self::{mailbox::Mailbox, pubsub::PubSub, routes::World};
use super::google::{PERSON, Tokens};
use crate::{
    faults::Faults,
    ledger::Request,
    stand_in::{self, Place, StandIn},
};

/// The options of the stand-in.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address of the mailbox.
    pub address: String,
    /// The issuer of the access tokens that requests must have; `None` if any token will do.
    pub tokens: Option<Arc<Tokens>>,
    /// True if the `Message-ID` of each sent mail is replaced.
    pub replaces_message_ids: bool,
    /// The maximum number of items on a page of a list.
    pub page_size: usize,
    /// The port on 127.0.0.1; 0 means a free one.
    pub port: u16,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The number from which the ids of mails and of the history count. With a higher one than an earlier stand-in
    /// reached, no id is that of an earlier mail, and the earlier history is too old.
    pub numbers_from: u64,
    /// The file in which the mailbox is kept; `None` if it is forgotten at the end.
    pub persist: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: PERSON.to_owned(),
            tokens: None,
            replaces_message_ids: false,
            page_size: 500,
            port: 0,
            clock: Arc::new(SystemClock),
            numbers_from: 0,
            persist: None,
        }
    }
}

/// A running stand-in. Dropping it stops the server.
#[derive(Debug)]
pub struct SandboxGmail {
    server: StandIn<World>,
}

impl SandboxGmail {
    /// Starts a server with the saved mailbox, or with an empty one.
    ///
    /// # Errors
    ///
    /// If the port is taken, or the saved mailbox cannot be read.
    pub async fn start(options: Options) -> std::io::Result<Self> {
        let place = Place { persist: options.persist.clone(), ..Place::new(options.port, options.clock.clone()) };
        let saved = place.kept()?.as_deref().map(persistence::load).transpose()?;
        let (mailbox, sent) = saved.unwrap_or_else(|| {
            let empty = Mailbox::new(options.address.clone(), options.replaces_message_ids);
            (empty.counting_from(options.numbers_from), Vec::new())
        });
        let (page_size, published) = (options.page_size, mailbox.newest_history);
        let world = World { mailbox, pubsub: PubSub::new(), now: 0, page_size, sent, published };
        Ok(Self { server: StandIn::start(world, options, place, stand_in::routes).await? })
    }

    /// Returns the base URL of Gmail and of Pub/Sub, such as `http://127.0.0.1:4000`.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Receives a letter. Returns the id of the mail.
    pub fn receives(&self, letter: &Letter) -> String {
        self.server.change(|world| {
            let message_id = format!("letter-{}@customer.example", world.mailbox.letter_number());
            let message = letter.to_mime(&world.mailbox.address, &message_id, Timestamp(world.now));
            world.mailbox.receive(message, world.now)
        })
    }

    /// Has a person answer a mail of the mailbox with a mail program. Returns the id of the sent copy; `None` if there is
    /// no such mail.
    pub fn answers_by_hand(&self, id: &str, from: &str, text: &str) -> Option<String> {
        let answered = self.mail(id)?;
        let subject = format!("Re: {}", answered.subject);
        let letter = Letter { references: vec![answered.message_id], ..Letter::new(from, &subject, text) };
        Some(self.server.change(|world| {
            let message_id = format!("by-hand-{}@sandbox.example", world.mailbox.letter_number());
            let message = letter.to_mime(&answered.from, &message_id, Timestamp(world.now));
            world.mailbox.send(&message, answered.thread.clone(), None, world.now).id
        }))
    }

    /// Receives a message of any form. Returns the id of the mail.
    pub fn receives_mime(&self, message: impl Into<Vec<u8>>) -> String {
        let message = message.into();
        self.server.change(|world| world.mailbox.receive(message, world.now))
    }

    /// Returns every mail that was sent so far, oldest first.
    pub fn sent(&self) -> Vec<SentMail> {
        self.server.world().sent.clone()
    }

    /// Returns for each thread and each `X-Countersign-Key` how often a mail was sent.
    pub fn times_sent(&self) -> BTreeMap<(String, Option<String>), usize> {
        let mut times = BTreeMap::new();
        for mail in &self.server.world().sent {
            *times.entry((mail.thread.clone(), mail.key.clone())).or_default() += 1;
        }
        times
    }

    /// Returns every request so far.
    pub fn ledger(&self) -> Vec<Request> {
        self.server.requests()
    }

    /// Returns every request since the last call of this method, and removes them from the ledger. For runs so long
    /// that the ledger would fill the memory.
    pub fn takes_ledger(&self) -> Vec<Request> {
        self.server.take_requests()
    }

    /// Returns the faults.
    pub fn faults(&self) -> Faults {
        self.server.faults.clone()
    }

    /// Returns a mail in the mailbox.
    pub fn mail(&self, id: &str) -> Option<StoredMail> {
        let world = self.server.world();
        world.mailbox.message(id).map(|message| StoredMail::of(&world.mailbox, message))
    }

    /// Returns the mails of a thread, oldest first, with its drafts.
    pub fn thread(&self, id: &str) -> Vec<StoredMail> {
        let world = self.server.world();
        let messages = world.mailbox.thread(id).unwrap_or_default();
        messages.into_iter().map(|message| StoredMail::of(&world.mailbox, message)).collect()
    }

    /// Returns all mails, newest first, with the drafts.
    pub fn mails(&self) -> Vec<StoredMail> {
        let world = self.server.world();
        world.mailbox.newest_first().map(|message| StoredMail::of(&world.mailbox, message)).collect()
    }

    /// Returns the drafts with their ids, oldest first.
    pub fn drafts(&self) -> Vec<(String, StoredMail)> {
        let world = self.server.world();
        let mail = |id: &str| world.mailbox.message(id).map(|message| StoredMail::of(&world.mailbox, message));
        world.mailbox.drafts.iter().filter_map(|draft| Some((draft.id.clone(), mail(&draft.message)?))).collect()
    }

    /// Deletes a mail for ever, as the owner of the mailbox can.
    pub fn deletes(&self, id: &str) {
        self.server.change(|world| world.mailbox.delete(id));
    }

    /// Replaces the message of a draft, as the owner of the mailbox can.
    pub fn edits_draft(&self, id: &str, message: impl Into<Vec<u8>>) {
        let message = message.into();
        self.server.change(|world| {
            let draft = world.mailbox.drafts.iter().find(|draft| draft.id == id)?;
            let thread = world.mailbox.message(&draft.message)?.thread.clone();
            world.mailbox.update_draft(id, message, Some(&thread), world.now)
        });
    }

    /// Deletes a draft, as the owner of the mailbox can.
    pub fn deletes_draft(&self, id: &str) {
        self.server.change(|world| world.mailbox.delete_draft(id));
    }

    /// Deletes a label with this name, as the owner of the mailbox can.
    pub fn deletes_label(&self, name: &str) {
        self.server.change(|world| world.mailbox.labels.retain(|label| label.name != name));
    }

    /// Forgets the history, so that every older history id is not found.
    pub fn expires_history(&self) {
        self.server.change(|world| world.mailbox.expire_history());
    }

    /// Returns the full name of the topic to which changes can be published.
    pub fn topic(&self) -> String {
        self.server.world().pubsub.topic.clone()
    }

    /// Returns the full name of the subscription to the topic.
    pub fn subscription(&self) -> String {
        self.server.world().pubsub.subscription.clone()
    }

    /// Returns the time until which the mailbox is watched, if it is.
    pub fn watched_until(&self) -> Option<Timestamp> {
        self.server.world().pubsub.watched_until()
    }

    /// Returns the number of notifications that were not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.server.world().pubsub.unacknowledged()
    }
}
