//! `load_simulation`: loads a model file as a simulation.

use async_trait::async_trait;
use countersign_capabilities::parameters::{missing, non_blank, parameters, refused, schema};
use countersign_core::reply::{Card, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Probed, Proposal, Reader,
    Recovery, Refusal, Scope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{after_error, approved, cannot_read_back, fact, failed, in_flight, stored, unread};
use crate::{
    Deps,
    bridge::{client::Version, data::without_copies},
    find,
    memory::load_target,
    replies::{errors, refusals},
};

/// The name of the action.
pub const NAME: &str = "load_simulation";

/// The action `load_simulation`.
#[derive(Debug)]
pub struct LoadSimulation(pub Deps);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    /// The model file: its path on the bridge's machine, such as `/data/models/demo.pkml`, or the name of a model.
    /// Required.
    #[serde(default)]
    file: Option<String>,
    /// The name for the simulation. Default: the file name.
    #[serde(default)]
    simulation: Option<String>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
struct Load {
    file: String,
    simulation: String,
}

#[async_trait]
impl ActionKind for LoadSimulation {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(
            NAME,
            "Loads a model file into the simulation bridge under a name. Only when someone asks to load or open a model.",
        )
    }

    fn schema(&self) -> Value {
        schema::<Given>()
    }

    async fn prepare(&self, given_parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let deps = &self.0;
        let asked: Given = parameters(given_parameters)?;
        let Some(file) = non_blank(asked.file.as_ref()).and_then(|file| deps.settings.file_named(file)) else {
            let question = "Which model file? Give its path on the bridge's machine, such as /data/models/demo.pkml.";
            return Err(Refusal::Missing(vec![missing("file", question, Vec::new())]).into());
        };
        let endings: &[&str] = match deps.client.version().await.map_err(|error| find::unavailable(&error))? {
            Version::V01 => &[".pkml"],
            Version::V05 => &[".pkml", ".pksim5", ".R"],
        };
        if !endings.iter().any(|ending| file.ends_with(ending)) || file.chars().any(char::is_control) {
            let reply = refusals::not_a_model(&file, &endings.join(", "));
            return Err(refused(ErrorKind::Validation, reply));
        }
        let stem =
            file.rsplit(['/', '\\']).next().and_then(|name| name.rsplit_once('.')).map_or("model", |(stem, _)| stem);
        let simulation = non_blank(asked.simulation.as_ref()).unwrap_or(stem).to_owned();
        if simulation.chars().count() > 64 || simulation.chars().any(char::is_control) || simulation.is_empty() {
            return Err(refused(ErrorKind::Validation, refusals::bad_name()));
        }
        let everything = deps.client.simulations_and_copies().await.map_err(|error| find::unavailable(&error))?;
        let taken = |name: &str| everything.iter().any(|other| other.id == name);
        if taken(&simulation) {
            let free = (2..).map(|n| format!("{simulation}-{n}")).find(|name| !taken(name)).unwrap_or_default();
            let says = |name: &str| format!("load {file} as {name}");
            return Err(refused(ErrorKind::Validation, refusals::loaded_already(&simulation, says, &free)));
        }
        let (loaded, _) = without_copies(everything.clone());
        let names: Vec<Text> = loaded.iter().take(10).map(|other| Text::new().bold(&other.id)).collect();
        let stays = match names.len() {
            0 => Text::from("none"),
            1 => Text::listed(names, "and").plain(", which stays loaded"),
            _ => Text::listed(names, "and").plain(", which stay loaded"),
        };
        let short = file.rsplit('/').next().unwrap_or(&file);
        let card = Card {
            title: format!("Load {short} as “{simulation}”?"),
            facts: vec![
                fact("Model file", Text::new().code(&file)),
                fact("Name", Text::new().bold(&simulation)),
                fact("Loaded so far", stays),
            ],
            notes: vec![Text::from("“It” means this simulation from then on in this thread.")],
            approve: "Load model".to_owned(),
            reject: Card::REJECT.to_owned(),
            done: format!("Loaded {short} as {simulation}."),
            ..Card::default()
        };
        Ok(Proposal {
            scope: Scope::of(load_target(&simulation)).of_subject(&simulation),
            parameters: json!(Load { file, simulation }),
            preconditions: json!({ "loaded": false }),
            card,
            undo: None,
        })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let load: Load = stored(record)?;
        let all = self.0.client.simulations_and_copies().await;
        let all = all.map_err(|error| unread(&self.0, &load.simulation, &error))?;
        Ok(json!({ "loaded": all.iter().any(|other| other.id == load.simulation) }))
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let (load, confirmed): (Load, _) = match approved(record) {
            Ok(approved) => approved,
            Err(outcome) => return Performed::Ended(outcome),
        };
        match self.0.client.load(&load.file, &load.simulation, &confirmed).await {
            Ok(warnings) => Performed::Ended(self.done(record, &load, &warnings)),
            Err(error) => match after_error(self, record, &self.0, &load.simulation, error.clone()).await {
                Performed::Ended(Outcome::Failed { .. }) => {
                    Performed::Ended(failed(errors::kind(&error), errors::not_done(&error)))
                }
                other => other,
            },
        }
    }

    fn recovery(&self) -> Recovery {
        // The bridge refuses to load the same name twice, so a second request changes nothing.
        Recovery::Probe { in_flight: in_flight(&self.0), repeatable: true }
    }

    async fn probe(&self, record: &ActionRecord) -> Probed {
        let Ok(load) = stored::<Load>(record) else {
            return Probed::CannotTell { evidence: Text::from("The stored request can't be read.") };
        };
        match self.0.client.simulations_and_copies().await {
            Ok(all) => match all.iter().find(|other| other.id == load.simulation) {
                Some(found) if found.file.as_ref().is_some_and(|file| *file != load.file) => {
                    let evidence = Text::from("Another file is loaded under this name now: ")
                        .code(found.file.clone().unwrap_or_default());
                    Probed::Otherwise { evidence }
                }
                Some(_) => Probed::Happened(self.done(record, &load, &[])),
                None => Probed::DidNotHappen,
            },
            Err(error) => cannot_read_back(&error),
        }
    }
}

impl LoadSimulation {
    fn done(&self, record: &ActionRecord, load: &Load, warnings: &[String]) -> Outcome {
        self.0.memory.loaded(&load.simulation, &load.file);
        let mut summary = Text::from(record.card.done.as_str());
        if !warnings.is_empty() {
            summary = summary.plain(format!(" The bridge warns: {}.", warnings.join("; ").trim_end_matches('.')));
        }
        Outcome::Done { result: json!({ "simulation": load.simulation, "file": load.file }), summary }
    }
}
