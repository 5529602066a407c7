//! A store that takes its process down at a chosen write, or when a step is held back in place of a write.
//!
//! Writes that change something are counted: those that a [`Watch`] is told of. Steps that are held back are counted with
//! them, by the line about each in the log.

use std::{
    collections::HashMap,
    fmt::Debug,
    fs::File,
    io::Write as _,
    path::Path,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use countersign::graph::store::Error;
use serde::{Deserialize, Serialize};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::layer::{Context, Layer};

use crate::support::watched_store::{Watch, WatchedStore};

/// Where the process is to die.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Point {
    /// At which write, counted from 1.
    pub(super) at: usize,
    /// Its name. For a claim, of which nobody knows beforehand whether it finds something.
    pub(super) name: String,
    pub(super) side: Side,
    /// Counted among the writes of this name only, where other writes come at times of their own.
    pub(super) by_name: bool,
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
pub(super) type CrashingStore = WatchedStore<Arc<Crash>>;

/// Counts the writes, writes their names down, and dies at one of them.
#[derive(Debug)]
pub(super) struct Crash {
    point: Option<Point>,
    written: Mutex<Written>,
    names: Mutex<File>,
}

/// How many writes there were: in all, and of each name.
#[derive(Debug, Default)]
struct Written {
    all: usize,
    named: HashMap<String, usize>,
}

impl Written {
    /// As a point counts them.
    fn up_to(&self, point: &Point) -> usize {
        if point.by_name { self.named.get(&point.name).copied().unwrap_or_default() } else { self.all }
    }
}

impl Crash {
    /// Dies at `point`, if one is given. The names of writes go to a file, a line each.
    pub(super) fn at(point: Option<Point>, names: &Path) -> Self {
        Self { point, written: Mutex::default(), names: Mutex::new(File::create(names).unwrap()) }
    }
}

impl Crash {
    /// Dies here, if it is the point on this side of a write.
    fn before(&self, name: &str, certain: bool) {
        let Some(point) = &self.point else { return };
        // At the next chance, if another write was faster.
        let is_next = self.written.lock().unwrap().up_to(point) + 1 >= point.at;
        let is_it = point.name == name || certain && !point.by_name;
        if point.side == Side::Before && is_next && is_it {
            std::process::abort();
        }
    }

    /// Counts a write, and dies here, if it is the point on this side of it.
    fn after(&self, name: &str) {
        let mut names = self.names.lock().unwrap();
        let mut written = self.written.lock().unwrap();
        written.all += 1;
        *written.named.entry(name.to_owned()).or_default() += 1;
        if self.point.as_ref().is_some_and(|point| point.side == Side::After && written.up_to(point) >= point.at) {
            std::process::abort();
        }
        writeln!(names, "{name}").unwrap();
    }
}

#[async_trait]
impl Watch for Arc<Crash> {
    async fn begins(&self, name: &str, certain: bool) -> Result<(), Error> {
        self.before(name, certain);
        Ok(())
    }

    fn done(&self, name: &str) {
        self.after(name);
    }
}

/// Counts the steps that are held back, as `hold analyze`, by what is logged.
#[derive(Debug)]
pub(super) struct Holding(pub(super) Arc<Crash>);

impl<S: Subscriber> Layer<S> for Holding {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        if line.message == "A step is held back" {
            let name = format!("hold {}", line.node);
            self.0.before(&name, false);
            self.0.after(&name);
        }
    }
}

/// The part of a line in the log that is looked at.
#[derive(Default)]
struct Line {
    message: String,
    node: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "node.name" {
            value.clone_into(&mut self.node);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        }
    }
}
