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

mod call;
mod control;
mod failure;
mod faults;
mod ledger;
mod letter;
mod mailbox;
mod mime;
mod persistence;
mod pubsub;
mod routes;
mod search;
mod server;

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, sync::Arc};

use countersign_core::clock::{Clock, SystemClock, Timestamp};

use self::server::Shared;
pub use self::{
    faults::{Fault, Faults, Rate},
    ledger::{Request, SentMail},
    letter::{Letter, StoredMail},
};
use super::google::{PERSON, Tokens};

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
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl SandboxGmail {
    /// Starts a server with the saved mailbox, or with an empty one.
    ///
    /// # Errors
    ///
    /// If the port is taken, or the saved mailbox cannot be read.
    pub async fn start(options: Options) -> std::io::Result<Self> {
        let (listener, address) = server::bind(options.port).await?;
        let shared = Arc::new(Shared::new(options)?);
        tokio::spawn(server::serve(listener, shared.clone()));
        Ok(Self { address, shared })
    }

    /// Returns the base URL of Gmail and of Pub/Sub, such as `http://127.0.0.1:4000`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Receives a letter. Returns the id of the mail.
    pub fn receives(&self, letter: &Letter) -> String {
        deliver(&self.shared, letter)
    }

    /// Has a person answer a mail of the mailbox with a mail program. Returns the id of the sent copy; `None` if there is
    /// no such mail.
    pub fn answers_by_hand(&self, id: &str, from: &str, text: &str) -> Option<String> {
        let answered = self.mail(id)?;
        let subject = format!("Re: {}", answered.subject);
        let letter = Letter { references: vec![answered.message_id], ..Letter::new(from, &subject, text) };
        Some(self.shared.change(|world| {
            let message_id = format!("by-hand-{}@sandbox.example", world.mailbox.letter_number());
            let message = letter.to_mime(&answered.from, &message_id, Timestamp(world.now));
            world.mailbox.send(&message, answered.thread.clone(), None, world.now).id
        }))
    }

    /// Receives a message of any form. Returns the id of the mail.
    pub fn receives_mime(&self, message: impl Into<Vec<u8>>) -> String {
        let message = message.into();
        self.shared.change(|world| world.mailbox.receive(message, world.now))
    }

    /// Returns every mail that was sent so far, oldest first.
    pub fn sent(&self) -> Vec<SentMail> {
        drop(self.shared.world()); // the late requests that are due come first
        self.shared.ledger.sent()
    }

    /// Returns for each thread and each `X-Countersign-Key` how often a mail was sent.
    pub fn times_sent(&self) -> BTreeMap<(String, Option<String>), usize> {
        drop(self.shared.world());
        self.shared.ledger.times_sent()
    }

    /// Returns every request so far.
    pub fn ledger(&self) -> Vec<Request> {
        drop(self.shared.world());
        self.shared.ledger.all()
    }

    /// Returns every request since the last call of this method, and removes them from the ledger. For runs so long
    /// that the ledger would fill the memory. Must not be called during a request.
    pub fn takes_ledger(&self) -> Vec<Request> {
        self.shared.ledger.take()
    }

    /// Returns the faults.
    pub fn faults(&self) -> Faults {
        self.shared.faults.clone()
    }

    /// Returns a mail in the mailbox.
    pub fn mail(&self, id: &str) -> Option<StoredMail> {
        let world = self.shared.world();
        world.mailbox.message(id).map(|message| StoredMail::of(&world.mailbox, message))
    }

    /// Returns the mails of a thread, oldest first, with its drafts.
    pub fn thread(&self, id: &str) -> Vec<StoredMail> {
        let world = self.shared.world();
        let messages = world.mailbox.thread(id).unwrap_or_default();
        messages.into_iter().map(|message| StoredMail::of(&world.mailbox, message)).collect()
    }

    /// Returns all mails, newest first, with the drafts.
    pub fn mails(&self) -> Vec<StoredMail> {
        let world = self.shared.world();
        world.mailbox.newest_first().map(|message| StoredMail::of(&world.mailbox, message)).collect()
    }

    /// Returns the drafts with their ids, oldest first.
    pub fn drafts(&self) -> Vec<(String, StoredMail)> {
        let world = self.shared.world();
        let mail = |id: &str| world.mailbox.message(id).map(|message| StoredMail::of(&world.mailbox, message));
        world.mailbox.drafts.iter().filter_map(|draft| Some((draft.id.clone(), mail(&draft.message)?))).collect()
    }

    /// Deletes a mail for ever, as the owner of the mailbox can.
    pub fn deletes(&self, id: &str) {
        self.shared.change(|world| world.mailbox.delete(id));
    }

    /// Replaces the message of a draft, as the owner of the mailbox can.
    pub fn edits_draft(&self, id: &str, message: impl Into<Vec<u8>>) {
        let message = message.into();
        self.shared.change(|world| {
            let draft = world.mailbox.drafts.iter().find(|draft| draft.id == id)?;
            let thread = world.mailbox.message(&draft.message)?.thread.clone();
            world.mailbox.update_draft(id, message, Some(&thread), world.now)
        });
    }

    /// Deletes a draft, as the owner of the mailbox can.
    pub fn deletes_draft(&self, id: &str) {
        self.shared.change(|world| world.mailbox.delete_draft(id));
    }

    /// Deletes a label with this name, as the owner of the mailbox can.
    pub fn deletes_label(&self, name: &str) {
        self.shared.change(|world| world.mailbox.labels.retain(|label| label.name != name));
    }

    /// Forgets the history, so that every older history id is not found.
    pub fn expires_history(&self) {
        self.shared.change(|world| world.mailbox.expire_history());
    }

    /// Returns the full name of the topic to which changes can be published.
    pub fn topic(&self) -> String {
        self.shared.world().pubsub.topic.clone()
    }

    /// Returns the full name of the subscription to the topic.
    pub fn subscription(&self) -> String {
        self.shared.world().pubsub.subscription.clone()
    }

    /// Returns the time until which the mailbox is watched, if it is.
    pub fn watched_until(&self) -> Option<Timestamp> {
        self.shared.world().pubsub.watched_until()
    }

    /// Returns the number of notifications that were not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.shared.world().pubsub.unacknowledged()
    }
}

impl Drop for SandboxGmail {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

/// Puts a letter into the mailbox. Returns the id of the mail.
fn deliver(shared: &Shared, letter: &Letter) -> String {
    shared.change(|world| {
        let message_id = format!("letter-{}@customer.example", world.mailbox.letter_number());
        let message = letter.to_mime(&world.mailbox.address, &message_id, Timestamp(world.now));
        world.mailbox.receive(message, world.now)
    })
}
