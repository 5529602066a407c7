//! `set_parameter_value`: sets a parameter of a loaded simulation to an absolute value in its own unit.

use async_trait::async_trait;
use countersign_capabilities::parameters::{missing, non_blank, parameters, refused, schema};
use countersign_core::{
    reply::{Card, Fact, Text},
    units::quantity,
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Probed, Proposal, Reader,
    Recovery, Refusal, Scope, Undo,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{after_error, approved, cannot_read_back, fact, in_flight, stored, unread};
use crate::{
    Deps,
    bridge::{
        client::Version,
        data::{Governance, Parameter},
        error::Error,
    },
    busy,
    find::{self, Asked},
    memory::parameter_target,
    ranges,
    replies::refusals,
    wanted::{self, Wanted},
};

/// The name of the action.
pub const NAME: &str = "set_parameter_value";

/// The maximum number of organ volumes that are read for a card.
const MAX_ORGANS: usize = 20;

/// The action `set_parameter_value`.
#[derive(Debug)]
pub struct SetParameter(pub Deps);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    /// The simulation, by name. Optional if only one is loaded.
    #[serde(default)]
    simulation: Option<String>,
    /// The simulation mentioned before, if none is named.
    #[serde(default)]
    active: Option<String>,
    /// The parameter: its path, such as `Organism|Liver|Volume`, or words for it, such as “liver volume”. Required.
    #[serde(default)]
    parameter: Option<String>,
    /// The new value as the person wrote it: a number with its unit (`2.5 kg`), or a change of the current value (`+10%`,
    /// `twice`, `half`, `half of the liver clearance`, `default`). Required; never computed beforehand.
    #[serde(default, deserialize_with = "wanted::words")]
    #[schemars(with = "Option<String>")]
    value: Option<String>,
    /// The unit, if it is not part of the value.
    #[serde(default)]
    unit: Option<String>,
    /// The direction in which the value is to change, if only that was said: `up` or `down`.
    #[serde(default)]
    direction: Option<String>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
struct Set {
    simulation: String,
    parameter: String,
    value: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
}

impl Set {
    fn wanted(&self) -> Parameter {
        Parameter { path: self.parameter.clone(), value: self.value, unit: self.unit.clone() }
    }
}

fn state(found: Option<&Parameter>) -> Value {
    found.map_or(Value::Null, |found| json!({ "value": found.value, "unit": found.unit }))
}

/// Returns true if two values are equal apart from rounding noise.
pub fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

#[async_trait]
impl ActionKind for SetParameter {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(NAME, {
            "Sets a parameter of a loaded simulation, such as a dose, a body weight or an organ volume. Pass the value as it \
         was said, with its unit; percentages, “twice” and “half” are worked out from the present value."
        })
    }

    fn schema(&self) -> Value {
        schema::<Given>()
    }

    async fn prepare(&self, given_parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let deps = &self.0;
        let asked: Given = parameters(given_parameters)?;
        let (parameter, value) = (non_blank(asked.parameter.as_ref()), non_blank(asked.value.as_ref()));
        let joined = value.map(|value| match non_blank(asked.unit.as_ref()) {
            Some(unit) if !value.ends_with(unit) => format!("{value} {unit}"),
            _ => value.to_owned(),
        });
        let words = |simulation: &str, path: &str| match &joined {
            Some(value) => format!("set {path} to {value} in {simulation}"),
            None => format!("set {path} in {simulation}"),
        };
        let says = |simulation: &str| words(simulation, parameter.unwrap_or("Organism|Weight"));
        let loaded = find::simulation(deps, Asked::of(&asked.simulation, &asked.active), says).await?;
        let Some(parameter) = parameter else {
            let question = "Which parameter? Give its path, such as Organism|Weight, or describe it.";
            return Err(Refusal::Missing(vec![missing("parameter", question, Vec::new())]).into());
        };
        busy::no_comparison(deps, &loaded.id).await?;
        let path = find::parameter(deps, &loaded.id, parameter, |path| words(&loaded.id, path)).await?;
        let before = find::value(deps, &loaded.id, &path).await?;
        let Some(value) = joined else {
            let now = before.as_ref().map(|now| format!(" It is {} now.", quantity(now.value, now.unit.as_deref())));
            let question = format!("What should {path} be, with its unit?{}", now.unwrap_or_default());
            return Err(Refusal::Missing(vec![missing("value", question, Vec::new())]).into());
        };
        let says = |value: &str| format!("set {path} to {value} in {}", loaded.id);
        let wanted = wanted::absolute(deps, &loaded.id, &path, before.as_ref(), &value, says).await?;
        if before.as_ref().is_some_and(|before| same(before.value, wanted.value)) {
            let value = quantity(wanted.value, wanted.unit.as_deref());
            return Err(refused(ErrorKind::Validation, refusals::already(&path, &loaded.id, &value)));
        }
        let mut card = card(&loaded.id, &path, before.as_ref(), &wanted);
        if let Some(before) = &before {
            card.warnings.extend(refusals::wrong_direction(asked.direction.as_deref(), before, &wanted));
            card.warnings.extend(refusals::huge_step(before.value, wanted.value));
        }
        self.add_limits(&mut card, &loaded.id, &path, &wanted).await?;
        let mut preconditions = state(before.as_ref());
        busy::warn_of_run(deps, &loaded.id, &mut card, &mut preconditions).await;
        let undo = before.as_ref().map(|before| {
            let back = quantity(before.value, before.unit.as_deref());
            // With all its digits, because a shortened number would be a different value.
            let exact =
                before.unit.as_ref().map_or(before.value.to_string(), |unit| format!("{} {unit}", before.value));
            Undo {
                name: NAME.to_owned(),
                parameters: json!({ "simulation": loaded.id, "parameter": path, "value": exact }),
                label: format!("Set back to {back}"),
            }
        });
        let scope = Scope::of(parameter_target(&loaded.id, &path)).of_subject(&loaded.id);
        let Wanted { value, unit, .. } = wanted;
        Ok(Proposal {
            parameters: json!(Set { simulation: loaded.id, parameter: path, value, unit }),
            preconditions,
            card,
            undo,
            scope,
        })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let set: Set = stored(record)?;
        busy::still_no_comparison(&self.0, &set.simulation, record).await?;
        let mut found = match self.0.client.parameter(&set.simulation, &set.parameter).await {
            Ok(found) => state(Some(&found)),
            Err(error) if error.forgot(&set.simulation) => return Err(unread(&self.0, &set.simulation, &error)),
            Err(Error::NotFound { .. }) => Value::Null,
            Err(error) => return Err(unread(&self.0, &set.simulation, &error)),
        };
        busy::no_new_run(&self.0, &set.simulation, record, &mut found).await?;
        Ok(found)
    }

    fn differences(&self, record: &ActionRecord, found: &Value) -> Vec<Fact> {
        let words = |state: &Value| match state["value"].as_f64() {
            Some(value) => Text::from(quantity(value, state["unit"].as_str())),
            None => Text::from("no value"),
        };
        vec![Fact {
            label: "Current value".to_owned(),
            before: Some(words(&record.preconditions)),
            after: words(found),
        }]
    }

    /// Returns true for another value of the same parameter.
    fn is_new_version(&self, shown: &Value, asked: &Value) -> bool {
        ["simulation", "parameter"].iter().all(|key| shown[key].is_string() && shown[key] == asked[key])
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let (set, confirmed): (Set, _) = match approved(record) {
            Ok(approved) => approved,
            Err(outcome) => return Performed::Ended(outcome),
        };
        if let (Some(value), unit) = (record.preconditions["value"].as_f64(), record.preconditions["unit"].as_str()) {
            let before = Parameter { path: set.parameter.clone(), value, unit: unit.map(str::to_owned) };
            self.0.memory.before_change(&set.simulation, &before);
        }
        match self.0.client.set(&set.simulation, &set.wanted(), &confirmed).await {
            Ok((now, notes)) if same(now.value, set.value) => Performed::Ended(done(record, &set, &notes)),
            Ok((now, _)) => Performed::NoAnswer {
                detail: format!("it answered with a different value: {}", quantity(now.value, now.unit.as_deref())),
            },
            Err(error) => after_error(self, record, &self.0, &set.simulation, error).await,
        }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Probe { in_flight: in_flight(&self.0), repeatable: true }
    }

    async fn probe(&self, record: &ActionRecord) -> Probed {
        let Ok(set) = stored::<Set>(record) else {
            return Probed::CannotTell { evidence: Text::from("The stored request can't be read.") };
        };
        let before = record.preconditions["value"].as_f64();
        match self.0.client.parameter(&set.simulation, &set.parameter).await {
            Ok(now) if same(now.value, set.value) => Probed::Happened(done(record, &set, &Governance::default())),
            Ok(now) if before.is_some_and(|before| same(now.value, before)) => Probed::DidNotHappen,
            Ok(now) => {
                let now = quantity(now.value, now.unit.as_deref());
                Probed::Otherwise { evidence: Text::new().code(&set.parameter).plain(format!(" is {now} now.")) }
            }
            Err(error) if error.forgot(&set.simulation) => Probed::CannotTell {
                evidence: Text::from("The bridge was restarted and no longer has the simulation."),
            },
            Err(Error::NotFound { .. }) if before.is_none() => Probed::DidNotHappen,
            Err(error) => cannot_read_back(&error),
        }
    }
}

impl SetParameter {
    /// Adds the allowed range to the card, and the consequences of a new body weight.
    async fn add_limits(
        &self,
        card: &mut Card,
        simulation: &str,
        path: &str,
        wanted: &Wanted,
    ) -> Result<(), PrepareError> {
        let client = &self.0.client;
        if client.version().await.map_err(|error| find::unavailable(&error))? == Version::V01 {
            card.notes.push(Text::from("This version of the bridge doesn't check ranges."));
            return Ok(());
        }
        let unit = wanted.unit.as_deref();
        if let Some(range) = find::allowed(&self.0, simulation, path, &[wanted.value], unit).await? {
            card.facts.push(fact("Allowed", range.words()));
        }
        if path == ranges::BODY_WEIGHT {
            let paths = client.parameters(simulation).await.unwrap_or_default();
            let organs = paths.iter().filter(|path| ranges::is_organ_volume(path)).take(MAX_ORGANS);
            let read = organs.map(|path| client.parameter(simulation, path));
            let organs: Vec<Parameter> = futures_util::future::join_all(read).await.into_iter().flatten().collect();
            let volume = ranges::organ_volume(&organs);
            if !organs.is_empty() {
                card.facts.push(fact("Total organ volume", quantity(volume, Some("L"))));
            }
            if volume > wanted.value {
                card.warnings.push(Text::from(
                    "The organs would be larger than the body. The bridge accepts this weight, but then refuses every \
                     further change until a snapshot is restored.",
                ));
            } else {
                card.notes.push(Text::from(
                    "The bridge scales the allowed ranges of organ volumes and flows with the body weight.",
                ));
            }
        }
        Ok(())
    }
}

fn done(record: &ActionRecord, set: &Set, notes: &Governance) -> Outcome {
    let mut summary = Text::from(record.card.done.as_str());
    for alert in notes.alerts.iter().take(3) {
        summary = summary.plain(format!(" The bridge warns: {}.", alert.trim_end_matches('.')));
    }
    let result = json!({
        "simulation": set.simulation, "parameter": set.parameter, "value": set.value, "unit": set.unit,
        "snapshot": notes.snapshot,
    });
    Outcome::Done { result, summary }
}

fn card(simulation: &str, path: &str, before: Option<&Parameter>, wanted: &Wanted) -> Card {
    let after = quantity(wanted.value, wanted.unit.as_deref());
    let change = Fact {
        label: "Value".to_owned(),
        before: Some(before.map_or("not set".to_owned(), |now| quantity(now.value, now.unit.as_deref())).into()),
        after: after.clone().into(),
    };
    let mut facts =
        vec![fact("Simulation", Text::new().bold(simulation)), fact("Parameter", Text::new().code(path)), change];
    if let Some(how) = &wanted.how {
        facts.push(fact("Calculation", how.clone()));
    }
    let mut notes = Vec::new();
    if wanted.assumed {
        notes.push(Text::from(match &wanted.unit {
            Some(unit) => format!("No unit was given; the parameter's own is used: {unit}."),
            None => "No unit was given.".to_owned(),
        }));
    }
    let warnings = match wanted.value < 0.0 {
        true => vec![Text::from("This value is negative.")],
        false => Vec::new(),
    };
    Card {
        title: format!("Set {path} to {after} in “{simulation}”?"),
        facts,
        warnings,
        notes,
        approve: "Set value".to_owned(),
        reject: Card::REJECT.to_owned(),
        done: format!("Set {path} to {after} in {simulation}."),
        ..Card::default()
    }
}
