//! Reading and changing parameters.

use serde_json::{Value, json};

use super::{
    super::{
        Backend, Version,
        arguments::{as_number, text, value_error},
        consistency::{self, Proposed},
        engine::Parameter,
        failure::Failure,
        sweeps::{self, Change},
        world::World,
    },
    unknown_simulation,
};

/// The only parameter that was seen to be refused, with its range at a body weight of 70 kg. The bridge has ranges for
/// others too.
const BOUNDED: (&str, f64, f64, &str) = ("Organism|Liver|Volume", 0.6, 3.0, "L");

/// The maximum number of parameters in a list.
const MAX_LISTED: usize = 500;

/// Lists the paths of the parameters that match a pattern.
pub(super) fn list(world: &mut World, arguments: &Value) -> Result<Value, Failure> {
    let id = text(arguments, "simulationId").unwrap_or_default();
    let pattern = text(arguments, "searchPattern").unwrap_or("*");
    if pattern.contains('\n') {
        return Err(value_error("searchPattern", "Invalid search pattern"));
    }
    let plain = world.backend == Backend::Memory;
    let hint = "Load the simulation before listing parameters.";
    let simulation = world.simulation(id).ok_or_else(|| unknown_simulation(id).at("simulationId").hint(hint))?;
    let matches = |path: &&String| match plain {
        true => pattern == "*" || path.contains(pattern),
        false => glob(pattern, path),
    };
    let paths: Vec<&String> = simulation.parameters.keys().filter(matches).take(MAX_LISTED).collect();
    Ok(json!({ "parameters": paths }))
}

/// Returns true if the whole path matches the pattern. `*` matches any text and `?` any character.
fn glob(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<char>, Vec<char>) = (pattern.chars().collect(), path.chars().collect());
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < path.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == path[from] => (at, from) = (at + 1, from + 1),
            _ => {
                let Some((star_at, star_from)) = star else { return false };
                star = Some((star_at, star_from + 1));
                (at, from) = (star_at + 1, star_from + 1);
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

/// Reads a parameter.
pub(super) fn get(world: &mut World, arguments: &Value) -> Result<Value, Failure> {
    let hint = "Confirm the parameter path exists in the loaded simulation.";
    let (id, path) = simulation_and_path(arguments)?;
    let backend = world.backend;
    let simulation = world.simulation(id).ok_or_else(|| unknown_simulation(id).at("parameterPath").hint(hint))?;
    match simulation.parameters.get(path) {
        Some(parameter) => Ok(json!({ "parameter": shown(path, parameter, backend) })),
        None => Err(Failure::not_found(missing(path, backend)).at("parameterPath").hint(hint)),
    }
}

fn simulation_and_path(arguments: &Value) -> Result<(&str, &str), Failure> {
    let path = text(arguments, "parameterPath").unwrap_or_default();
    if path.contains('\n') {
        return Err(value_error("parameterPath", "Invalid parameter path"));
    }
    Ok((text(arguments, "simulationId").unwrap_or_default(), path))
}

fn missing(path: &str, backend: Backend) -> String {
    match backend {
        Backend::Memory => "NotFound: Parameter not found".to_owned(),
        Backend::Recorded | Backend::Demo => {
            format!("NotFound: Parameter not found ({{'parameterPath': '{path}'}})")
        }
    }
}

fn shown(path: &str, parameter: &Parameter, backend: Backend) -> Value {
    let source = match backend {
        Backend::Memory => None,
        Backend::Recorded => Some("stand-in"),
        Backend::Demo => Some("model"),
    };
    json!({
        "path": path, "value": parameter.value, "unit": parameter.unit, "displayName": null, "lastUpdatedAt": null,
        "source": source,
    })
}

/// Refuses a value outside of the recorded range.
fn in_range(path: &str, value: f64) -> Result<(), String> {
    let (bounded, least, most, unit) = BOUNDED;
    if path != bounded || (least..=most).contains(&value) {
        return Ok(());
    }
    let value = json!(value);
    Err(format!(
        "Parameter bounds violation: Value {value} for parameter outside plausible range [{least:.4}, {most:.4}] {unit}"
    ))
}

/// Changes a parameter.
pub(super) fn set(world: &mut World, arguments: &Value) -> Result<Value, Failure> {
    let (id, path) = simulation_and_path(arguments)?;
    let mode = text(arguments, "updateMode").unwrap_or("absolute");
    if !matches!(mode, "absolute" | "relative") {
        return Err(value_error("updateMode", "updateMode must be 'absolute' or 'relative'"));
    }
    let hint = "Load the simulation and ensure the parameter exists before updating.";
    let refuse = |message: String| {
        Failure::input(message).at("parameterPath").hint("Verify the value is numeric and within acceptable bounds.")
    };
    let (backend, newer) = (world.backend, world.version == Version::V05);
    let simulation = world.simulation(id).ok_or_else(|| unknown_simulation(id).at("parameterPath").hint(hint))?;
    let before = simulation.parameters.get(path).cloned();
    let unit = text(arguments, "unit");
    let mut value = as_number(&arguments["value"]).unwrap_or_default();
    if newer {
        if mode == "relative" {
            let gone = || Failure::not_found(missing(path, backend)).at("parameterPath").hint(hint);
            let present = before.as_ref().ok_or_else(gone)?;
            if unit.is_some_and(|unit| unit != present.unit) {
                let message = "Relative parameter update unit must match the current parameter unit";
                return Err(refuse(message.to_owned()));
            }
            value += present.value;
        }
        in_range(path, value).map_err(refuse)?;
        consistency::check(Proposed { path, value, unit }, &simulation.parameters).map_err(refuse)?;
    }
    if backend != Backend::Memory {
        let Some(present) = &before else {
            return Err(Failure::not_found(missing(path, backend)).at("parameterPath").hint(hint));
        };
        if let Some(unit) = unit.filter(|unit| *unit != present.unit) {
            let expected = &present.unit;
            return Err(refuse(format!("InvalidInput: Unit mismatch ({{'expected': '{expected}', 'got': '{unit}'}})")));
        }
        if value < 0.0 && present.unit != "logP" {
            let value = json!(value);
            return Err(refuse(format!("InvalidInput: Value must be positive ({{'value': '{value}'}})")));
        }
    }
    let snapshot = if newer { world.take_snapshot(id).map(|snapshot| snapshot.id) } else { None };
    let kept = before.as_ref().filter(|_| backend != Backend::Memory).map(|present| present.unit.clone());
    let unit = unit.map(str::to_owned).or(kept).unwrap_or_else(|| "unitless".to_owned());
    let parameter = Parameter { value, unit };
    let simulation = world.simulation(id).expect("it was found above");
    simulation.parameters.insert(path.to_owned(), parameter.clone());
    let old = before.map(|before| before.value);
    simulation.changes.push(Change { path: path.to_owned(), old, new: value });
    let mut answer = json!({ "parameter": shown(path, &parameter, backend) });
    if newer {
        answer["governance"] = json!({
            "snapshotId": snapshot, "sweepAlerts": sweeps::sweep_alerts(&simulation.changes),
            "boundsReference": if path == BOUNDED.0 { vec!["ICRP 89"] } else { Vec::new() },
        });
        world.record(json!({
            "eventType": "parameter.changed", "simulationId": id, "parameterPath": path, "oldValue": old,
            "newValue": value, "unit": parameter.unit, "comment": arguments["comment"], "boundsReference": null,
        }));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern, path, fits) in [
            ("*", "Dose", true),
            ("*Weight*", "Organism|Weight", true),
            ("Organism|*|Volume", "Organism|Liver|Volume", true),
            ("Dos?", "Dose", true),
            ("Weight", "Organism|Weight", false),
            ("*x", "Dose", false),
        ] {
            assert_eq!(glob(pattern, path), fits, "{pattern} {path}");
        }
    }
}
