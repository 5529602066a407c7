//! Sensitivity runs: one simulation for each scenario, all in one call.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    super::{
        Version,
        arguments::text,
        engine,
        failure::Failure,
        models,
        world::{Results, World},
    },
    unknown_simulation,
};

/// The header of the CSV table.
const HEADER: &str = "scenario_id,parameter_path,percent_change,absolute_value,job_status,error,metric,unit,cmax,tmax,\
                       auc,delta_cmax_percent,delta_tmax_percent,delta_auc_percent";

/// A scenario to run.
struct Scenario {
    id: String,
    simulation: String,
    run: String,
    change: Option<(String, f64, f64)>,
}

/// Runs all scenarios. Except for the baseline, each of them loads the model again and changes one
/// parameter.
pub(super) fn run(world: &mut World, arguments: &Value) -> Result<Value, Failure> {
    let id = text(arguments, "simulationId").unwrap_or_default().to_owned();
    let model = text(arguments, "modelPath").unwrap_or_default().to_owned();
    let path = models::resolved(&model);
    if !models::is_file(&path) {
        return Err(Failure::input(format!("Simulation file '{model}' does not exist")).at("modelPath"));
    }
    if world.simulation(&id).is_none() {
        match world.version {
            Version::V01 => world.register(&id, &path),
            Version::V05 => return Err(unknown_simulation(&id).at("simulationId")),
        }
    }
    let scenarios = scenarios(world, &id, arguments)?;
    let mut rows = Vec::new();
    let mut table = vec![HEADER.to_owned()];
    let mut baseline: Vec<Value> = Vec::new();
    for scenario in scenarios {
        if let Some((parameter, _, value)) = &scenario.change {
            world.register(&scenario.simulation, &path);
            let own = world.simulation(&scenario.simulation).expect("it was registered above");
            let unit = own.parameters.get(parameter).map_or_else(|| "unitless".to_owned(), |own| own.unit.clone());
            own.parameters.insert(parameter.clone(), engine::Parameter { value: *value, unit });
        }
        let job = world.done(&scenario.simulation, &scenario.run);
        let record = world.job(&job).expect("it was run above");
        let (status, error) = (record.status.word(), record.error.clone());
        let metrics: Vec<Value> = world.results.get(&scenario.run).map(metrics).unwrap_or_default();
        if scenario.change.is_none() {
            baseline.clone_from(&metrics);
        }
        let deltas: serde_json::Map<String, Value> = metrics
            .iter()
            .map(|metric| {
                let name = metric["parameter"].as_str().unwrap_or_default();
                let before = baseline.iter().find(|own| own["parameter"] == name).unwrap_or(metric);
                let delta = |key: &str| percent(&before[key], &metric[key]);
                (name.to_owned(), json!({ "cmax": delta("cmax"), "tmax": delta("tmax"), "auc": delta("auc") }))
            })
            .collect();
        let (parameter, change, value) = match &scenario.change {
            Some((parameter, change, value)) => (json!(parameter), *change, json!(value)),
            None => (Value::Null, 0.0, Value::Null),
        };
        for metric in &metrics {
            let delta = &deltas[metric["parameter"].as_str().unwrap_or_default()];
            let cells = [
                &json!(scenario.id),
                &parameter,
                &json!(change),
                &value,
                &json!(status),
                &json!(error),
                &metric["parameter"],
                &metric["unit"],
                &metric["cmax"],
                &metric["tmax"],
                &metric["auc"],
                &delta["cmax"],
                &delta["tmax"],
                &delta["auc"],
            ];
            table.push(cells.map(cell).join(","));
        }
        rows.push(json!({
            "scenario_id": scenario.id, "simulation_id": scenario.simulation, "parameter_path": parameter,
            "percent_change": change, "absolute_value": value, "job_id": job, "job_status": status,
            "run_id": scenario.run, "results_id": scenario.run, "error": error, "metrics": metrics,
            "delta_percent": deltas,
        }));
    }
    let failures: Vec<Value> = rows.iter().filter(|row| row["job_status"] != "succeeded").cloned().collect();
    let file = format!("{id}-{}.csv", world.moment().packed_whole());
    let csv = table.iter().map(|line| format!("{line}\r\n")).collect::<String>();
    Ok(json!({
        "report": {
            "simulation_id": id, "model_path": model, "baseline_metrics": baseline, "scenarios": rows,
            "failures": failures,
        },
        "csv": {
            "filename": file, "contentType": "text/csv", "data": STANDARD.encode(csv),
            "path": format!("/data/bridge/reports/sensitivity/{file}"),
        },
    }))
}

/// Returns the scenarios: the baseline, then each change of each parameter.
fn scenarios(world: &mut World, id: &str, arguments: &Value) -> Result<Vec<Scenario>, Failure> {
    let mut found = Vec::new();
    if arguments["includeBaseline"] != false {
        let run = format!("sens-baseline-{id}");
        found.push(Scenario { id: "baseline".to_owned(), simulation: id.to_owned(), run, change: None });
    }
    let mut number = 0;
    for parameter in arguments["parameters"].as_array().into_iter().flatten() {
        let path = text(parameter, "path").unwrap_or_default();
        let live = world.simulation(id).and_then(|own| own.parameters.get(path)).map(|own| own.value);
        let Some(before) = parameter["baselineValue"].as_f64().or(live) else {
            return Err(match world.version {
                Version::V01 => Failure::internal(),
                Version::V05 => Failure::not_found("NotFound: Parameter not found").at("parameters"),
            });
        };
        for delta in parameter["deltas"].as_array().into_iter().flatten().filter_map(Value::as_f64) {
            number += 1;
            let mut value = before * (1.0 + delta);
            if let (Some(least), Some(most)) = (parameter["bounds"][0].as_f64(), parameter["bounds"][1].as_f64()) {
                value = value.max(least).min(most);
            }
            let name = format!("{}_{}", path.replace('|', "_"), (delta * 1000.0).round());
            found.push(Scenario {
                run: format!("sens-{name}"),
                simulation: format!("{id}__sens_{number}"),
                id: name,
                change: Some((path.to_owned(), delta, value)),
            });
        }
    }
    Ok(found)
}

fn metrics(results: &Results) -> Vec<Value> {
    results.series.iter().map(|series| super::results::metric(series, Version::V01)).collect()
}

fn percent(before: &Value, after: &Value) -> f64 {
    let (before, after) = (before.as_f64().unwrap_or_default(), after.as_f64().unwrap_or_default());
    if before == 0.0 { 0.0 } else { (after - before) / before * 100.0 }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
