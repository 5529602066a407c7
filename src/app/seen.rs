//! Notices a store that is older than it was, such as a restored copy.
//!
//! A seal shows who wrote a record, not that it is the latest: an earlier copy of the whole store verifies. So the time of
//! the last note is in the store, in a register, and in a file outside of it, beside the digest key. If the file names a
//! later time than the store, the store went back. Until the operator removes the file, both stay as they are, and the log
//! and `countersign check` say so. A copy from after the last note is not noticed; there is one each minute in which
//! something changes, one at the start, and one at the end.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use countersign_config::{Config, StoreKind};
use countersign_core::{
    cause,
    clock::{Clock, SystemClock, Timestamp},
    private_file,
};
use countersign_graph::store::{Store, ThreadFilter, TypedRegister};
use countersign_store::sqlite;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::keys;

/// The register with the time of the last note.
const REGISTER: &str = "seen";

/// The time between two notes.
const EVERY: Duration = Duration::from_secs(60);

/// The time of a note: the value of the register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Note {
    at: Timestamp,
}

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Outside {
    /// The store that it is about.
    store: PathBuf,
    #[serde(flatten)]
    note: Note,
}

/// Notes how far the store is, in it and outside of it.
#[derive(Debug)]
pub(super) struct Seen {
    register: TypedRegister<Note>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The store's file.
    path: PathBuf,
    /// The file outside of it.
    file: PathBuf,
    /// The time of the last change in the store at the last note of this process.
    changed: Option<Timestamp>,
}

impl Seen {
    /// Returns `None` for Redis, whose copies are the server's.
    pub(super) fn of(config: &Config, store: &Arc<dyn Store>, clock: Arc<dyn Clock>) -> Option<Self> {
        (config.store_kind() == StoreKind::Sqlite).then(|| Self {
            register: TypedRegister::new(store.clone(), REGISTER),
            store: store.clone(),
            clock,
            path: sqlite::file_beside(&config.store.path, ""),
            file: file_of(config),
            changed: None,
        })
    }

    /// Notes it every minute, until `stop`.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            self.note().await;
            tokio::select! {
                () = sleep(EVERY) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Notes how far the store is, if anything has changed. A failure is logged.
    pub(super) async fn note(&mut self) {
        if let Err(error) = self.try_to_note().await {
            tracing::warn!(error = cause::chain(&*error), file = %self.file.display(), "Cannot note how far the store is");
        }
    }

    async fn try_to_note(&mut self) -> anyhow::Result<()> {
        let latest = self.store.threads(ThreadFilter::All, 1).await?;
        let changed = Some(latest.first().map(|thread| thread.updated_at).unwrap_or_default());
        if self.changed == changed {
            return Ok(());
        }
        let (revision, last) = self.register.load().await?;
        if let Some(behind) = behind(last, &self.file, &self.path)? {
            if self.changed.is_none() {
                tracing::error!("{behind}");
            }
        } else {
            // The clock may have been set back.
            let note = Note { at: self.clock.now().max(last.at + Duration::from_millis(1)) };
            if self.register.set(revision, &note).await? {
                let outside = Outside { store: self.path.clone(), note };
                private_file::replace(&self.file, &serde_json::to_vec(&outside)?)?;
            }
        }
        self.changed = changed;
        Ok(())
    }
}

/// Describes by how much the store is older than it was, and the remedy, if it is.
pub(super) async fn check(config: &Config, store: &Arc<dyn Store>) -> anyhow::Result<Option<String>> {
    let Some(Seen { register, path, file, .. }) = Seen::of(config, store, Arc::new(SystemClock)) else {
        return Ok(None);
    };
    behind(register.load().await?.1, &file, &path)
}

/// Returns the file outside of the store.
fn file_of(config: &Config) -> PathBuf {
    let mut name = keys::file_of(config).into_os_string();
    name.push(".seen");
    PathBuf::from(name)
}

/// Compares the note in the store at `path` with the one in the file.
fn behind(inside: Note, file: &Path, path: &Path) -> anyhow::Result<Option<String>> {
    let bytes = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.with_context(|| format!("cannot read {}", file.display()))?,
    };
    let outside: Outside = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} was changed by another program; remove it", file.display()))?;
    if outside.store != path || outside.note <= inside {
        return Ok(None);
    }
    let found = if inside == Note::default() {
        "there is no note in it".into()
    } else {
        format!("its last note is of {}", inside.at)
    };
    Ok(Some(format!(
        "the store is older than it was: it was seen as of {}, and {found}, as after the restore of a backup. What was decided \
         and done since then is not in it; read “After a restore” in docs/operating.md, then remove {}",
        outside.note.at,
        file.display()
    )))
}
