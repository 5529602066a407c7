//! The snapshots of a simulation: which of them people took here, and what restoring one changes.
//!
//! From 0.5 on the bridge takes a snapshot of its own before each change, and reports neither who took a snapshot nor its
//! values. Both are known from the records of the approved changes.

use countersign_core::clock::Timestamp;
use countersign_graph::action::{ActionRecord, Outcome, Status};

use super::{
    Deps,
    actions::{set::same, snapshot},
    bridge::data::Snapshot,
    changes::{self, Changed},
    memory::snapshot_target,
};

/// The maximum number of snapshots that are looked for in the records.
const MAX_SNAPSHOTS: usize = 200;

/// A snapshot that was taken here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its id.
    pub id: String,
    /// The time at which it was requested from the bridge.
    pub at: Timestamp,
}

/// Returns the snapshots that were taken here since the simulation was loaded, newest first.
pub async fn taken_here(deps: &Deps, simulation: &str) -> Vec<Taken> {
    let loaded_at = deps.memory.loaded_at(simulation, None).await;
    let records = deps.memory.records(&snapshot_target(simulation), MAX_SNAPSHOTS).await;
    let taken = |record: &ActionRecord| {
        let at = record.intent_at.filter(|at| loaded_at.is_none_or(|loaded| *at >= loaded))?;
        let is_done = record.name == snapshot::NAME && record.status == Status::Done;
        Some(Taken { id: named_in(record).filter(|_| is_done)?.to_owned(), at })
    };
    records.iter().filter_map(taken).collect()
}

/// Returns the snapshot that the result of a change names: the one that it took, or that the bridge took before it.
fn named_in(record: &ActionRecord) -> Option<&str> {
    match record.outcome.as_ref()? {
        Outcome::Done { result, .. } => result["snapshot"].as_str(),
        _ => None,
    }
}

/// Returns the snapshot that “the last snapshot” means: the last one that was taken here, or else the newest.
pub fn last<'a>(all: &'a [Snapshot], taken: &[Taken]) -> Option<&'a Snapshot> {
    taken.iter().find_map(|taken| all.iter().find(|snapshot| snapshot.id == taken.id)).or(all.first())
}

/// Returns the present values of parameters, and those of a snapshot, if they differ and as far as the records show it.
/// `all` are the snapshots, newest first.
pub async fn differences(
    deps: &Deps,
    simulation: &str,
    wanted: &Snapshot,
    all: &[Snapshot],
    taken: &[Taken],
) -> Vec<Changed> {
    let at = match taken.iter().find(|taken| taken.id == wanted.id) {
        Some(taken) => Some(taken.at),
        None => wanted
            .taken_at
            .as_deref()
            .and_then(|at| at.parse::<jiff::Timestamp>().ok())
            .map(|at| Timestamp(at.as_millisecond())),
    };
    let position = |id: &str| all.iter().position(|snapshot| snapshot.id == id);
    let wanted_at = position(&wanted.id);
    // The snapshot before a change tells the order for certain; the clocks of the bridge and of this machine may differ.
    let is_later = |change: &ActionRecord| match named_in(change).and_then(position).zip(wanted_at) {
        Some((before, wanted)) => before <= wanted,
        None => change.intent_at.zip(at).is_some_and(|(change, at)| change > at),
    };
    let changed = |path: String| async move {
        let changes = changes::changes_of(deps, simulation, &path).await;
        let first = changes.iter().filter(|change| is_later(change)).min_by_key(|change| change.intent_at)?;
        let is_between =
            |restored| at.is_none_or(|at| restored > at) && first.intent_at.is_none_or(|changed| restored < changed);
        if changes::is_restored(deps, simulation, is_between).await {
            return None; // its value before the change is not that of the snapshot
        }
        let then = first.preconditions["value"].as_f64()?;
        let now = deps.client.parameter(simulation, &path).await.ok()?;
        (!same(now.value, then)).then_some(Changed { path, before: now.value, after: then, unit: now.unit })
    };
    changes::for_each_path(deps, simulation, changed).await.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_snapshot_is_the_last_one_that_was_taken_here() {
        let snapshot = |id: &str| Snapshot { id: id.to_owned(), taken_at: None, hash: None };
        let all = ["c", "b", "a"].map(snapshot);
        let taken = |id: &str| Taken { id: id.to_owned(), at: Timestamp(0) };
        assert_eq!(last(&all, &[taken("a")]).unwrap().id, "a", "the others are the bridge's own");
        assert_eq!(last(&all, &[taken("gone"), taken("b"), taken("a")]).unwrap().id, "b");
        assert_eq!(last(&all, &[]).unwrap().id, "c");
        assert_eq!(last(&[], &[taken("a")]), None);
    }
}
