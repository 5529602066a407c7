//! `set_parameter_value`: sets a parameter of a loaded simulation to an absolute value in its own unit.

use std::sync::Arc;

use countersign_capabilities::{
    parameters::{incomplete, non_blank, refused},
    rows::Change,
};
use countersign_core::{
    reply::{Card, Fact, Text},
    units::quantity,
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Probed, Proposal, Scope, Undo,
    difference,
};
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Action, cannot_read_back, read_back, sent, unread, with_warnings};
use crate::{
    Deps,
    bridge::{
        client::Version,
        data::{Governance, Parameter},
        error::Error,
    },
    busy,
    find::{self, Target},
    memory::parameter_target,
    ranges,
    replies::refusals,
    wanted::{self, Wanted},
};

/// The name of the action.
pub const NAME: &str = "set_parameter_value";

/// The maximum number of organ volumes that are read for a card.
const MAX_ORGANS: usize = 20;

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    #[serde(flatten)]
    target: Target,
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

/// Returns the action `set_parameter_value`.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(NAME, {
        "Sets a parameter of a loaded simulation, such as a dose, a body weight or an organ volume. Pass the value as it \
         was said, with its unit; percentages, “twice” and “half” are worked out from the present value."
    });
    Arc::new(Change {
        now: |row, set, record| Box::pin(now(&row.deps, set, record)),
        differences: |record, found| {
            let words = |state: &Value| match state["value"].as_f64() {
                Some(value) => quantity(value, state["unit"].as_str()),
                None => "no value".to_owned(),
            };
            vec![difference("Current value", words(&record.preconditions), words(found))]
        },
        // Another value of the same parameter.
        is_new_version: |shown, asked| {
            ["simulation", "parameter"].iter().all(|key| shown[key].is_string() && shown[key] == asked[key])
        },
        settle: read_back(|row, set, record| Box::pin(probe(&row.deps, set, record))),
        ..Change::new(
            deps,
            info,
            |row, asked, _| Box::pin(prepare(&row.deps, asked)),
            |row, set, record| Box::pin(send(row, set, record)),
        )
    })
}

async fn prepare(deps: &Deps, asked: Given) -> Result<Proposal, PrepareError> {
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
    let loaded = find::simulation(deps, &asked.target, says).await?;
    let Some(parameter) = parameter else {
        let question = "Which parameter? Give its path, such as Organism|Weight, or describe it.";
        return Err(incomplete("parameter", question, Vec::new()));
    };
    busy::no_comparison(deps, &loaded.id).await?;
    let path = find::parameter(deps, &loaded.id, parameter, |path| words(&loaded.id, path)).await?;
    let before = find::value(deps, &loaded.id, &path).await?;
    let Some(value) = joined else {
        let now = before.as_ref().map(|now| format!(" It is {} now.", now.words())).unwrap_or_default();
        return Err(incomplete("value", format!("What should {path} be, with its unit?{now}"), Vec::new()));
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
    add_limits(deps, &mut card, &loaded.id, &path, &wanted).await?;
    let Wanted { value, unit, .. } = wanted;
    let mut proposal = Proposal {
        preconditions: state(before.as_ref()),
        undo: before.as_ref().map(|before| set_back(&loaded.id, before)),
        scope: Scope::of(parameter_target(&loaded.id, &path)).of_subject(&loaded.id),
        ..Proposal::new(Set { simulation: loaded.id.clone(), parameter: path, value, unit }, card)
    };
    busy::warn_of_run(deps, &loaded.id, &mut proposal).await;
    Ok(proposal)
}

/// Returns the change that sets a parameter back to this value.
pub(super) fn set_back(simulation: &str, before: &Parameter) -> Undo {
    let Parameter { path, value, unit } = before;
    // With all its digits, because a shortened number would be a different value.
    let exact = unit.as_ref().map_or(value.to_string(), |unit| format!("{value} {unit}"));
    Undo {
        name: NAME.to_owned(),
        parameters: json!({ "simulation": simulation, "parameter": path, "value": exact }),
        label: format!("Set back to {}", before.words()),
    }
}

async fn now(deps: &Deps, set: Set, record: &ActionRecord) -> Result<Value, Outcome> {
    busy::still_no_comparison(deps, record).await?;
    let mut found = match deps.client.parameter(&set.simulation, &set.parameter).await {
        Ok(found) => state(Some(&found)),
        Err(error @ Error::NotFound { .. }) if !error.forgot(&set.simulation) => Value::Null,
        Err(error) => return Err(unread(deps, record, &error)),
    };
    busy::no_new_run(deps, record, &mut found).await?;
    Ok(found)
}

async fn send(row: &Action<Given, Set>, set: Set, record: &ActionRecord) -> Performed {
    let deps = &row.deps;
    if let (Some(value), unit) = (record.preconditions["value"].as_f64(), record.preconditions["unit"].as_str()) {
        let before = Parameter { path: set.parameter.clone(), value, unit: unit.map(str::to_owned) };
        deps.memory.before_change(&set.simulation, &before);
    }
    let call = |confirmed| async move {
        let (now, notes) = deps.client.set(&set.simulation, &set.wanted(), &confirmed).await?;
        match same(now.value, set.value) {
            true => Ok(done(record, &set, &notes)),
            false => Err(Error::NoAnswer { reason: format!("it answered with a different value: {}", now.words()) }),
        }
    };
    sent(row, record, call).await
}

async fn probe(deps: &Deps, set: Set, record: &ActionRecord) -> Probed {
    let before = record.preconditions["value"].as_f64();
    match deps.client.parameter(&set.simulation, &set.parameter).await {
        Ok(now) if same(now.value, set.value) => Probed::Happened(done(record, &set, &Governance::default())),
        Ok(now) if before.is_some_and(|before| same(now.value, before)) => Probed::DidNotHappen,
        Ok(now) => {
            Probed::Otherwise { evidence: Text::new().code(&set.parameter).plain(format!(" is {} now.", now.words())) }
        }
        Err(error) if error.forgot(&set.simulation) => {
            Probed::CannotTell { evidence: Text::from("The bridge was restarted and no longer has the simulation.") }
        }
        Err(Error::NotFound { .. }) if before.is_none() => Probed::DidNotHappen,
        Err(error) => cannot_read_back(&error),
    }
}

/// Adds the allowed range to the card, and the consequences of a new body weight.
async fn add_limits(
    deps: &Deps,
    card: &mut Card,
    simulation: &str,
    path: &str,
    wanted: &Wanted,
) -> Result<(), PrepareError> {
    let client = &deps.client;
    if client.version().await? == Version::V01 {
        card.notes.push(Text::from("This version of the bridge doesn't check ranges."));
        return Ok(());
    }
    if let Some(range) = find::allowed(deps, simulation, path, &[wanted.value], wanted.unit.as_deref()).await? {
        card.facts.push(Fact::new("Allowed", range.words()));
    }
    if path == ranges::BODY_WEIGHT {
        let paths = client.parameters(simulation).await.unwrap_or_default();
        let organs = paths.iter().filter(|path| ranges::is_organ_volume(path)).take(MAX_ORGANS);
        let read = organs.map(|path| client.parameter(simulation, path));
        let organs: Vec<Parameter> = join_all(read).await.into_iter().flatten().collect();
        let volume = ranges::organ_volume(&organs);
        if !organs.is_empty() {
            card.facts.push(Fact::new("Total organ volume", quantity(volume, Some("L"))));
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

fn done(record: &ActionRecord, set: &Set, notes: &Governance) -> Outcome {
    let result = json!({
        "simulation": set.simulation, "parameter": set.parameter, "value": set.value, "unit": set.unit,
        "snapshot": notes.snapshot,
    });
    let alerts = notes.alerts.iter().take(3).map(String::as_str);
    Outcome::Done { result, summary: with_warnings(Text::from(record.card.done.as_str()), alerts) }
}

fn card(simulation: &str, path: &str, before: Option<&Parameter>, wanted: &Wanted) -> Card {
    let after = quantity(wanted.value, wanted.unit.as_deref());
    let mut facts = vec![
        Fact::new("Simulation", Text::new().bold(simulation)),
        Fact::new("Parameter", Text::new().code(path)),
        Fact::change("Value", before.map_or("not set".to_owned(), Parameter::words), &*after),
    ];
    facts.extend(wanted.how.as_ref().map(|how| Fact::new("Calculation", how.clone())));
    let assumed = wanted.assumed.then(|| match &wanted.unit {
        Some(unit) => format!("No unit was given; the parameter's own is used: {unit}."),
        None => "No unit was given.".to_owned(),
    });
    let negative = (wanted.value < 0.0).then(|| Text::from("This value is negative."));
    Card {
        facts,
        warnings: negative.into_iter().collect(),
        notes: assumed.into_iter().map(Text::from).collect(),
        ..Card::new(
            format!("Set {path} to {after} in “{simulation}”?"),
            "Set value",
            format!("Set {path} to {after} in {simulation}."),
        )
    }
}
