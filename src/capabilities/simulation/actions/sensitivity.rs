//! `run_sensitivity_analysis`: changes parameters one by one and compares the PK figures.
//!
//! The bridge answers only when every scenario is done, and does not recognise a repeated call: without an answer the
//! call is not sent again, and a person decides. The call runs in a task of its own ([`crate::analyses`]), and the
//! thread waits for its end without holding anything.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_capabilities::{
    parameters::{incomplete, non_blank, refused},
    rows::{Change, Settle},
};
use countersign_core::{
    ids::UserId,
    reply::{Card, Fact, Reply, Text},
    units::{number, quantity},
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Awaited, Batch, Batches, ErrorKind, Outcome, Performed, PrepareError, Probed,
    Proposal, WaitEnd,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    after_error, approved, cannot_read_back, failed, free, model_file, proposal, running, simulation_of, still_free,
    with_figures,
};
use crate::{
    Deps, SOURCE, analyses,
    bridge::client::{LONG, Sensitivity},
    changes,
    find::{self, Target},
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

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    #[serde(flatten)]
    target: Target,
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

/// Returns the action `run_sensitivity_analysis`.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        NAME,
        "Varies parameters of a loaded simulation one by one, up and down by some percent, and compares the PK figures. \
         Only when someone asks for a sensitivity analysis or which parameters matter.",
    );
    Arc::new(Change::<Analysis, Given, Sensitivity> {
        now: |row, _, record| Box::pin(now(&row.deps.0, record)),
        settle: Settle::AskAfter(|row, _, record| Box::pin(probe(&row.deps.0, record))),
        report: |_, record, reply| with_figures(record, reply, figures::sensitivity_report),
        ..Change::in_batches(
            Analysis(deps),
            info,
            |row, asked, _| Box::pin(prepare(&row.deps.0, asked)),
            |row| &row.deps,
        )
    })
}

async fn prepare(deps: &Deps, asked: Given) -> Result<Proposal, PrepareError> {
    let listed = non_blank(asked.parameters.as_ref());
    let says = |simulation: &str| match listed {
        Some(listed) => format!("sensitivity analysis of {simulation} for {listed}"),
        None => format!("sensitivity analysis of {simulation}"),
    };
    let loaded = free(deps, &asked.target, says).await?;
    let Some(listed) = listed else {
        let question = "Which parameters should vary? Name them, separated by commas.";
        return Err(incomplete("parameters", question, Vec::new()));
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
    let file = model_file(deps, asked.file.as_ref(), &loaded, "analysis")?;
    let runs = 1 + 3 * varied.len();
    let mut facts =
        vec![Fact::new("Simulation", Text::new().bold(&loaded.id)), Fact::new("Model file", Text::new().code(&file))];
    let percentage = number(percent);
    facts.extend(varied.iter().map(|found| {
        let ends = [1.0 - percent / 100.0, 1.0 + percent / 100.0].map(|by| quantity(found.value * by, None));
        let unit = found.unit.as_ref().map(|unit| format!(" {unit}")).unwrap_or_default();
        Fact::new(
            &found.path,
            format!("{} ± {percentage}%: {} and {}{unit}", quantity(found.value, None), ends[0], ends[1]),
        )
    }));
    facts.push(Fact::new("Runs", format!("{runs}, in copies; {} itself stays as it is", loaded.id)));
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
        facts.push(Fact::new("Expected", format!("about {}, based on its last run", lasting(expected))));
        if expected > LONG {
            let limit = lasting(LONG);
            warnings.push(Text::from(format!(
                "I'll wait {limit} for the bridge's answer. If the analysis takes longer, its figures are lost."
            )));
        }
    }
    let card = Card {
        facts,
        warnings,
        notes: vec![
            Text::from("For each parameter, a copy with its current value is compared with one above and one below."),
            Text::from(format!("The bridge keeps the {} copies until it restarts; I don't list them.", runs - 1)),
        ],
        ..Card::new(
            format!("Run a sensitivity analysis of “{}”?", loaded.id),
            "Run analysis",
            format!("Analyzed the sensitivity of {}.", loaded.id),
        )
    };
    let changes = vec![0.0, -percent / 100.0, percent / 100.0];
    let analysis = Sensitivity { simulation: loaded.id.clone(), file, parameters: varied, changes };
    let mut proposal = proposal(&loaded, sensitivity_target(&loaded.id), analysis, card);
    proposal.preconditions[CHANGED] = json!(changed);
    Ok(proposal)
}

async fn now(deps: &Deps, record: &ActionRecord) -> Result<Value, Outcome> {
    let mut state = still_free(deps, record).await?;
    if !record.preconditions[CHANGED].is_null() {
        state[CHANGED] = json!(changes::since_loading(deps, simulation_of(record)).await);
    }
    Ok(state)
}

/// The call of an analysis, in this process.
struct Analysis(Deps);

#[async_trait]
impl Batches for Analysis {
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
                return Batch::Ended(lost(&self.0, record).await);
            }
            let (deps, of) = (self.0.clone(), record.clone());
            analyses.begin(&record.id, async move { call(&deps, &of).await });
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
        let simulation = simulation_of(record);
        Outcome::Done {
            result: json!({ "simulation": simulation, "stopped": true }),
            summary: outcomes::analysis_stopped(simulation, record.progress.is_some(), by),
        }
    }
}

/// Makes the call and waits for its answer.
async fn call(deps: &Deps, record: &ActionRecord) -> Outcome {
    let (asked, confirmed): (Sensitivity, _) = match approved(record) {
        Ok(approved) => approved,
        Err(outcome) => return outcome,
    };
    match deps.client.sensitivity(&asked, &confirmed).await {
        Ok(scenarios) => {
            let changed = &record.preconditions[CHANGED];
            let result = json!({ "simulation": asked.simulation, "scenarios": scenarios, "changed": changed });
            Outcome::done(record, result)
        }
        Err(error) => match after_error(deps, record, error, probe(deps, record)).await {
            Performed::Ended(outcome) => outcome,
            Performed::NoAnswer { detail } => {
                tracing::warn!(action.id = %record.id, detail, "The bridge did not answer the call of an analysis");
                lost(deps, record).await
            }
        },
    }
}

/// Looks for the copies that an analysis leaves.
async fn probe(deps: &Deps, record: &ActionRecord) -> Probed {
    match deps.client.simulations_and_copies().await {
        Ok(all) => {
            let copies = format!("{}__sens_", simulation_of(record));
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

/// Returns the outcome of an analysis whose answer is lost, based on a probe of the bridge.
async fn lost(deps: &Deps, record: &ActionRecord) -> Outcome {
    match probe(deps, record).await {
        Probed::DidNotHappen => failed(ErrorKind::Network, outcomes::analysis_not_begun()),
        Probed::CannotTell { evidence } | Probed::Otherwise { evidence } | Probed::Unfinished { evidence } => {
            Outcome::Unknown { summary: outcomes::analysis_lost(evidence) }
        }
        Probed::Happened(outcome) => outcome,
    }
}
