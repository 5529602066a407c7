//! `run_sensitivity_analysis`: changes parameters one by one and compares the PK figures.
//!
//! The bridge answers only when every scenario is done, and recognises no repeat: without an answer nothing is sent again,
//! and a person is asked.

use async_trait::async_trait;
use countersign_capabilities::parameters::{missing, non_blank, parameters, refused, schema};
use countersign_core::reply::{Card, Reply, Text};
use countersign_graph::action::{
    ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Probed, Proposal, Recovery, Refusal, Scope,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{approved, cannot_read_back, ended_badly, fact, file_of, run, stored};
use crate::{
    Deps,
    bridge::client::{LONG, Sensitivity},
    find::{self, Asked},
    replies::answers,
    units::{number, quantity},
};

/// The name of the action.
pub const NAME: &str = "run_sensitivity_analysis";

/// The most parameters of an analysis: it has to end within the time of one call.
const MOST: usize = 6;
/// The change in percent if none is given.
const USUAL: f64 = 10.0;

/// The action `run_sensitivity_analysis`.
#[derive(Debug)]
pub struct RunSensitivity(pub Deps);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    /// The simulation, by name. Optional if only one is loaded.
    #[serde(default)]
    simulation: Option<String>,
    /// The simulation mentioned before, if none is named.
    #[serde(default)]
    active: Option<String>,
    /// The parameters to vary, separated by commas: paths or words. Required.
    #[serde(default)]
    parameters: Option<String>,
    /// The variation up and down in percent. Default: 10.
    #[serde(default)]
    percent: Option<f64>,
    /// The model file, if the bridge does not report it.
    #[serde(default)]
    file: Option<String>,
}

#[async_trait]
impl ActionKind for RunSensitivity {
    fn name(&self) -> &'static str {
        NAME
    }

    fn description(&self) -> &'static str {
        "Varies parameters of a loaded simulation one by one, up and down by some percent, and compares the PK figures. \
         Only when someone asks for a sensitivity analysis or which parameters matter."
    }

    fn schema(&self) -> Value {
        schema::<Given>()
    }

    async fn prepare(&self, given_parameters: &Value) -> Result<Proposal, PrepareError> {
        let deps = &self.0;
        let asked: Given = parameters(given_parameters)?;
        let listed = non_blank(asked.parameters.as_ref());
        let says = |simulation: &str| match listed {
            Some(listed) => format!("sensitivity analysis of {simulation} for {listed}"),
            None => format!("sensitivity analysis of {simulation}"),
        };
        let loaded = find::simulation(deps, Asked::of(&asked.simulation, &asked.active), says).await?;
        let Some(listed) = listed else {
            let question = "Which parameters should vary? Name them, separated by commas.";
            return Err(Refusal::Missing(vec![missing("parameters", question, Vec::new())]).into());
        };
        let listed = listed.replace(" and ", ",");
        let names: Vec<&str> = listed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let percent = asked.percent.unwrap_or(USUAL);
        let wrong = |text: String| Err(refused(ErrorKind::Validation, Reply::text(text)));
        if names.is_empty() || names.len() > MOST {
            return wrong(format!("An analysis varies 1 to {MOST} parameters."));
        }
        if !(0.1..=90.0).contains(&percent) {
            return wrong("The change has to be between 0.1% and 90%.".to_owned());
        }
        let mut varied = Vec::new();
        for name in names {
            let says = |path: &str| format!("sensitivity analysis of {} for {path}", loaded.id);
            let path = find::parameter(deps, &loaded.id, name, says).await?;
            match find::value(deps, &loaded.id, &path).await? {
                Some(found) if found.value != 0.0 => varied.push(found),
                _ => return wrong(format!("{path} has no value that could be varied by a percentage.")),
            }
        }
        let file = non_blank(asked.file.as_ref()).and_then(|file| deps.settings.file_named(file));
        let Some(file) = file.or_else(|| file_of(deps, &loaded)) else {
            let question = format!(
                "Which model file was {} loaded from? The bridge wants to know it for this analysis.",
                loaded.id
            );
            return Err(Refusal::Missing(vec![missing("file", question, Vec::new())]).into());
        };
        let runs = 1 + 2 * varied.len();
        let mut facts =
            vec![fact("Simulation", Text::new().bold(&loaded.id)), fact("Model file", Text::new().code(&file))];
        let percentage = number(percent);
        facts.extend(varied.iter().map(|found| {
            let ends = [1.0 - percent / 100.0, 1.0 + percent / 100.0].map(|by| quantity(found.value * by, None));
            let unit = found.unit.as_ref().map(|unit| format!(" {unit}")).unwrap_or_default();
            fact(
                &found.path,
                format!("{} ± {percentage}%: {} and {}{unit}", quantity(found.value, None), ends[0], ends[1]),
            )
        }));
        facts.push(fact("Runs", format!("{runs}, in copies; {} itself stays as it is", loaded.id)));
        let card = Card {
            title: format!("Run a sensitivity analysis of “{}”?", loaded.id),
            facts,
            warnings: Vec::new(),
            notes: vec![Text::from(format!("The bridge keeps {} extra simulations for it.", runs - 1))],
            approve: "Run analysis".to_owned(),
            reject: "Don't run".to_owned(),
            done: format!("Analyzed the sensitivity of {}.", loaded.id),
            irreversible: false,
            editable: false,
        };
        let preconditions = run::loaded_state(&loaded);
        let scope = Scope::of(format!("sensitivity:{}", loaded.id)).of_subject(&loaded.id);
        let changes = vec![-percent / 100.0, percent / 100.0];
        let analysis = Sensitivity { simulation: loaded.id, file, parameters: varied, changes };
        Ok(Proposal { parameters: json!(analysis), preconditions, card, undo: None, scope })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let asked: Sensitivity = stored(record)?;
        run::still_loaded(&self.0, &asked.simulation).await
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let (asked, confirmed): (Sensitivity, _) = match approved(record) {
            Ok(approved) => approved,
            Err(outcome) => return Performed::Ended(outcome),
        };
        match self.0.client.sensitivity(&asked, &confirmed).await {
            Ok(scenarios) => {
                let result = json!({ "simulation": asked.simulation, "scenarios": scenarios });
                Performed::Ended(Outcome::Done { result, summary: Text::from(record.card.done.as_str()) })
            }
            Err(error) => ended_badly(self, record, &self.0, &asked.simulation, error).await,
        }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Probe { in_flight: LONG + std::time::Duration::from_secs(2), repeatable: false }
    }

    async fn probe(&self, record: &ActionRecord) -> Probed {
        let Ok(asked) = stored::<Sensitivity>(record) else {
            return Probed::CannotTell { evidence: Text::from("The stored request can't be read.") };
        };
        match self.0.client.simulations().await {
            Ok(all) => {
                let copies = format!("{}__sens_", asked.simulation);
                match all.iter().filter(|loaded| loaded.id.starts_with(&copies)).count() {
                    0 => Probed::DidNotHappen,
                    copies => Probed::CannotTell {
                        evidence: Text::from(format!(
                            "The bridge has {copies} copies from an analysis; its figures were in the lost answer."
                        )),
                    },
                }
            }
            Err(error) => cannot_read_back(&error),
        }
    }

    fn report(&self, record: &ActionRecord, reply: Reply) -> Reply {
        match &record.outcome {
            Some(Outcome::Done { result, .. }) => answers::sensitivity_report(reply, result),
            _ => reply,
        }
    }
}
