//! `restore_simulation`: sets all parameters of a simulation back to a snapshot.

use async_trait::async_trait;
use countersign_capabilities::parameters::{non_blank, parameters, refused, schema};
use countersign_core::{
    reply::{Card, Fact, Reply, Text},
    units::quantity,
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Proposal, Reader, Recovery,
    Scope, difference, differences,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{after_error, approved, fact, run, stored, unread};
use crate::{
    Deps, busy,
    changes::{self, Changed},
    find::{self, Asked},
    memory::restore_target,
    replies::refusals,
    snapshots,
};

/// The name of the action.
pub const NAME: &str = "restore_simulation";

/// The word for the values in the model file, of which the bridge keeps no snapshot.
const LOADED: &str = "loaded";

/// The key of the present values on the card, in the preconditions.
const VALUES: &str = "values";

/// The maximum number of values on a card.
const MAX_VALUES: usize = 8;

/// The action `restore_simulation`.
#[derive(Debug)]
pub struct RestoreSimulation(pub Deps);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    /// The simulation, by name. Optional if only one is loaded.
    #[serde(default)]
    simulation: Option<String>,
    /// The simulation mentioned before, if none is named.
    #[serde(default)]
    active: Option<String>,
    /// The id of the snapshot; `loaded` for the values in the model file. Default: the last one that was taken here.
    #[serde(default)]
    snapshot: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Restore {
    simulation: String,
    snapshot: String,
}

#[async_trait]
impl ActionKind for RestoreSimulation {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(
            NAME,
            "Sets all parameters of a simulation back to a snapshot. Only when someone asks to restore a simulation.",
        )
    }

    fn schema(&self) -> Value {
        schema::<Given>()
    }

    async fn prepare(&self, given_parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let deps = &self.0;
        let asked: Given = parameters(given_parameters)?;
        let says = |simulation: &str| format!("restore {simulation}");
        let loaded = find::simulation(deps, Asked::of(&asked.simulation, &asked.active), says).await?;
        busy::no_comparison(deps, &loaded.id).await?;
        if asked.snapshot.as_deref() == Some(LOADED) {
            let changed = changes::since_loading(deps, &loaded.id).await;
            return Err(refused(ErrorKind::UserInput, refusals::back_to_loaded(&loaded.id, &changed)));
        }
        let snapshots = deps.client.snapshots(&loaded.id).await;
        let snapshots = snapshots.map_err(|error| find::not_read(deps, &loaded.id, &error))?;
        let wanted = non_blank(asked.snapshot.as_ref());
        let taken_here = snapshots::taken_here(deps, &loaded.id).await;
        let found = match wanted {
            Some(id) => snapshots.iter().find(|snapshot| snapshot.id == id),
            None => snapshots::last(&snapshots, &taken_here),
        };
        let Some(snapshot) = found else {
            let text = Text::from(match wanted {
                Some(id) => format!("There is no snapshot {id} of "),
                None => "There is no snapshot of ".to_owned(),
            });
            return Err(refused(ErrorKind::NotFound, Reply::text(text.bold(&loaded.id).plain("."))));
        };
        let taken = snapshot.taken_at.clone().unwrap_or_else(|| "at an unknown time".to_owned());
        let is_from_here = taken_here.iter().any(|taken| taken.id == snapshot.id);
        let newer = snapshots.iter().take_while(|other| other.id != snapshot.id).count();
        let changed = snapshots::differences(deps, &loaded.id, snapshot, &snapshots, &taken_here).await;
        let mut notes = Vec::new();
        if wanted.is_none() && snapshots.len() > 1 {
            notes.push(Text::from(match (is_from_here, newer) {
                (true, 0) => "This is the last snapshot.".to_owned(),
                (true, 1) => "This is the last snapshot that was taken here. There is 1 newer one.".to_owned(),
                (true, newer) => {
                    format!("This is the last snapshot that was taken here. There are {newer} newer ones.")
                }
                (false, _) => format!(
                    "This is the newest of {} snapshots. None was taken here; the bridge may take its own before changes.",
                    snapshots.len()
                ),
            }));
        }
        if changed.is_empty() {
            notes.push(Text::from("I have no changes since then on record, so I can't show which values will change."));
        } else if changed.len() > MAX_VALUES {
            notes.push(Text::from(format!("{} more parameters change.", changed.len() - MAX_VALUES)));
        }
        let mut card = Card {
            title: format!("Restore “{}” from its snapshot?", loaded.id),
            facts: vec![
                fact("Simulation", Text::new().bold(&loaded.id)),
                fact("Snapshot", Text::new().code(&snapshot.id)),
                fact("Taken", taken),
            ]
            .into_iter()
            .chain(changed.iter().take(MAX_VALUES).map(value_fact))
            .collect(),
            warnings: vec![Text::from("All parameters return to their values at that time. Later changes are lost.")],
            notes,
            approve: "Restore snapshot".to_owned(),
            reject: Card::REJECT.to_owned(),
            done: format!("Restored {} from its snapshot.", loaded.id),
            ..Card::default()
        };
        let mut preconditions = run::loaded_state(&loaded);
        if !changed.is_empty() {
            let values = changed.iter().take(MAX_VALUES).map(|changed| (changed.path.clone(), json!(changed.before)));
            preconditions[VALUES] = values.collect();
        }
        busy::warn_of_run(deps, &loaded.id, &mut card, &mut preconditions).await;
        Ok(Proposal {
            preconditions,
            scope: Scope::of(restore_target(&loaded.id)).of_subject(&loaded.id),
            parameters: json!(Restore { simulation: loaded.id, snapshot: snapshot.id.clone() }),
            card,
            undo: None,
        })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let restore: Restore = stored(record)?;
        busy::still_no_comparison(&self.0, &restore.simulation, record).await?;
        let mut state = run::still_loaded(&self.0, &restore.simulation).await?;
        if let Some(shown) = record.preconditions[VALUES].as_object() {
            let mut now = Map::new();
            for path in shown.keys() {
                let found = self.0.client.parameter(&restore.simulation, path).await;
                let found = found.map_err(|error| unread(&self.0, &restore.simulation, &error))?;
                now.insert(path.clone(), json!(found.value));
            }
            state[VALUES] = Value::Object(now);
        }
        busy::no_new_run(&self.0, &restore.simulation, record, &mut state).await?;
        Ok(state)
    }

    fn differences(&self, record: &ActionRecord, found: &Value) -> Vec<Fact> {
        let (mut shown, mut found) = ((*record.preconditions).clone(), found.clone());
        let (then, now) = (shown[VALUES].take(), found[VALUES].take());
        let changed = then.as_object().into_iter().flatten().filter(|(path, value)| now[path.as_str()] != **value);
        let words = |value: &Value| value.as_f64().map_or_else(|| "no value".to_owned(), |value| quantity(value, None));
        let values = changed.map(|(path, value)| difference(path.as_str(), words(value), words(&now[path.as_str()])));
        values.chain(differences(&shown, &found)).collect()
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let (restore, confirmed): (Restore, _) = match approved(record) {
            Ok(approved) => approved,
            Err(outcome) => return Performed::Ended(outcome),
        };
        match self.0.client.restore(&restore.simulation, &restore.snapshot, &confirmed).await {
            Ok(_) => Performed::Ended(Outcome::done(
                record,
                json!({ "simulation": restore.simulation, "snapshot": restore.snapshot }),
            )),
            Err(error) => after_error(self, record, &self.0, &restore.simulation, error).await,
        }
    }

    fn recovery(&self) -> Recovery {
        // The request names the snapshot, so a second one leads to the same values. A probe is not possible: the bridge
        // does not report the snapshot that a simulation was restored to.
        Recovery::Idempotent
    }
}

/// Returns the line for a value that is restored.
fn value_fact(changed: &Changed) -> Fact {
    let words = |value: f64| quantity(value, changed.unit.as_deref());
    Fact { label: changed.path.clone(), before: Some(words(changed.before).into()), after: words(changed.after).into() }
}
