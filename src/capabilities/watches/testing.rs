//! Things to follow, and watches of them, for the tests of this crate.

use std::sync::Mutex;

use async_trait::async_trait;
use countersign_capabilities::{Observed, ObservedPart, Observer, Phase, ToolError};
use countersign_core::{clock::Timestamp, ids::ThreadId, reply::Reply};
use countersign_graph::action::ErrorKind;

use crate::watch::{Event, Followed, Watch};

pub(crate) fn thread() -> ThreadId {
    ThreadId { team: "T1".into(), channel: "C1".into(), root: "1700000000.000100".into() }
}

pub(crate) fn observed(enrolled: u64, phase: Phase) -> Observed {
    let part = |name: &str| ObservedPart { name: name.to_owned(), share: 0.5, count: enrolled / 2 };
    Observed {
        id: "t1".to_owned(),
        name: "Math Hints".to_owned(),
        phase,
        enrolled,
        simulated: 0,
        participants: "users".to_owned(),
        parts: vec![part("control"), part("hints")],
    }
}

pub(crate) fn watch(event: Event, phase: Phase) -> Watch {
    Watch {
        id: "w-1".to_owned(),
        source: "things".to_owned(),
        thing: "t1".to_owned(),
        name: "Math Hints".to_owned(),
        event,
        by: "U1".into(),
        thread: thread(),
        since: Timestamp(0),
        first_phase: phase.into(),
    }
}

pub(crate) fn followed() -> Followed {
    Followed {
        source: "things".to_owned(),
        thing: "t1".to_owned(),
        next_look: Timestamp(0),
        unreadable_since: None,
        is_told: false,
        split: None,
    }
}

/// A platform with one thing.
#[derive(Debug)]
pub(crate) struct Platform {
    /// The thing; `None` once it is deleted.
    pub(crate) thing: Mutex<Option<Observed>>,
    /// True if it does not answer.
    pub(crate) is_down: Mutex<bool>,
    /// The number of reads.
    pub(crate) reads: Mutex<usize>,
}

impl Platform {
    pub(crate) fn with(thing: Observed) -> Self {
        Self { thing: Mutex::new(Some(thing)), is_down: Mutex::new(false), reads: Mutex::new(0) }
    }

    pub(crate) fn enrols(&self, enrolled: u64) {
        let mut thing = self.thing.lock().unwrap();
        let phase = thing.as_ref().unwrap().phase;
        *thing = Some(observed(enrolled, phase));
    }

    pub(crate) fn turns(&self, phase: Phase) {
        self.thing.lock().unwrap().as_mut().unwrap().phase = phase;
    }

    fn read(&self) -> Result<Option<Observed>, ToolError> {
        *self.reads.lock().unwrap() += 1;
        if *self.is_down.lock().unwrap() {
            return Err(ToolError { kind: ErrorKind::Network, reply: Reply::text("no answer"), transient: true });
        }
        Ok(self.thing.lock().unwrap().clone())
    }
}

#[async_trait]
impl Observer for Platform {
    fn things(&self) -> &'static str {
        "experiments"
    }

    async fn find(
        &self,
        name: &str,
        _: &(dyn for<'n> Fn(&'n str) -> String + Send + Sync),
    ) -> Result<Observed, ToolError> {
        let unknown = || ToolError {
            kind: ErrorKind::NotFound,
            reply: Reply::text(format!("There is no {name}.")),
            transient: false,
        };
        self.read()?.filter(|thing| thing.name.eq_ignore_ascii_case(name)).ok_or_else(unknown)
    }

    async fn observe(&self, _: &str) -> Result<Option<Observed>, ToolError> {
        self.read()
    }

    async fn in_progress(&self) -> Result<Vec<Observed>, ToolError> {
        Ok(self.read()?.into_iter().filter(|thing| thing.phase == Phase::Running).collect())
    }
}
