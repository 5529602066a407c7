//! The record of all requests and their effects, which crash tests check.
//!
//! Each request has one entry, which is written before its answer is sent, and at the same time
//! appended to the file, if any, as a line of JSON. `effect` does not depend on the method: it is
//! true if the world changed.

use std::{fs::File, io::Write as _, path::Path, sync::Mutex};

use countersign_core::private_file;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The time, as ISO 8601.
    pub at: String,
    /// The HTTP method.
    pub method: String,
    /// The path with its prefix and query.
    pub path: String,
    /// The user on whose behalf an application called.
    pub user_id: Option<String>,
    /// The body that was sent.
    pub body: Value,
    /// The status of the answer; `None` if none was sent.
    pub status: Option<u16>,
    /// True if the request changed the world.
    pub effect: bool,
    /// The length of the answer in bytes; 0 if none was sent, or only a page about an error.
    #[serde(default)]
    pub answer_bytes: u64,
}

/// All entries since the start, and the file to which they are appended.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Mutex<Vec<Entry>>,
    file: Option<Mutex<File>>,
}

impl Ledger {
    /// Opens an empty ledger that appends to a file.
    pub(crate) fn open(path: Option<&Path>) -> std::io::Result<Self> {
        Ok(Self { entries: Mutex::default(), file: path.map(private_file::append).transpose()?.map(Mutex::new) })
    }

    /// Adds an entry.
    pub(crate) fn write(&self, entry: Entry) {
        if let Some(file) = &self.file {
            let mut line = serde_json::to_vec(&entry).expect("an entry is plain JSON");
            line.push(b'\n');
            if let Err(error) = file.lock().expect("no holder of the lock panics").write_all(&line) {
                tracing::error!(%error, "cannot write the sandbox ledger");
            }
        }
        self.entries.lock().expect("no holder of the lock panics").push(entry);
    }

    /// Removes and returns the entries since the last call of this method.
    pub(crate) fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.entries.lock().expect("no holder of the lock panics"))
    }

    /// Returns all entries.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().expect("no holder of the lock panics").clone()
    }
}
