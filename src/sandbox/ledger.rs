//! The record of the requests that a stand-in received, which tests check.
//!
//! A request is recorded when it arrives, so that one without an answer is recorded too. When it ends, it is appended to
//! the file, if any, as a line of JSON, before its answer is sent.

use std::{
    fs::File,
    io::{self, Write as _},
    path::Path,
    sync::{Mutex, MutexGuard},
};

use countersign_core::private_file;
use serde::Serialize;
use serde_json::Value;

/// The record of a request.
pub(crate) trait Entry: Clone + Serialize + Send + 'static {
    /// Records that the request changed something.
    fn took_effect(&mut self) {}

    /// Records the status of the answer and the length of its body. Both are missing if no answer was sent.
    fn answered(&mut self, _status: Option<u16>, _bytes: Option<u64>) {}
}

/// The record of a stand-in that keeps its own.
impl Entry for () {}

/// A received request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Request {
    /// The time of its arrival, as ISO 8601.
    pub at: String,
    /// The method.
    pub method: String,
    /// The path; for UpGrade with its query.
    pub path: String,
    /// The user on whose behalf an application called.
    pub user_id: Option<String>,
    /// The body, if it was JSON.
    pub body: Value,
    /// The status of the answer; `None` if none was sent.
    pub status: Option<u16>,
    /// True if the request changed something.
    pub effect: bool,
    /// The length of the answer in bytes; 0 if none was sent.
    pub answer_bytes: u64,
}

impl Entry for Request {
    fn took_effect(&mut self) {
        self.effect = true;
    }

    fn answered(&mut self, status: Option<u16>, bytes: Option<u64>) {
        (self.status, self.answer_bytes) = (status, bytes.unwrap_or_default());
    }
}

/// The lines of JSON that are appended to a file, if there is one.
#[derive(Debug)]
pub(crate) struct Lines(Option<Mutex<File>>);

impl Lines {
    /// Opens the file.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        Ok(Self(path.map(private_file::append).transpose()?.map(Mutex::new)))
    }

    /// Appends a line.
    pub(crate) fn write(&self, what: &impl Serialize) {
        let Some(file) = &self.0 else { return };
        let mut line = serde_json::to_vec(what).expect("entries are plain data");
        line.push(b'\n');
        if let Err(error) = file.lock().expect("no holder of the lock panics").write_all(&line) {
            tracing::error!(%error, "cannot write the ledger of a stand-in");
        }
    }
}

/// The requests so far.
#[derive(Debug)]
pub(crate) struct Ledger<E> {
    /// The number of requests that were taken, and the others.
    entries: Mutex<(usize, Vec<E>)>,
    lines: Lines,
}

impl<E: Entry> Ledger<E> {
    /// Opens an empty ledger.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        Ok(Self { entries: Mutex::new((0, Vec::new())), lines: Lines::open(path)? })
    }

    /// Records a request that arrived. Returns its number.
    pub(crate) fn arrived(&self, entry: E) -> usize {
        let mut entries = self.entries();
        entries.1.push(entry);
        entries.0 + entries.1.len() - 1
    }

    /// Changes the record of a request, unless it was taken.
    pub(crate) fn note(&self, number: usize, change: impl FnOnce(&mut E)) {
        let (taken, entries) = &mut *self.entries();
        if let Some(entry) = number.checked_sub(*taken).and_then(|at| entries.get_mut(at)) {
            change(entry);
        }
    }

    /// Records the end of a request.
    pub(crate) fn ended(&self, number: usize, status: Option<u16>, bytes: Option<u64>) {
        self.note(number, |entry| {
            entry.answered(status, bytes);
            self.lines.write(entry);
        });
    }

    /// Returns all requests so far.
    pub(crate) fn all(&self) -> Vec<E> {
        self.entries().1.clone()
    }

    /// Returns the requests since the last call of this method, and forgets them.
    pub(crate) fn take(&self) -> Vec<E> {
        let (taken, entries) = &mut *self.entries();
        *taken += entries.len();
        std::mem::take(entries)
    }

    fn entries(&self) -> MutexGuard<'_, (usize, Vec<E>)> {
        self.entries.lock().expect("no holder of the lock panics")
    }
}
