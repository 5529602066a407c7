//! The requests to the server and their effects: the witness by which crash tests judge.
//!
//! Each request has one entry, written before its answer leaves; a file, if one is given, gets it as a line of JSON at
//! the same moment. `effect` is not guessed from the verb: it is true if the world changed.

use std::{fs::File, io::Write as _, path::Path, sync::Mutex};

use countersign_core::private_file;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The time, as ISO 8601.
    pub at: String,
    /// The verb.
    pub method: String,
    /// The path with its prefix and query.
    pub path: String,
    /// The user in whose name an application called.
    pub user_id: Option<String>,
    /// The body that was sent.
    pub body: Value,
    /// The status of the answer; `None` if none was sent.
    pub status: Option<u16>,
    /// True if anything changed.
    pub effect: bool,
}

/// All entries since the start, and the file they go to.
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
            if let Err(error) = file.lock().expect("nobody panics with the lock").write_all(&line) {
                tracing::error!(%error, "cannot write the sandbox ledger");
            }
        }
        self.entries.lock().expect("nobody panics with the lock").push(entry);
    }

    /// Returns everything since the last call of this, which is then forgotten.
    pub(crate) fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.entries.lock().expect("nobody panics with the lock"))
    }

    /// Returns everything so far.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().expect("nobody panics with the lock").clone()
    }
}
