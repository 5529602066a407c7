//! The record of requests and sent mails for the owner of the stand-in.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use serde::{Deserialize, Serialize};

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The time of its arrival, in milliseconds since 1970.
    pub at: i64,
    /// The method.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query.
    pub query: String,
    /// True if the request changed something.
    pub effect: bool,
    /// The status of the answer; `None` if none was sent.
    pub status: Option<u16>,
}

/// A mail that left the mailbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentMail {
    /// The id of the copy in the mailbox.
    pub id: String,
    /// The thread of the copy.
    pub thread: String,
    /// The draft that was sent; `None` if it was sent without one.
    pub draft: Option<String>,
    /// The time, in milliseconds since 1970.
    pub at: i64,
    /// The header `From`, with the name.
    pub from: String,
    /// The addresses of all recipients.
    pub to: Vec<String>,
    /// The decoded subject.
    pub subject: String,
    /// The decoded text.
    pub text: String,
    /// The `Message-ID` with which it was sent, without angle brackets.
    pub message_id: String,
    /// The ids in `In-Reply-To`, without angle brackets.
    pub in_reply_to: Vec<String>,
    /// The ids in `References`, without angle brackets.
    pub references: Vec<String>,
    /// The header `X-Countersign-Key`, by which answers are counted.
    pub key: Option<String>,
    /// True if the mail says that a program wrote it.
    pub is_automatic: bool,
    /// The message.
    #[serde(skip)]
    pub bytes: Arc<[u8]>,
}

/// All requests and sent mails since the start.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    requests: Mutex<Vec<Request>>,
    sent: Mutex<Vec<SentMail>>,
}

impl Ledger {
    /// Creates the ledger of a mailbox from which these mails were sent before.
    pub(crate) fn with_sent(sent: Vec<SentMail>) -> Self {
        Self { requests: Mutex::default(), sent: Mutex::new(sent) }
    }

    /// Records a request that arrived. Returns its index.
    pub(crate) fn arrived(&self, request: Request) -> usize {
        let mut requests = self.requests();
        requests.push(request);
        requests.len() - 1
    }

    /// Records the effect of a request.
    pub(crate) fn took_effect(&self, at: usize) {
        if let Some(request) = self.requests().get_mut(at) {
            request.effect = true;
        }
    }

    /// Records the status of the answer to a request.
    pub(crate) fn answered(&self, at: usize, status: Option<u16>) {
        if let Some(request) = self.requests().get_mut(at) {
            request.status = status;
        }
    }

    /// Records a sent mail.
    pub(crate) fn sent_one(&self, mail: SentMail) {
        self.mails().push(mail);
    }

    /// Returns all requests so far.
    pub(crate) fn all(&self) -> Vec<Request> {
        self.requests().clone()
    }

    /// Returns all requests since the last call, and forgets them.
    pub(crate) fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests())
    }

    /// Returns all sent mails so far.
    pub(crate) fn sent(&self) -> Vec<SentMail> {
        self.mails().clone()
    }

    /// Returns for each thread and key how often a mail was sent.
    pub(crate) fn times_sent(&self) -> BTreeMap<(String, Option<String>), usize> {
        let mut times = BTreeMap::new();
        for mail in self.mails().iter() {
            *times.entry((mail.thread.clone(), mail.key.clone())).or_default() += 1;
        }
        times
    }

    fn requests(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().expect("no holder of the lock panics")
    }

    fn mails(&self) -> MutexGuard<'_, Vec<SentMail>> {
        self.sent.lock().expect("no holder of the lock panics")
    }
}
