//! The mailbox: its messages, threads, drafts, labels and history.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{letter::SentMail, mime};

/// The labels that every mailbox has.
pub(crate) const SYSTEM_LABELS: [&str; 12] = [
    "INBOX",
    "SENT",
    "DRAFT",
    "UNREAD",
    "STARRED",
    "IMPORTANT",
    "SPAM",
    "TRASH",
    "CATEGORY_PERSONAL",
    "CATEGORY_SOCIAL",
    "CATEGORY_PROMOTIONS",
    "CATEGORY_UPDATES",
];
/// The first history id.
const FIRST_HISTORY: u64 = 1000;

/// A message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Message {
    /// Its id.
    pub(crate) id: String,
    /// The id of its thread.
    pub(crate) thread: String,
    /// The ids of its labels.
    pub(crate) labels: Vec<String>,
    /// The time of its arrival, in milliseconds since 1970.
    pub(crate) at: i64,
    /// The last history record about it.
    pub(crate) history: u64,
    /// The message.
    #[serde(with = "super::persistence::base64")]
    pub(crate) bytes: Arc<[u8]>,
}

impl Message {
    /// Returns true if the message has this label.
    pub(crate) fn has(&self, label: &str) -> bool {
        self.labels.iter().any(|own| own == label)
    }
}

/// A draft.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Draft {
    /// Its id.
    pub(crate) id: String,
    /// The id of its message.
    pub(crate) message: String,
}

/// A label that was created.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Label {
    /// Its id.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
}

/// A change of the mailbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Change {
    /// A message was added.
    Added,
    /// A message was deleted.
    Deleted,
    /// Labels were added to a message.
    Labelled(Vec<String>),
    /// Labels were removed from a message.
    Unlabelled(Vec<String>),
}

/// A change of a message, in the history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Its id.
    pub(crate) id: u64,
    /// The change.
    pub(crate) change: Change,
    /// The id of the message.
    pub(crate) message: String,
    /// The thread of the message.
    pub(crate) thread: String,
    /// The labels of the message after the change.
    pub(crate) labels: Vec<String>,
}

/// The mailbox of one person.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Mailbox {
    /// The person's address.
    pub(crate) address: String,
    /// True if the `Message-ID` of a sent mail is replaced.
    pub(crate) replaces_message_ids: bool,
    /// The labels that were created.
    pub(crate) labels: Vec<Label>,
    /// The drafts, oldest first.
    pub(crate) drafts: Vec<Draft>,
    /// The history since [`Self::oldest_history`].
    pub(crate) history: Vec<Record>,
    /// The oldest history id that is still known.
    pub(crate) oldest_history: u64,
    /// The newest history id.
    pub(crate) newest_history: u64,
    /// The number of changes, by which a request with an effect is recognised.
    pub(crate) changes: u64,
    messages: HashMap<String, Message>,
    /// The ids of all messages, oldest first, also of those that were deleted.
    order: Vec<String>,
    /// The messages of each thread, oldest first.
    threads: HashMap<String, Vec<String>>,
    /// The thread of each `Message-ID`.
    by_message_id: HashMap<String, String>,
    next_id: u64,
}

impl Mailbox {
    /// Creates an empty mailbox.
    pub(crate) fn new(address: String, replaces_message_ids: bool) -> Self {
        Self {
            address,
            replaces_message_ids,
            labels: Vec::new(),
            drafts: Vec::new(),
            history: Vec::new(),
            oldest_history: FIRST_HISTORY,
            newest_history: FIRST_HISTORY,
            changes: 0,
            messages: HashMap::new(),
            order: Vec::new(),
            threads: HashMap::new(),
            by_message_id: HashMap::new(),
            next_id: 0,
        }
    }

    /// Lets the ids of mails and of the history count from this number.
    pub(crate) fn counting_from(mut self, number: u64) -> Self {
        let first_history = FIRST_HISTORY + number;
        (self.oldest_history, self.newest_history, self.next_id) = (first_history, first_history, number);
        self
    }

    /// Returns a message.
    pub(crate) fn message(&self, id: &str) -> Option<&Message> {
        self.messages.get(id)
    }

    /// Returns all messages, newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Message> {
        self.order.iter().rev().filter_map(|id| self.messages.get(id))
    }

    /// Returns the number of messages.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns the number of threads that have messages.
    pub(crate) fn thread_count(&self) -> usize {
        self.messages.values().map(|message| &message.thread).collect::<HashSet<_>>().len()
    }

    /// Returns the messages of a thread, oldest first; `None` if there is no such thread.
    pub(crate) fn thread(&self, id: &str) -> Option<Vec<&Message>> {
        let messages: Vec<_> = self.threads.get(id)?.iter().filter_map(|id| self.messages.get(id)).collect();
        (!messages.is_empty()).then_some(messages)
    }

    /// Adds a mail from outside.
    pub(crate) fn receive(&mut self, bytes: Vec<u8>, at: i64) -> String {
        let thread = self.thread_for(&bytes, None);
        self.add(bytes, thread, &["INBOX", "UNREAD", "CATEGORY_PERSONAL"], at)
    }

    /// Creates a draft, in the requested thread if the message belongs to it.
    pub(crate) fn create_draft(&mut self, bytes: Vec<u8>, thread: Option<&str>, at: i64) -> Draft {
        let thread = self.thread_for(&bytes, thread);
        let message = self.add(bytes, thread, &["DRAFT"], at);
        let draft = Draft { id: format!("r{}", 7_000_000_000_000_000_000 + self.next_id), message };
        self.drafts.push(draft.clone());
        draft
    }

    /// Replaces the message of a draft.
    pub(crate) fn update_draft(&mut self, id: &str, bytes: Vec<u8>, thread: Option<&str>, at: i64) -> Option<Draft> {
        let index = self.drafts.iter().position(|draft| draft.id == id)?;
        let old = self.drafts[index].message.clone();
        let thread = self.thread_for(&bytes, thread);
        let message = self.add(bytes, thread, &["DRAFT"], at);
        self.delete(&old);
        self.drafts[index].message = message;
        Some(self.drafts[index].clone())
    }

    /// Deletes a draft. Returns its message.
    pub(crate) fn delete_draft(&mut self, id: &str) -> Option<Message> {
        let index = self.drafts.iter().position(|draft| draft.id == id)?;
        let draft = self.drafts.remove(index);
        self.delete(&draft.message)
    }

    /// Sends a message: its copy in the thread gets the label `SENT`, and is also received if it is addressed to this
    /// mailbox.
    pub(crate) fn send(&mut self, bytes: &[u8], thread: String, draft: Option<String>, at: i64) -> SentMail {
        let bytes = self.rewritten(bytes);
        let recipients = mime::recipients(&bytes);
        let is_to_us = recipients.contains(&self.address);
        let labels: &[&str] = if is_to_us { &["SENT", "INBOX", "UNREAD"] } else { &["SENT"] };
        let bytes = mime::with_header(&bytes, "Bcc", None);
        let id = self.add(bytes, thread.clone(), labels, at);
        let bytes = self.messages[&id].bytes.clone();
        let header = |name: &str| mime::header(&bytes, name);
        SentMail {
            draft,
            at,
            from: header("From").unwrap_or_default(),
            to: recipients,
            subject: mime::subject(&bytes),
            text: mime::text(&bytes),
            message_id: mime::ids(header("Message-ID").as_deref()).into_iter().next().unwrap_or_default(),
            in_reply_to: mime::ids(header("In-Reply-To").as_deref()),
            references: mime::ids(header("References").as_deref()),
            key: header("X-Countersign-Key"),
            is_automatic: header("Auto-Submitted").is_some_and(|value| value != "no"),
            bytes: bytes.clone(),
            id,
            thread,
        }
    }

    /// Changes the labels of a message. Returns the message, if it exists.
    pub(crate) fn modify(&mut self, id: &str, add: &[String], remove: &[String]) -> Option<&Message> {
        let message = self.messages.get_mut(id)?;
        let added: Vec<String> = add.iter().filter(|label| !message.labels.contains(label)).cloned().collect();
        let removed: Vec<String> = remove.iter().filter(|label| message.labels.contains(label)).cloned().collect();
        message.labels.retain(|label| !removed.contains(label));
        message.labels.extend(added.iter().cloned());
        if !added.is_empty() {
            self.record(id, Change::Labelled(added));
        }
        if !removed.is_empty() {
            self.record(id, Change::Unlabelled(removed));
        }
        self.messages.get(id)
    }

    /// Creates a label.
    pub(crate) fn create_label(&mut self, name: &str) -> Label {
        self.next_id += 1;
        self.changes += 1;
        let label = Label { id: format!("Label_{}", self.next_id), name: name.to_owned() };
        self.labels.push(label.clone());
        label
    }

    /// Returns true if a label exists.
    pub(crate) fn has_label(&self, id: &str) -> bool {
        SYSTEM_LABELS.contains(&id) || self.labels.iter().any(|label| label.id == id)
    }

    /// Deletes a message for ever.
    pub(crate) fn delete(&mut self, id: &str) -> Option<Message> {
        self.messages.get(id)?;
        self.record(id, Change::Deleted);
        self.messages.remove(id)
    }

    /// Forgets the whole history, as Gmail does after about a week.
    pub(crate) fn expire_history(&mut self) {
        self.history.clear();
        self.newest_history += 1000;
        self.oldest_history = self.newest_history;
    }

    /// Returns a message as it is sent: from this mailbox, and with the `Message-ID` that Gmail chooses.
    fn rewritten(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let from = mime::header(&bytes, "From").unwrap_or_default();
        if !from.to_lowercase().contains(&self.address) {
            bytes = mime::with_header(&bytes, "From", Some(&self.address));
        }
        let own = mime::header(&bytes, "Message-ID");
        if own.is_none() || self.replaces_message_ids {
            self.next_id += 1;
            let chosen = format!("<CAsandbox-{:012x}@mail.gmail.example>", self.next_id);
            bytes = mime::with_header(&bytes, "Message-ID", Some(&chosen));
            if let Some(own) = own {
                bytes = mime::with_header(&bytes, "X-Google-Original-Message-ID", Some(&own));
            }
        }
        bytes
    }

    /// Returns the thread of a new message. It belongs to the requested thread, or to one that it answers, only if it
    /// refers to a message in it and has the same subject.
    pub(crate) fn thread_for(&mut self, bytes: &[u8], requested: Option<&str>) -> String {
        let header = |name: &str| mime::ids(mime::header(bytes, name).as_deref());
        let named: Vec<String> = header("In-Reply-To").into_iter().chain(header("References")).collect();
        let answered = named.iter().rev().filter_map(|id| self.by_message_id.get(id));
        let found = answered.filter(|thread| requested.is_none_or(|requested| requested == *thread)).find(|thread| {
            let first = self.thread(thread).and_then(|messages| messages.first().copied());
            first.is_some_and(|first| mime::topic(&first.bytes) == mime::topic(bytes))
        });
        found.cloned().unwrap_or_else(|| self.fresh_id())
    }

    fn add(&mut self, bytes: Vec<u8>, thread: String, labels: &[&str], at: i64) -> String {
        // The first message of a thread has the id of the thread.
        let id = if self.threads.contains_key(&thread) { self.fresh_id() } else { thread.clone() };
        if !labels.contains(&"DRAFT") {
            for own in mime::ids(mime::header(&bytes, "Message-ID").as_deref()) {
                self.by_message_id.insert(own, thread.clone());
            }
        }
        self.threads.entry(thread.clone()).or_default().push(id.clone());
        self.order.push(id.clone());
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let message = Message { id: id.clone(), thread, labels, at, history: 0, bytes: bytes.into() };
        self.messages.insert(id.clone(), message);
        self.record(&id, Change::Added);
        id
    }

    fn record(&mut self, id: &str, change: Change) {
        self.changes += 1;
        self.newest_history += 1;
        let Some(message) = self.messages.get_mut(id) else { return };
        message.history = self.newest_history;
        self.history.push(Record {
            id: self.newest_history,
            change,
            message: id.to_owned(),
            thread: message.thread.clone(),
            labels: message.labels.clone(),
        });
    }

    /// Returns a number for the `Message-ID` of a new letter.
    pub(crate) fn letter_number(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn fresh_id(&mut self) -> String {
        self.next_id += 1;
        format!("{:016x}", 0x19a0_0000_0000_0000 + self.next_id * 0x1_0001)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(subject: &str, id: &str, answers: &str) -> Vec<u8> {
        let from = "From: ana@customer.example\r\nTo: bo@b.example\r\n";
        format!("{from}Subject: {subject}\r\nMessage-ID: <{id}>\r\nReferences: {answers}\r\n\r\nHi\r\n").into_bytes()
    }

    #[test]
    fn a_reply_belongs_to_a_thread_only_with_its_references_and_its_subject() {
        let mut mailbox = Mailbox::new("support@sandbox.example".to_owned(), false);
        let first = mailbox.receive(mail("Invoice", "a@x", ""), 1);
        let mut thread =
            |subject: &str, answers: &str| mailbox.thread_for(&mail(subject, "b@x", answers), Some(&first)) == first;
        assert!(thread("Re: Invoice", "<a@x>"));
        assert!(!thread("Re: Other", "<a@x>"));
        assert!(!thread("Re: Invoice", "<unknown@x>"));
    }

    #[test]
    fn a_sent_draft_is_gone_and_its_copy_has_another_id() {
        let mut mailbox = Mailbox::new("support@sandbox.example".to_owned(), true);
        let draft = mailbox.create_draft(mail("Invoice", "a@x", ""), None, 1);
        let message = mailbox.delete_draft(&draft.id).expect("there is a draft");
        let sent = mailbox.send(&message.bytes, message.thread.clone(), Some(draft.id.clone()), 2);
        assert!(mailbox.delete_draft(&draft.id).is_none());
        assert_ne!(sent.id, message.id);
        assert_eq!(sent.thread, message.thread);
        assert_ne!(sent.message_id, "a@x");
        assert_eq!(mime::header(&sent.bytes, "X-Google-Original-Message-ID").as_deref(), Some("<a@x>"));
    }
}
