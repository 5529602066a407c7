//! `snapshot_simulation`: saves the values of all parameters of a simulation, to be restored later.

use async_trait::async_trait;
use countersign_capabilities::parameters::{parameters, schema};
use countersign_core::reply::{Card, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Outcome, Performed, PrepareError, Proposal, Reader, Recovery, Scope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{after_error, approved, fact, run, stored};
use crate::{
    Deps, busy,
    find::{self, Asked},
    memory::snapshot_target,
};

/// The name of the action.
pub const NAME: &str = "snapshot_simulation";

/// The action `snapshot_simulation`.
#[derive(Debug)]
pub struct SnapshotSimulation(pub Deps);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    /// The simulation, by name. Optional if only one is loaded.
    #[serde(default)]
    simulation: Option<String>,
    /// The simulation mentioned before, if none is named.
    #[serde(default)]
    active: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    simulation: String,
}

#[async_trait]
impl ActionKind for SnapshotSimulation {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(NAME, "Takes a snapshot of the parameters of a simulation, which can be restored later.")
    }

    fn schema(&self) -> Value {
        schema::<Given>()
    }

    async fn prepare(&self, given_parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let asked: Given = parameters(given_parameters)?;
        let says = |simulation: &str| format!("take a snapshot of {simulation}");
        let loaded = find::simulation(&self.0, Asked::of(&asked.simulation, &asked.active), says).await?;
        busy::no_comparison(&self.0, &loaded.id).await?;
        let card = Card {
            title: format!("Take a snapshot of “{}”?", loaded.id),
            facts: vec![fact("Simulation", Text::new().bold(&loaded.id))],
            notes: vec![Text::from("Nothing changes. You can restore the current values later.")],
            approve: "Take snapshot".to_owned(),
            reject: Card::REJECT.to_owned(),
            done: format!("Took a snapshot of {}.", loaded.id),
            ..Card::default()
        };
        Ok(Proposal {
            preconditions: run::loaded_state(&loaded),
            scope: Scope::of(snapshot_target(&loaded.id)).of_subject(&loaded.id),
            parameters: json!(Kept { simulation: loaded.id }),
            card,
            undo: None,
        })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let kept: Kept = stored(record)?;
        busy::still_no_comparison(&self.0, &kept.simulation, record).await?;
        run::still_loaded(&self.0, &kept.simulation).await
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let (kept, confirmed): (Kept, _) = match approved(record) {
            Ok(approved) => approved,
            Err(outcome) => return Performed::Ended(outcome),
        };
        match self.0.client.take_snapshot(&kept.simulation, &confirmed).await {
            Ok(taken) => Performed::Ended(Outcome::Done {
                summary: Text::from(record.card.done.as_str()).plain(" Its ID: ").code(&taken.id).plain("."),
                result: json!({ "simulation": kept.simulation, "snapshot": taken.id }),
            }),
            Err(error) => after_error(self, record, &self.0, &kept.simulation, error).await,
        }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Idempotent // a second snapshot of the same values does no harm
    }
}
