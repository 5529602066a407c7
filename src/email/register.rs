//! The list of mails: one register of the store for each mail, and lists of their ids.
//!
//! A mail's entry is a small register that is changed by compare-and-set. The ids are in pages of [`PAGE`] entries, so a
//! new mail rewrites at most one page, however many mails there are. [`MailRegister::open`] has the mails that are not settled. The
//! entry says what people see in lists; the thread's own memory, its actions and its record stay the truth about the mail.

mod conversation;
mod open;

use std::{collections::BTreeSet, sync::Arc};

use countersign_core::{
    clock::Timestamp,
    ids::{Nonce, ThreadId},
};
use countersign_graph::{
    digest::Digest,
    store::{Error, Store, TypedRegister},
};
pub use countersign_mail::MailStatus;
use countersign_mail::{Incoming, Mail, MailId, MailThreadId, Warning};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;

pub use self::open::OpenMail;
use super::{
    rules::{Class, cut},
    state::StepEntry,
};

/// The beginning of the keys of all registers about mails. They are sealed, since the number of automatic answers and
/// the threads of mails depend on them.
pub const REGISTERS: &str = "mail/";

/// The number of ids on a page.
const PAGE: usize = 100;

/// The number of entries that are read at the same time.
const READ_AT_ONCE: usize = 16;

/// The maximum number of earlier answers to one address that are kept.
const MAX_ANSWERS: usize = 5;

/// The maximum length of a subject in an entry, in characters.
const MAX_SUBJECT_CHARS: usize = 200;

/// The maximum length of an earlier answer, in characters.
const MAX_ANSWER_CHARS: usize = 2_000;

/// A mail in the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The mail.
    pub mail: MailId,
    /// The key by which the message that begins its thread is found in Slack.
    pub nonce: Nonce,
    /// The time at which the bot learned of it.
    pub first_seen: Timestamp,
    /// The time at which the server received it.
    pub received_at: Timestamp,
    /// The address of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The display name of the sender, if the mail has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_name: Option<String>,
    /// The address to which the sender would like answers to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The `Message-ID`, without angle brackets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The conversation in the account, if the server has conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<MailThreadId>,
    /// The id that the server gave the mail later, if it gave new ids to all mails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed: Option<MailId>,
    /// The subject, shortened.
    pub subject: String,
    /// The reason why it waits for a person, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The mail before it in the same conversation, if the list has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<MailId>,
    /// The thread; `None` before it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// True once the thread has the mail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_delivered: bool,
    /// The status.
    pub status: MailStatus,
    /// The time of the last change.
    pub updated_at: Timestamp,
    /// The class, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// The confidence of the class.
    #[serde(default)]
    pub confidence: f64,
    /// True if the answer was sent without a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_automatic: bool,
    /// True if it was closed as spam. Its status is then that of a rejected mail, as the contract says, or of an answered
    /// one if a reply had gone out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_spam: bool,
    /// The number of times that its thread was found without a result.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stuck: u32,
    /// The steps of its last run, for figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepEntry>,
    /// The first mail after it in the same conversation that came while it waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer: Option<MailId>,
    /// A few words about a sign that it may want to deceive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub danger: Option<String>,
    /// What it is, if it needs no answer, after “This email is”.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<String>,
    /// The beginning of the digest of its text, by which another copy of it is recognized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Entry {
    /// Creates the entry of a mail that has just been found.
    pub fn new(mail: &Mail, now: Timestamp) -> Self {
        Self {
            mail: mail.id.clone(),
            nonce: Nonce::fresh(),
            first_seen: now,
            received_at: mail.received_at,
            sender: mail.sender().map(|sender| sender.address.clone()),
            sender_name: mail.sender().and_then(|sender| sender.name.as_deref()).map(|name| cut(name, 80)),
            reply_to: mail.reply_to.as_ref().map(|reply_to| reply_to.address.clone()),
            message_id: mail.message_id.clone(),
            conversation: mail.thread.clone(),
            renamed: None,
            subject: cut(&mail.subject, MAX_SUBJECT_CHARS),
            why: None,
            earlier: None,
            thread: None,
            is_delivered: false,
            status: MailStatus::Pending,
            updated_at: now,
            class: None,
            confidence: 0.0,
            is_automatic: false,
            is_spam: false,
            stuck: 0,
            steps: Vec::new(),
            newer: None,
            danger: mail.warnings.iter().find_map(Warning::danger).map(str::to_owned),
            quiet: None,
            content: Some(content_of(mail)),
        }
    }

    /// Returns the facts by which an answer to the mail is found; `None` without a sender.
    pub fn incoming(&self) -> Option<Incoming> {
        Some(Incoming {
            thread: self.conversation.clone(),
            message_id: self.message_id.clone(),
            addresses: [Some(self.sender.clone()?), self.reply_to.clone()].into_iter().flatten().collect(),
            received_at: self.received_at,
        })
    }

    /// Changes the status, if the transition is legal. Returns false otherwise.
    pub fn move_to(&mut self, status: MailStatus, now: Timestamp) -> bool {
        let legal = self.status.may_become(status);
        if legal {
            (self.status, self.updated_at, self.why) = (status, now, None);
            self.is_spam = false;
        }
        legal
    }

    /// Closes the mail as spam, if that is legal. Returns false otherwise. A mail that was answered stays so.
    pub fn close_as_spam(&mut self, now: Timestamp) -> bool {
        let legal = self.status == MailStatus::Sent || self.move_to(MailStatus::Rejected, now);
        self.is_spam |= legal;
        legal
    }

    /// Returns true if a mail is another copy of this one, as it arrives for a second address or through a list: its id is
    /// the same, which its sender chose, and so is the sender or the text.
    pub(super) fn is_copied_by(&self, mail: &Mail) -> bool {
        let has_same_id = self.message_id.is_some() && self.message_id == mail.message_id && self.mail != mail.id;
        let sender = mail.sender().map(|sender| &sender.address);
        has_same_id && (self.sender.as_ref() == sender || self.content == Some(content_of(mail)))
    }

    /// Returns true if it was put away as a mail that needs no answer.
    pub fn is_put_away(&self) -> bool {
        self.quiet.is_some() && self.status == MailStatus::Rejected && !self.is_spam
    }

    /// Returns true if what was known of the mail is deleted ([`MailRegister::forget`]).
    pub fn is_forgotten(&self) -> bool {
        self.sender.is_none() && self.subject.is_empty() && self.message_id.is_none() && self.status.is_settled()
    }

    /// Returns the state in words for people.
    pub fn outcome(&self) -> &'static str {
        match (self.is_spam, self.status) {
            _ if self.is_put_away() => "no reply needed",
            (true, MailStatus::Sent) => "answered, marked as spam",
            (true, _) => "marked as spam",
            (false, status) => status.words(),
        }
    }
}

fn content_of(mail: &Mail) -> String {
    Digest::of(&[&json!(mail.text.split_whitespace().collect::<Vec<_>>())]).as_str()[..32].to_owned()
}

/// An earlier answer to an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierAnswer {
    /// The mail that was answered.
    pub mail: MailId,
    /// The subject of that mail.
    pub subject: String,
    /// The time at which the answer was sent.
    pub at: Timestamp,
    /// The answer, shortened.
    pub text: String,
    /// The thread in Slack.
    pub thread: ThreadId,
}

/// The list of mails.
#[derive(Clone, Debug)]
pub struct MailRegister {
    store: Arc<dyn Store>,
    account: String,
}

impl MailRegister {
    /// Opens the list of the mails of this account.
    pub fn new(store: Arc<dyn Store>, account: impl Into<String>) -> Self {
        Self { store, account: account.into() }
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the key of a register of this account.
    pub(super) fn key(&self, kind: &str, of: &str) -> String {
        // A server's ids may be long, and an address is not written in a key.
        let name = Digest::of(&[&json!(self.account), &json!(of)]);
        format!("{REGISTERS}{kind}/{}", &name.as_str()[..32])
    }

    /// Returns the entry of a mail; `None` if the mail is not in the list.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering, or the entry cannot be read.
    pub async fn entry(&self, mail: &MailId) -> Result<Option<Entry>, Error> {
        self.load(&self.key("entry", mail.as_str())).await
    }

    /// Adds a mail to the list, unless it is there already. Returns its entry.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering. The call can be repeated.
    pub async fn add(&self, entry: Entry) -> Result<Entry, Error> {
        // The id first: an id without an entry does no harm, and an entry without an id would never be listed.
        self.list(&entry.mail).await?;
        if let Some(message_id) = &entry.message_id {
            let key = self.key("message", message_id);
            self.change(&key, |known: Option<MailId>| known.is_none().then(|| entry.mail.clone())).await?;
        }
        for conversation in entry.conversations() {
            self.join(&conversation, &entry.mail).await?;
        }
        let key = self.key("entry", entry.mail.as_str());
        let known = self.change(&key, |known: Option<Entry>| Some(known.unwrap_or_else(|| entry.clone()))).await?;
        self.index(&entry.mail).await?;
        Ok(known.unwrap_or(entry)) // it is always written
    }

    /// Returns the entry of the first mail with this `Message-ID`, which its sender chose.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering, or the entry cannot be read.
    pub async fn with_message_id(&self, message_id: &str) -> Result<Option<Entry>, Error> {
        let first: Option<MailId> = self.load(&self.key("message", message_id)).await?;
        match first {
            Some(mail) => self.entry(&mail).await,
            None => Ok(None),
        }
    }

    /// Returns the id under which the server has a mail now.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering, or the entry cannot be read.
    pub async fn current_id(&self, mail: &MailId) -> Result<MailId, Error> {
        let renamed = self.entry(mail).await?.and_then(|entry| entry.renamed);
        Ok(renamed.unwrap_or_else(|| mail.clone()))
    }

    /// Changes the entry of a mail. Returns the new entry; `None` if the mail is not in the list, or `change` returned
    /// false, and then nothing is written.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering. The call can be repeated.
    pub async fn update(
        &self,
        mail: &MailId,
        change: impl Fn(&mut Entry) -> bool + Send + Sync,
    ) -> Result<Option<Entry>, Error> {
        let key = self.key("entry", mail.as_str());
        let changed = self.change(&key, |known: Option<Entry>| {
            let mut entry = known?;
            change(&mut entry).then_some(entry)
        });
        let changed = changed.await?;
        self.index(mail).await?;
        Ok(changed)
    }

    /// Returns the newest mails, at most `limit`, newest first.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering.
    pub async fn newest(&self, limit: usize) -> Result<Vec<Entry>, Error> {
        let mut page = self.last_page().await?;
        let (mut listed, mut entries) = (BTreeSet::new(), Vec::new());
        loop {
            let ids: Vec<MailId> =
                self.page(page).await?.into_iter().rev().filter(|id| listed.insert(id.clone())).collect();
            let read = stream::iter(ids).map(|id| async move { self.entry(&id).await }).buffered(READ_AT_ONCE);
            let read: Vec<Option<Entry>> = read.take(limit - entries.len()).try_collect().await?;
            entries.extend(read.into_iter().flatten());
            match page.checked_sub(1) {
                Some(before) if entries.len() < limit => page = before,
                _ => return Ok(entries),
            }
        }
    }

    /// Returns the earlier answers to an address, newest first.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering.
    pub async fn answers_to(&self, address: &str) -> Result<Vec<EarlierAnswer>, Error> {
        let answers: Option<Vec<EarlierAnswer>> = self.load(&self.key("answers", address)).await?;
        Ok(answers.unwrap_or_default())
    }

    /// Remembers an answer to an address. Remembering the answer to the same mail again changes nothing.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering. The call can be repeated.
    pub async fn remember_answer(&self, address: &str, answer: EarlierAnswer) -> Result<(), Error> {
        let answer = EarlierAnswer {
            subject: cut(&answer.subject, MAX_SUBJECT_CHARS),
            text: cut(&answer.text, MAX_ANSWER_CHARS),
            ..answer
        };
        self.change(&self.key("answers", address), |known: Option<Vec<EarlierAnswer>>| {
            let mut answers = known.unwrap_or_default();
            if answers.iter().any(|known| known.mail == answer.mail) {
                return None;
            }
            answers.insert(0, answer.clone());
            answers.truncate(MAX_ANSWERS);
            Some(answers)
        })
        .await?;
        Ok(())
    }

    /// Forgets what was said to an address and the subjects of a mail, when its thread is forgotten.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering. The call can be repeated.
    pub async fn forget(&self, mail: &MailId) -> Result<(), Error> {
        let Some(entry) = self.entry(mail).await? else { return Ok(()) };
        if let Some(sender) = &entry.sender {
            self.change(&self.key("answers", sender), |known: Option<Vec<EarlierAnswer>>| {
                let mut answers = known?;
                answers.retain(|answer| answer.mail != *mail);
                Some(answers)
            })
            .await?;
        }
        self.update(mail, |entry| {
            (entry.sender, entry.sender_name, entry.why) = (None, None, None);
            (entry.reply_to, entry.message_id, entry.conversation) = (None, None, None);
            (entry.earlier, entry.newer, entry.danger, entry.content) = (None, None, None, None);
            entry.subject.clear();
            entry.steps.clear();
            true
        })
        .await?;
        Ok(())
    }

    /// Adds an id to the last page, unless it is on one of the last two pages.
    async fn list(&self, mail: &MailId) -> Result<(), Error> {
        let last = self.last_page().await?;
        if last > 0 && self.page(last - 1).await?.contains(mail) {
            return Ok(());
        }
        let key = self.page_key(last);
        let added = self.change(&key, |known: Option<Vec<MailId>>| {
            let mut ids = known.unwrap_or_default();
            if ids.contains(mail) || ids.len() >= PAGE {
                return None;
            }
            ids.push(mail.clone());
            Some(ids)
        });
        if let Some(ids) = added.await? {
            return if ids.len() >= PAGE { self.turn_page(last).await } else { Ok(()) };
        }
        if self.page(last).await?.contains(mail) {
            return Ok(());
        }
        self.turn_page(last).await?; // it was full, and the process that filled it has not turned it
        Box::pin(self.list(mail)).await
    }

    /// Makes the page after `last` the last one, unless another process did.
    async fn turn_page(&self, last: u64) -> Result<(), Error> {
        let key = self.key("pages", "last");
        self.change(&key, |known: Option<u64>| (known.unwrap_or(0) == last).then_some(last + 1)).await.map(drop)
    }

    async fn last_page(&self) -> Result<u64, Error> {
        let last: Option<u64> = self.load(&self.key("pages", "last")).await?;
        Ok(last.unwrap_or(0))
    }

    async fn page(&self, page: u64) -> Result<Vec<MailId>, Error> {
        let ids: Option<Vec<MailId>> = self.load(&self.page_key(page)).await?;
        Ok(ids.unwrap_or_default())
    }

    fn page_key(&self, page: u64) -> String {
        self.key("page", &page.to_string())
    }

    /// Changes a register by compare-and-set. `change` returns the new value, or `None` to write nothing. Returns the
    /// value that was written.
    pub(super) async fn change<T: Serialize + DeserializeOwned + Clone + Send + Sync>(
        &self,
        key: &str,
        change: impl Fn(Option<T>) -> Option<T> + Send + Sync,
    ) -> Result<Option<T>, Error> {
        let register = self.register::<Option<T>>(key);
        let changed = register.change(|value| {
            let new = change(value.clone());
            if new.is_some() {
                value.clone_from(&new);
            }
            new
        });
        changed.await
    }

    /// Returns the value of a register; `None` if it was never set.
    async fn load<T: Serialize + DeserializeOwned + Send>(&self, key: &str) -> Result<Option<T>, Error> {
        Ok(self.register(key).load().await?.1)
    }

    /// Returns the register with this key.
    pub(super) fn register<T: Serialize + DeserializeOwned + Default + Send>(&self, key: &str) -> TypedRegister<T> {
        TypedRegister::new(self.store.clone(), key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support::{TestStore, mail};

    #[tokio::test]
    async fn a_mail_is_listed_once() {
        let store = TestStore::open();
        let book = MailRegister::new(store.store.clone(), "us@example.com");
        let first = book.add(Entry::new(&mail(), Timestamp(1))).await.unwrap();
        let again = book.add(Entry::new(&mail(), Timestamp(2))).await.unwrap();
        assert_eq!(first, again);
        assert_eq!(book.newest(10).await.unwrap(), [first]);
    }

    #[tokio::test]
    async fn the_newest_mails_are_listed_first_over_several_pages() {
        let store = TestStore::open();
        let book = MailRegister::new(store.store.clone(), "us@example.com");
        for nth in 0..230 {
            let mail = Mail { id: MailId::new(format!("m{nth}")), ..mail() };
            book.add(Entry::new(&mail, Timestamp(nth))).await.unwrap();
        }
        let newest = book.newest(500).await.unwrap();
        let ids: Vec<&str> = newest.iter().map(|entry| entry.mail.as_str()).collect();
        assert_eq!((ids.len(), ids[0], ids[229]), (230, "m229", "m0"));
        assert_eq!(book.newest(3).await.unwrap().len(), 3);
    }

    #[tokio::test]
    async fn only_legal_changes_are_written() {
        let store = TestStore::open();
        let book = MailRegister::new(store.store.clone(), "us@example.com");
        let entry = book.add(Entry::new(&mail(), Timestamp(1))).await.unwrap();
        let moved = |to| {
            let (book, mail) = (book.clone(), entry.mail.clone());
            async move { book.update(&mail, |entry| entry.move_to(to, Timestamp(9))).await.unwrap() }
        };
        assert!(moved(MailStatus::Sent).await.is_none(), "nothing was decided");
        assert!(moved(MailStatus::Processing).await.is_some());
        assert!(moved(MailStatus::NeedsReview).await.is_some());
        assert_eq!(book.waiting(10).await.unwrap().len(), 1);
        assert!(moved(MailStatus::Sent).await.is_some());
        assert!(moved(MailStatus::Rejected).await.is_none(), "it was sent");
        assert!(book.waiting(10).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn earlier_answers_are_found_by_address() {
        let store = TestStore::open();
        let book = MailRegister::new(store.store.clone(), "us@example.com");
        for nth in 0..7 {
            let answer = EarlierAnswer {
                mail: MailId::new(format!("m{nth}")),
                subject: "Prices".into(),
                at: Timestamp(nth),
                text: "They are on our page.".into(),
                thread: crate::tests::support::thread(),
            };
            book.remember_answer("dana@example.org", answer.clone()).await.unwrap();
            book.remember_answer("dana@example.org", answer).await.unwrap();
        }
        let answers = book.answers_to("dana@example.org").await.unwrap();
        assert_eq!(answers.iter().map(|answer| answer.at.0).collect::<Vec<_>>(), [6, 5, 4, 3, 2]);
        assert!(book.answers_to("bo@example.org").await.unwrap().is_empty());
    }
}
