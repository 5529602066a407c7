//! `snapshot_simulation`: saves the values of all parameters of a simulation, to be restored later.

use std::sync::Arc;

use countersign_capabilities::rows::Change;
use countersign_core::reply::{Card, Fact, Text};
use countersign_graph::action::{ActionInfo, ActionKind, ActionRecord, Outcome, Performed, PrepareError, Proposal};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Action, free, proposal, sent, still_free};
use crate::{Deps, find::Target, memory::snapshot_target};

/// The name of the action.
pub const NAME: &str = "snapshot_simulation";

#[derive(Serialize, Deserialize)]
struct Kept {
    simulation: String,
}

/// Returns the action `snapshot_simulation`.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info =
        ActionInfo::new(NAME, "Takes a snapshot of the parameters of a simulation, which can be restored later.");
    // Without an answer it is taken again: a second snapshot of the same values does no harm.
    Arc::new(Change {
        now: |row, _, record| Box::pin(still_free(&row.deps, record)),
        ..Change::new(
            deps,
            info,
            |row, target, _| Box::pin(prepare(&row.deps, target)),
            |row, kept, record| Box::pin(send(row, kept, record)),
        )
    })
}

async fn prepare(deps: &Deps, target: Target) -> Result<Proposal, PrepareError> {
    let loaded = free(deps, &target, |simulation| format!("take a snapshot of {simulation}")).await?;
    let title = format!("Take a snapshot of “{}”?", loaded.id);
    let card = Card {
        facts: vec![Fact::new("Simulation", Text::new().bold(&loaded.id))],
        notes: vec![Text::from("Nothing changes. You can restore the current values later.")],
        ..Card::new(title, "Take snapshot", format!("Took a snapshot of {}.", loaded.id))
    };
    Ok(proposal(&loaded, snapshot_target(&loaded.id), Kept { simulation: loaded.id.clone() }, card))
}

async fn send(row: &Action<Target, Kept>, Kept { simulation }: Kept, record: &ActionRecord) -> Performed {
    let take = |confirmed| async move {
        let taken = row.deps.client.take_snapshot(&simulation, &confirmed).await?;
        Ok(Outcome::Done {
            summary: Text::from(record.card.done.as_str()).plain(" Its ID: ").code(&taken.id).plain("."),
            result: json!({ "simulation": simulation, "snapshot": taken.id }),
        })
    };
    sent(row, record, take).await
}
