//! Parameter snapshots, which have routes but no tools.

use serde_json::{Value, json};

use super::super::{arguments::text, failure::Failure, world::World};

/// Takes a snapshot.
pub(crate) fn take(world: &mut World, arguments: &Value) -> Result<Value, Failure> {
    let id = text(arguments, "simulationId").unwrap_or_default();
    match world.take_snapshot(id) {
        Some(snapshot) => Ok(json!({ "snapshot": snapshot.shown() })),
        None => Err(not_loaded(id, "Load the simulation before capturing a baseline snapshot.")),
    }
}

/// Restores the parameters from a snapshot, by default from the newest one.
pub(crate) fn restore(world: &mut World, arguments: &Value) -> Result<Value, Failure> {
    let id = text(arguments, "simulationId").unwrap_or_default();
    let snapshot_id = text(arguments, "snapshotId");
    let matches = |snapshot: &&super::super::world::Snapshot| {
        snapshot.simulation == id && snapshot_id.is_none_or(|wanted| snapshot.id == wanted)
    };
    let found = world.snapshots.iter().rev().find(matches).cloned();
    let Some(simulation) = world.simulation(id) else {
        return Err(not_loaded(id, "Load the simulation before restoring a snapshot."));
    };
    let Some(snapshot) = found else {
        let hint = "Capture a snapshot before requesting a restore.";
        let message = format!("No snapshot found for simulation '{id}'");
        return Err(Failure::not_found(message).at("snapshotId").hint(hint));
    };
    simulation.parameters = snapshot.parameters.clone();
    Ok(json!({ "snapshot": snapshot.shown() }))
}

/// Lists the snapshots of a simulation, newest first.
pub(crate) fn list(world: &World, id: &str) -> Value {
    let own = world.snapshots.iter().rev().filter(|snapshot| snapshot.simulation == id);
    let shown: Vec<Value> = own.map(super::super::world::Snapshot::shown).collect();
    json!({ "latestSnapshot": shown.first(), "snapshots": shown })
}

fn not_loaded(id: &str, hint: &str) -> Failure {
    Failure::not_found(format!("Simulation '{id}' is not loaded")).at("simulationId").hint(hint)
}
