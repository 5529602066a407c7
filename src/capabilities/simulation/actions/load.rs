//! `load_simulation`: loads a model file as a simulation.

use std::sync::Arc;

use countersign_capabilities::{
    parameters::{incomplete, non_blank, refused},
    rows::Change,
};
use countersign_core::reply::{Card, Fact, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Probed, Proposal, Scope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Action, cannot_read_back, read_back, sent, unread, with_warnings};
use crate::{
    Deps,
    bridge::{client::Version, data::without_copies},
    find,
    memory::load_target,
    replies::refusals,
};

/// The name of the action.
pub const NAME: &str = "load_simulation";

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

/// Returns the action `load_simulation`.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        NAME,
        "Loads a model file into the simulation bridge under a name. Only when someone asks to load or open a model.",
    );
    Arc::new(Change {
        now: |row, load, record| Box::pin(now(&row.deps, load, record)),
        settle: read_back(|row, load, record| Box::pin(probe(&row.deps, load, record))),
        ..Change::new(
            deps,
            info,
            |row, asked, _| Box::pin(prepare(&row.deps, asked)),
            |row, load, record| Box::pin(send(row, load, record)),
        )
    })
}

async fn prepare(deps: &Deps, asked: Given) -> Result<Proposal, PrepareError> {
    let called = non_blank(asked.simulation.as_ref()).map(|name| format!(" as {name}")).unwrap_or_default();
    let says = |path: &str| format!("load {path}{called}");
    let file = match non_blank(asked.file.as_ref()) {
        Some(named) => find::model_file(deps, named, says).await?,
        None => None,
    };
    let Some(file) = file else {
        let question = "Which model file? Give its path on the bridge's machine, such as /data/models/demo.pkml.";
        return Err(incomplete("file", question, Vec::new()));
    };
    let endings: &[&str] = match deps.client.version().await? {
        Version::V01 => &[".pkml"],
        Version::V05 => &[".pkml", ".pksim5", ".R"],
    };
    if !endings.iter().any(|ending| file.ends_with(ending)) || file.chars().any(char::is_control) {
        return Err(refused(ErrorKind::Validation, refusals::not_a_model(&file, &endings.join(", "))));
    }
    let stem = find::file_name(&file).rsplit_once('.').map_or("model", |(stem, _)| stem);
    let simulation = non_blank(asked.simulation.as_ref()).unwrap_or(stem).to_owned();
    if simulation.chars().count() > 64 || simulation.chars().any(char::is_control) || simulation.is_empty() {
        return Err(refused(ErrorKind::Validation, refusals::bad_name()));
    }
    let everything = deps.client.simulations_and_copies().await?;
    let taken = |name: &str| everything.iter().any(|other| other.id == name);
    if taken(&simulation) {
        let free = (2..).map(|n| format!("{simulation}-{n}")).find(|name| !taken(name)).unwrap_or_default();
        let says = |name: &str| format!("load {file} as {name}");
        return Err(refused(ErrorKind::Validation, refusals::loaded_already(&simulation, says, &free)));
    }
    let (loaded, _) = without_copies(everything);
    let names: Vec<Text> = loaded.iter().take(10).map(|other| Text::new().bold(&other.id)).collect();
    let stays = match names.len() {
        0 => Text::from("none"),
        1 => Text::listed(names, "and").plain(", which stays loaded"),
        _ => Text::listed(names, "and").plain(", which stay loaded"),
    };
    let short = file.rsplit('/').next().unwrap_or(&file);
    let card = Card {
        facts: vec![
            Fact::new("Model file", Text::new().code(&file)),
            Fact::new("Name", Text::new().bold(&simulation)),
            Fact::new("Loaded so far", stays),
        ],
        notes: vec![Text::from("“It” means this simulation from then on in this thread.")],
        ..Card::new(
            format!("Load {short} as “{simulation}”?"),
            "Load model",
            format!("Loaded {short} as {simulation}."),
        )
    };
    Ok(Proposal {
        scope: Scope::of(load_target(&simulation)).of_subject(&simulation),
        preconditions: json!({ "loaded": false }),
        ..Proposal::new(Load { file, simulation }, card)
    })
}

async fn now(deps: &Deps, load: Load, record: &ActionRecord) -> Result<Value, Outcome> {
    let all = deps.client.simulations_and_copies().await.map_err(|error| unread(deps, record, &error))?;
    Ok(json!({ "loaded": all.iter().any(|other| other.id == load.simulation) }))
}

async fn send(row: &Action<Given, Load>, load: Load, record: &ActionRecord) -> Performed {
    let call = |confirmed| async move {
        let warnings = row.deps.client.load(&load.file, &load.simulation, &confirmed).await?;
        Ok(done(&row.deps, record, &load, &warnings))
    };
    sent(row, record, call).await
}

/// The bridge refuses to load the same name twice, so the file tells whether this request loaded it.
async fn probe(deps: &Deps, load: Load, record: &ActionRecord) -> Probed {
    match deps.client.simulations_and_copies().await {
        Ok(all) => match all.iter().find(|other| other.id == load.simulation) {
            Some(found) if found.file.as_ref().is_some_and(|file| *file != load.file) => {
                let evidence = Text::from("Another file is loaded under this name now: ")
                    .code(found.file.clone().unwrap_or_default());
                Probed::Otherwise { evidence }
            }
            Some(_) => Probed::Happened(done(deps, record, &load, &[])),
            None => Probed::DidNotHappen,
        },
        Err(error) => cannot_read_back(&error),
    }
}

fn done(deps: &Deps, record: &ActionRecord, load: &Load, warnings: &[String]) -> Outcome {
    deps.memory.loaded(&load.simulation, &load.file);
    let warnings = Some(warnings.join("; ")).filter(|all| !all.is_empty());
    Outcome::Done {
        result: json!({ "simulation": load.simulation, "file": load.file }),
        summary: with_warnings(Text::from(record.card.done.as_str()), warnings.as_deref()),
    }
}
