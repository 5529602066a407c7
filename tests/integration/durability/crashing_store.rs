//! A store that takes its process down at a chosen write.
//!
//! Writes that change something are counted: those that a [`Watch`] is told of.

use std::{
    fs::File,
    io::Write as _,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use countersign::graph::store::Error;
use serde::{Deserialize, Serialize};

use crate::support::watched_store::{Watch, WatchedStore};

/// Where the process is to die.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Point {
    /// At which write, counted from 1.
    pub(super) at: usize,
    /// Its name. For a claim, of which nobody knows beforehand whether it finds something.
    pub(super) name: String,
    pub(super) side: Side,
}

/// On which side of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Side {
    /// Nothing is written yet.
    Before,
    /// It is written, and nobody knows.
    After,
}

/// A store that dies at a write.
pub(super) type CrashingStore = WatchedStore<Crash>;

/// Counts the writes, writes their names down, and dies at one of them.
#[derive(Debug)]
pub(super) struct Crash {
    point: Option<Point>,
    written: AtomicUsize,
    names: Mutex<File>,
}

impl Crash {
    /// Dies at `point`, if one is given. The names of writes go to a file, a line each.
    pub(super) fn at(point: Option<Point>, names: &Path) -> Self {
        Self { point, written: AtomicUsize::new(0), names: Mutex::new(File::create(names).unwrap()) }
    }
}

#[async_trait]
impl Watch for Crash {
    async fn begins(&self, name: &str, certain: bool) -> Result<(), Error> {
        let Some(point) = &self.point else { return Ok(()) };
        // At the next chance, if another write was faster.
        let is_next = self.written.load(Ordering::SeqCst) + 1 >= point.at;
        if point.side == Side::Before && is_next && (certain || point.name == name) {
            std::process::abort();
        }
        Ok(())
    }

    fn done(&self, name: &str) {
        let mut names = self.names.lock().unwrap();
        let written = self.written.fetch_add(1, Ordering::SeqCst) + 1;
        if self.point.as_ref().is_some_and(|point| point.side == Side::After && written >= point.at) {
            std::process::abort();
        }
        writeln!(names, "{name}").unwrap();
    }
}
