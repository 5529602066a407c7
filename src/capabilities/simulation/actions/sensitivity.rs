//! `run_sensitivity_analysis`: changes parameters one by one and compares the PK figures.
//!
//! The bridge answers only when every scenario is done, and does not recognise a repeated call: without an answer the
//! call is not sent again, and a person decides. The call runs in a task of its own ([`crate::analyses`]), and the
//! thread waits for its end without holding anything.

use std::time::Duration;

use async_trait::async_trait;
use countersign_capabilities::parameters::{missing, non_blank, parameters, refused, schema};
use countersign_core::{
    ids::UserId,
    reply::{Card, Reply, Text},
    units::{number, quantity},
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Awaited, Batch, Batches, ErrorKind, Outcome, Performed, PrepareError, Probed,
    Proposal, Reader, Refusal, Scope, WaitEnd,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{after_error, approved, cannot_read_back, fact, failed, file_of, run, running, stored};
use crate::{
    Deps, SOURCE, analyses,
    bridge::client::{LONG, Sensitivity},
    busy, changes,
    find::{self, Asked},
    memory::sensitivity_target,
    replies::{figures, lasting, outcomes},
};

/// The name of the action.
pub const NAME: &str = "run_sensitivity_analysis";

/// The field of the preconditions with the changes since the model was loaded, which the copies of an analysis lack.
const CHANGED: &str = "changed";

/// The maximum number of parameters in an analysis, which has to end within the time limit of one call.
const MAX_PARAMETERS: usize = 6;
/// The change in percent if none is given.
const DEFAULT_PERCENT: f64 = 10.0;

/// The time for which a batch waits for the end of an analysis before it releases the thread.
const SHORT_WAIT: Duration = Duration::from_millis(400);
/// The time after which the call of an analysis can no longer have a new effect.
const IN_FLIGHT: Duration = Duration::from_secs(LONG.as_secs() + 2);
/// The longest wait for the end. The call has its own time limit, so this only ends the wait for a lost call.
const WITHIN: Duration = Duration::from_secs(LONG.as_secs() + 10);

/// The action `run_sensitivity_analysis`.
#[derive(Clone, Debug)]
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
    fn info(&self) -> ActionInfo {
        ActionInfo::new(
            NAME,
            "Varies parameters of a loaded simulation one by one, up and down by some percent, and compares the PK figures. \
         Only when someone asks for a sensitivity analysis or which parameters matter.",
        )
    }

    fn schema(&self) -> Value {
        schema::<Given>()
    }

    async fn prepare(&self, given_parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let deps = &self.0;
        let asked: Given = parameters(given_parameters)?;
        let listed = non_blank(asked.parameters.as_ref());
        let says = |simulation: &str| match listed {
            Some(listed) => format!("sensitivity analysis of {simulation} for {listed}"),
            None => format!("sensitivity analysis of {simulation}"),
        };
        let loaded = find::simulation(deps, Asked::of(&asked.simulation, &asked.active), says).await?;
        busy::no_comparison(deps, &loaded.id).await?;
        let Some(listed) = listed else {
            let question = "Which parameters should vary? Name them, separated by commas.";
            return Err(Refusal::Missing(vec![missing("parameters", question, Vec::new())]).into());
        };
        let listed = listed.replace(" and ", ",");
        let names: Vec<&str> = listed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let percent = asked.percent.unwrap_or(DEFAULT_PERCENT);
        let wrong = |text: String| Err(refused(ErrorKind::Validation, Reply::text(text)));
        if names.is_empty() || names.len() > MAX_PARAMETERS {
            return wrong(format!("An analysis varies 1 to {MAX_PARAMETERS} parameters."));
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
            let question =
                format!("Which model file was {} loaded from? The bridge needs it for this analysis.", loaded.id);
            return Err(Refusal::Missing(vec![missing("file", question, Vec::new())]).into());
        };
        let runs = 1 + 3 * varied.len();
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
        let mut warnings = Vec::new();
        let changed = changes::since_loading(deps, &loaded.id).await;
        if !changed.is_empty() {
            warnings.push(
                Text::from("The bridge makes the copies from the model file, without these changes: ")
                    .join(changes::listed(&changed))
                    .plain(". Each copy has the values of the file, except for the parameter that it varies."),
            );
        }
        if let Some(took) = deps.memory.last_took(&loaded.id) {
            let expected = took * u32::try_from(runs).unwrap_or(1);
            facts.push(fact("Expected", format!("about {}, based on its last run", lasting(expected))));
            if expected > LONG {
                let limit = lasting(LONG);
                warnings.push(Text::from(format!(
                    "I'll wait {limit} for the bridge's answer. If the analysis takes longer, its figures are lost."
                )));
            }
        }
        let card = Card {
            title: format!("Run a sensitivity analysis of “{}”?", loaded.id),
            facts,
            warnings,
            notes: vec![
                Text::from(
                    "For each parameter, a copy with its current value is compared with one above and one below.",
                ),
                Text::from(format!("The bridge keeps the {} copies until it restarts; I don't list them.", runs - 1)),
            ],
            approve: "Run analysis".to_owned(),
            reject: Card::REJECT.to_owned(),
            done: format!("Analyzed the sensitivity of {}.", loaded.id),
            ..Card::default()
        };
        let mut preconditions = run::loaded_state(&loaded);
        preconditions[CHANGED] = json!(changed);
        let scope = Scope::of(sensitivity_target(&loaded.id)).of_subject(&loaded.id);
        let changes = vec![0.0, -percent / 100.0, percent / 100.0];
        let analysis = Sensitivity { simulation: loaded.id, file, parameters: varied, changes };
        Ok(Proposal { parameters: json!(analysis), preconditions, card, undo: None, scope })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let asked: Sensitivity = stored(record)?;
        busy::still_no_comparison(&self.0, &asked.simulation, record).await?;
        let mut state = run::still_loaded(&self.0, &asked.simulation).await?;
        if !record.preconditions[CHANGED].is_null() {
            state[CHANGED] = json!(changes::since_loading(&self.0, &asked.simulation).await);
        }
        Ok(state)
    }

    fn batches(&self) -> Option<&dyn Batches> {
        Some(self)
    }

    async fn probe(&self, record: &ActionRecord) -> Probed {
        let Ok(asked) = stored::<Sensitivity>(record) else {
            return Probed::CannotTell { evidence: Text::from("The stored request can't be read.") };
        };
        match self.0.client.simulations_and_copies().await {
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
            Some(Outcome::Done { result, .. }) => figures::sensitivity_report(reply, result),
            _ => reply,
        }
    }
}

#[async_trait]
impl Batches for RunSensitivity {
    async fn next(&self, record: &ActionRecord, interrupted: bool) -> Batch {
        let analyses = &self.0.analyses;
        let end = record.waits.as_ref().and_then(|wait| wait.end.as_ref());
        if let Some(WaitEnd::Arrived(body)) = end
            && let Ok(outcome) = serde_json::from_value(body.clone())
        {
            analyses.forget(&record.id);
            return Batch::Ended(outcome);
        }
        if !analyses.has(&record.id) {
            if interrupted || record.progress.is_some() {
                return Batch::Ended(self.lost(record).await);
            }
            let (this, of) = (self.clone(), record.clone());
            analyses.begin(&record.id, async move { this.call(&of).await });
        }
        if let Some(outcome) = analyses.ended_within(&record.id, SHORT_WAIT).await {
            analyses.forget(&record.id);
            return Batch::Ended(outcome);
        }
        let now = self.0.client.clock().now();
        let note = Text::from("Running at the bridge since ").moment(now).plain(". I'm waiting for it to end.");
        let progress = running::progress(json!({}), 0, 1, note);
        Batch::Waits(progress, Awaited { source: SOURCE.to_owned(), key: analyses::key(&record.id), within: WITHIN })
    }

    fn in_flight(&self) -> Duration {
        IN_FLIGHT
    }

    fn longest(&self) -> Duration {
        WITHIN + IN_FLIGHT
    }

    fn stopped(&self, record: &ActionRecord, by: Option<&UserId>) -> Outcome {
        self.0.analyses.forget(&record.id);
        let simulation = record.parameters["simulation"].as_str().unwrap_or_default();
        Outcome::Done {
            result: json!({ "simulation": simulation, "stopped": true }),
            summary: outcomes::analysis_stopped(simulation, record.progress.is_some(), by),
        }
    }
}

impl RunSensitivity {
    /// Makes the call and waits for its answer.
    async fn call(&self, record: &ActionRecord) -> Outcome {
        let (asked, confirmed): (Sensitivity, _) = match approved(record) {
            Ok(approved) => approved,
            Err(outcome) => return outcome,
        };
        match self.0.client.sensitivity(&asked, &confirmed).await {
            Ok(scenarios) => {
                let changed = &record.preconditions[CHANGED];
                let result = json!({ "simulation": asked.simulation, "scenarios": scenarios, "changed": changed });
                Outcome::Done { result, summary: Text::from(record.card.done.as_str()) }
            }
            Err(error) => match after_error(self, record, &self.0, &asked.simulation, error).await {
                Performed::Ended(outcome) => outcome,
                Performed::NoAnswer { detail } => {
                    tracing::warn!(action.id = %record.id, detail, "The bridge did not answer the call of an analysis");
                    self.lost(record).await
                }
            },
        }
    }

    /// Returns the outcome of an analysis whose answer is lost, based on a probe of the bridge.
    async fn lost(&self, record: &ActionRecord) -> Outcome {
        match self.probe(record).await {
            Probed::DidNotHappen => failed(ErrorKind::Network, outcomes::analysis_not_begun()),
            Probed::CannotTell { evidence } | Probed::Otherwise { evidence } | Probed::Unfinished { evidence } => {
                Outcome::Unknown { summary: outcomes::analysis_lost(evidence) }
            }
            Probed::Happened(outcome) => outcome,
        }
    }
}
