//! The record of all calls of the app and all deliveries to it, which tests check.
//!
//! Tokens are never recorded.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicUsize, Ordering},
    },
};

use countersign_core::clock::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::ledger::Lines;

/// The default maximum number of entries of a kind in memory. Older entries remain in the file.
const MAX_KEPT: usize = 50_000;

/// A call by the app.
#[derive(Clone, Debug, Serialize)]
pub struct Call {
    /// The time at which it arrived.
    pub at: Timestamp,
    /// The method, such as `chat.postMessage`, or `response_url`.
    pub method: String,
    /// The body of the call.
    pub body: Value,
    /// The answer, even if it was lost.
    pub answer: Value,
    /// The HTTP status.
    pub status: u16,
    /// True if a fault kept the answer from the app.
    pub answer_lost: bool,
}

/// An attempt to deliver to the app.
#[derive(Clone, Debug, Serialize)]
pub struct Attempt {
    /// The time of its beginning.
    pub at: Timestamp,
    /// `event`, `interaction`, `command` or `url_verification`.
    pub kind: String,
    /// The event id, or the trigger of an interaction or command.
    pub id: String,
    /// The type of the event or interaction, or the command.
    pub about: String,
    /// The number of the attempt: 1, or more for redeliveries.
    pub attempt: u32,
    /// The time until the acknowledgement, in milliseconds; `None` if there was none.
    pub acknowledged_after_ms: Option<u64>,
    /// The reason if it was not acknowledged.
    pub failure: Option<String>,
    /// The payload of the delivery.
    pub payload: Value,
}

/// A record of content from the app that Slack cannot show or that a good app does not send. It is
/// always a bug of the app.
#[derive(Clone, Debug, Serialize)]
pub struct Complaint {
    /// The time at which it arrived.
    pub at: Timestamp,
    /// The method, such as `chat.postMessage`, `response_url`, or `view_submission` for an acknowledgement.
    pub method: String,
    /// Slack's name for the error, or `bad_manners` for content that Slack accepts nevertheless.
    pub error: String,
    /// The problem and its place.
    pub reason: String,
}

/// All records.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Recorded {
    /// The calls of the app, in the order of their answers.
    pub calls: VecDeque<Call>,
    /// The attempts to deliver, in the order in which they ended.
    pub deliveries: VecDeque<Attempt>,
    /// The complaints about content that the app should not have sent.
    pub complaints: Vec<Complaint>,
}

/// The ledger.
#[derive(Debug)]
pub struct Ledger {
    /// The maximum number of entries of a kind in memory.
    kept: AtomicUsize,
    recorded: Mutex<Recorded>,
    /// Read-locked while a call is answered. A reader of the ledger waits for all of them.
    answering: RwLock<()>,
    lines: Lines,
}

impl Ledger {
    /// Opens a ledger. If there is a file, each entry is also appended to it as a line of JSON.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened for appending.
    pub fn open(path: Option<&Path>) -> std::io::Result<Self> {
        let kept = AtomicUsize::new(MAX_KEPT);
        Ok(Self { kept, recorded: Mutex::default(), answering: RwLock::default(), lines: Lines::open(path)? })
    }

    /// Sets the maximum number of entries of a kind in memory.
    pub fn keeps(&self, entries: usize) {
        self.kept.store(entries, Ordering::Relaxed);
    }

    /// Returns the calls and deliveries that contain a text, such as the timestamp of a thread.
    pub fn about(&self, text: &str) -> Recorded {
        let recorded = self.written();
        let named = |what: &Value| what.to_string().contains(text);
        Recorded {
            calls: recorded.calls.iter().filter(|call| named(&call.body) || named(&call.answer)).cloned().collect(),
            deliveries: recorded.deliveries.iter().filter(|attempt| named(&attempt.payload)).cloned().collect(),
            complaints: Vec::new(),
        }
    }

    /// Returns a copy of all records.
    pub fn read(&self) -> Recorded {
        self.written().clone()
    }

    /// Returns the calls of one method, oldest first.
    pub fn calls(&self, method: &str) -> Vec<Call> {
        self.written().calls.iter().filter(|call| call.method == method).cloned().collect()
    }

    /// Returns the attempts of one kind, oldest first.
    pub fn deliveries(&self, kind: &str) -> Vec<Attempt> {
        self.written().deliveries.iter().filter(|attempt| attempt.kind == kind).cloned().collect()
    }

    /// Returns the complaints about content that the app should not have sent, oldest first.
    pub fn complaints(&self) -> Vec<Complaint> {
        self.written().complaints.clone()
    }

    /// Returns a guard to hold from the change of the workspace by a call until the call is
    /// recorded. So a reader never sees one without the other.
    pub(super) fn answering(&self) -> RwLockReadGuard<'_, ()> {
        self.answering.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn complain(&self, at: Timestamp, method: &str, error: &str, reason: &str) {
        let (method, error, reason) = (method.to_owned(), error.to_owned(), reason.to_owned());
        let complaint = Complaint { at, method, error, reason };
        self.write("complaint", &complaint);
        tracing::warn!(
            "The app sent invalid or undesirable content: {} {}: {}",
            complaint.method,
            complaint.error,
            complaint.reason
        );
        let mut recorded = self.recorded();
        if recorded.complaints.len() < MAX_KEPT {
            recorded.complaints.push(complaint);
        }
    }

    pub(super) fn called(&self, call: Call) {
        self.write("call", &call);
        let mut recorded = self.recorded();
        recorded.calls.push_back(call);
        while recorded.calls.len() > self.kept.load(Ordering::Relaxed) {
            recorded.calls.pop_front();
        }
    }

    pub(super) fn delivered(&self, attempt: Attempt) {
        self.write("delivery", &attempt);
        let mut recorded = self.recorded();
        recorded.deliveries.push_back(attempt);
        while recorded.deliveries.len() > self.kept.load(Ordering::Relaxed) {
            recorded.deliveries.pop_front();
        }
    }

    /// Returns the records, after the calls in progress are recorded.
    fn written(&self) -> MutexGuard<'_, Recorded> {
        drop(self.answering.write());
        self.recorded()
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, entry: &str, what: &impl Serialize) {
        let mut line = serde_json::to_value(what).expect("entries are plain data");
        line["entry"] = Value::from(entry);
        self.lines.write(&line);
    }
}
