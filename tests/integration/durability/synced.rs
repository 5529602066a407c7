//! The files of a SQLite store as the disk has them: with what was synced, and nothing since. That is what a power failure
//! leaves, or a crash of the machine.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use metrics::{Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// Counts the synced writes of the store: each is counted by the thread that writes, when it is on disk, before anybody
/// is told and anything else is written.
const SYNCED_WRITES: &str = "countersign_store_synced_writes_total";

/// Copies the files at each synced write.
#[derive(Clone, Debug)]
pub(super) struct Synced(Arc<Copies>);

#[derive(Debug)]
struct Copies {
    store: PathBuf,
    folder: PathBuf,
    taken: Mutex<usize>,
}

impl Synced {
    /// Of the store at `store`, into `folder`.
    pub(super) fn of(store: &Path, folder: &Path) -> Self {
        Self(Arc::new(Copies { store: store.to_owned(), folder: folder.to_owned(), taken: Mutex::default() }))
    }

    /// Begins, with a store that was just opened, for which everything is synced.
    pub(super) fn copies_from_now_on(&self) {
        self.0.copy();
        metrics::set_global_recorder(self.clone()).expect("nobody else counts in this process");
    }
}

impl Copies {
    /// A copy is there as a whole or not at all: the process may die at any time.
    fn copy(&self) {
        let mut taken = self.taken.lock().unwrap();
        let place = |number: usize| self.folder.join(format!("{number:06}"));
        let begun = self.folder.join("begun");
        fs::create_dir_all(&begun).unwrap();
        for ending in ["", "-wal"] {
            fs::copy(file(&self.store, ending), begun.join(format!("store{ending}"))).unwrap();
        }
        fs::rename(begun, place(*taken + 1)).unwrap();
        fs::remove_dir_all(place(*taken)).ok(); // there is none before the first
        *taken += 1;
    }
}

impl CounterFn for Copies {
    fn increment(&self, _: u64) {
        self.copy();
    }

    fn absolute(&self, _: u64) {}
}

impl Recorder for Synced {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if key.name() == SYNCED_WRITES { Counter::from_arc(self.0.clone()) } else { Counter::noop() }
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// Puts the files of a store back to the newest copy, if there is one, on a machine that was started again.
pub(super) fn put_back(store: &Path, folder: &Path) {
    let copies = fs::read_dir(folder).into_iter().flatten().map(|copy| copy.unwrap().path());
    let whole = copies.filter(|copy| copy.file_name().is_some_and(|name| name != "begun"));
    let Some(newest) = whole.max() else { return };
    fs::remove_file(file(store, "-shm")).ok(); // nothing is in memory any more
    for ending in ["", "-wal"] {
        fs::copy(newest.join(format!("store{ending}")), file(store, ending)).unwrap();
    }
    fs::remove_dir_all(folder).unwrap();
    let opened = rusqlite::Connection::open(store).unwrap();
    let before = "UPDATE registers SET value = '\"before\"' WHERE key = 'sqlite:machine-start'";
    assert_eq!(opened.execute(before, []).unwrap(), 1, "it was opened on a machine that has such an id");
}

fn file(store: &Path, ending: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
