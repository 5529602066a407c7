//! The record of the requests that a stand-in received, which tests check.
//!
//! A request is recorded when it arrives, so that one without an answer is recorded too. When it ends, it is appended to
//! the file, if any, as a line of JSON, before its answer is sent; a request that takes effect later, when it has done so.

use std::{
    collections::BTreeMap,
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
    entries: Mutex<Entries<E>>,
    lines: Lines,
}

/// The requests that were not taken, by their numbers.
#[derive(Debug)]
struct Entries<E> {
    /// The number of the next request.
    next: usize,
    /// Each request, with what is still to come of it: its answer, or a late effect. Only what is complete can be taken.
    all: BTreeMap<usize, (E, u8)>,
}

impl<E: Entry> Ledger<E> {
    /// Opens an empty ledger.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        Ok(Self { entries: Mutex::new(Entries { next: 0, all: BTreeMap::new() }), lines: Lines::open(path)? })
    }

    /// Records a request that arrived. Returns its number.
    pub(crate) fn arrived(&self, entry: E) -> usize {
        let mut entries = self.entries();
        let number = entries.next;
        entries.all.insert(number, (entry, 1));
        entries.next += 1;
        number
    }

    /// Records that a request will take effect later, after its end.
    pub(crate) fn is_late(&self, number: usize) {
        if let Some((_, to_come)) = self.entries().all.get_mut(&number) {
            *to_come += 1;
        }
    }

    /// Records that a late request took effect.
    pub(crate) fn came(&self, number: usize) {
        if let Some((entry, to_come)) = self.entries().all.get_mut(&number) {
            *to_come -= 1;
            if *to_come == 0 {
                self.lines.write(entry);
            }
        }
    }

    /// Changes the record of a request, unless it was taken.
    pub(crate) fn note(&self, number: usize, change: impl FnOnce(&mut E)) {
        if let Some((entry, _)) = self.entries().all.get_mut(&number) {
            change(entry);
        }
    }

    /// Records the answer of a request, or that there is none.
    pub(crate) fn ended(&self, number: usize, status: Option<u16>, bytes: Option<u64>) {
        self.note(number, |entry| entry.answered(status, bytes));
        self.came(number);
    }

    /// Returns all requests so far.
    pub(crate) fn all(&self) -> Vec<E> {
        self.entries().all.values().map(|(entry, _)| entry.clone()).collect()
    }

    /// Returns the requests that are complete, and forgets them.
    pub(crate) fn take(&self) -> Vec<E> {
        self.entries().all.extract_if(.., |_, (_, to_come)| *to_come == 0).map(|(_, (entry, _))| entry).collect()
    }

    fn entries(&self) -> MutexGuard<'_, Entries<E>> {
        self.entries.lock().expect("no holder of the lock panics")
    }
}
