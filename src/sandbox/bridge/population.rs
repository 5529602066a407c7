//! Results of population runs: aggregates over all subjects, and the curves in chunks.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    engine::{self, Draw, Parameters},
    moment::Moment,
    world::Population,
};

/// The maximum number of subjects in a chunk.
const CHUNK_SIZE: usize = 20;

/// A subject with its curve.
struct Subject {
    number: usize,
    time: Vec<f64>,
    concentration: Vec<f64>,
}

/// Returns the results of [`super::Backend::Memory`], which has no model: straight lines.
pub(crate) fn of_memory(results: &str, arguments: &Value, now: Moment) -> Population {
    let size = size(arguments);
    let line = |number: usize| {
        let time = [0.0, 4.0, 12.0, 24.0];
        let slope = [0.0, 6.0, 18.0, 36.0];
        let concentration = slope.iter().map(|value| value * number as f64 / 100.0).collect();
        Subject { number, time: time.to_vec(), concentration }
    };
    let subjects: Vec<Subject> = (1..=size.min(CHUNK_SIZE)).map(line).collect();
    let count = size as f64;
    let aggregates = json!({
        "meanCmax": 1.0 + 0.01 * count, "sdCmax": 0.001 * count, "meanAUC": 5.0 + 0.02 * count,
    });
    assembled(results, arguments, aggregates, &subjects, None, now)
}

/// Runs the model for every subject.
pub(crate) fn of_model(results: &str, arguments: &Value, parameters: &Parameters, now: Moment) -> Population {
    let mut draw = Draw::new(arguments["cohort"]["seed"].as_u64().unwrap_or(1));
    let (mut peaks, mut areas) = (Vec::new(), Vec::new());
    let mut end = 0.0;
    let subjects: Vec<Subject> = (1..=size(arguments))
        .map(|number| {
            let series = engine::run(&engine::subject(parameters, &mut draw));
            let figures = engine::figures(&series.points);
            peaks.push(figures.cmax);
            areas.push(figures.auc);
            // A quarter of the points is enough to plot a subject.
            let (time, concentration): (Vec<f64>, Vec<f64>) = series.points.into_iter().step_by(4).unzip();
            end = time.last().copied().unwrap_or_default();
            Subject { number, time, concentration }
        })
        .collect();
    let (mean_peak, deviation_peak) = spread(&peaks);
    let (mean_area, deviation_area) = spread(&areas);
    let aggregates = json!({
        "meanCmax": mean_peak, "sdCmax": deviation_peak, "p05Cmax": quantile(&peaks, 0.05),
        "medianCmax": quantile(&peaks, 0.5), "p95Cmax": quantile(&peaks, 0.95), "meanAUC": mean_area,
        "sdAUC": deviation_area,
    });
    assembled(results, arguments, aggregates, &subjects, Some([0.0, end]), now)
}

fn size(arguments: &Value) -> usize {
    arguments["cohort"]["size"].as_u64().and_then(|size| usize::try_from(size).ok()).unwrap_or(1)
}

/// Returns the mean and the deviation of a sample.
fn spread(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let above: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (above / (count - 1.0).max(1.0)).sqrt())
}

/// Returns a quantile of a sample. `part` is from 0 to 1.
fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (part * (sorted.len().saturating_sub(1)) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or_default()
}

fn assembled(
    results: &str,
    arguments: &Value,
    aggregates: Value,
    subjects: &[Subject],
    time_range: Option<[f64; 2]>,
    now: Moment,
) -> Population {
    let (cohort, outputs) = (&arguments["cohort"], &arguments["outputs"]);
    let size = size(arguments);
    let mut chunks = HashMap::new();
    let mut listed = Vec::new();
    for (at, part) in subjects.chunks(CHUNK_SIZE).enumerate() {
        let id = format!("{results}-chunk-{}", at + 1);
        let series: Vec<Value> = part
            .iter()
            .map(|one| json!({ "subjectId": one.number, "time": one.time, "concentration": one.concentration }))
            .collect();
        let whole = json!({ "resultsId": results, "chunkId": id, "series": series, "totalSubjects": size });
        let numbers: Vec<usize> = part.iter().map(|one| one.number).collect();
        listed.push(json!({
            "chunkId": id, "uri": format!("/population_results/{results}/chunks/{id}"),
            "contentType": "application/json", "sizeBytes": whole.to_string().len(),
            "subjectRange": [numbers.first(), numbers.last()], "timeRange": time_range,
            "preview": {
                "subjects": numbers.iter().take(5).collect::<Vec<_>>(), "time": part[0].time,
                "concentration": part[0].concentration,
            },
        }));
        chunks.insert(id, whole);
    }
    let list = |value: &Value| if value.is_array() { value.clone() } else { json!([]) };
    let mut metadata = json!({
        "outputs": { "time_series": list(&outputs["timeSeries"]), "aggregates": list(&outputs["aggregates"]) },
    });
    for (name, value) in arguments["metadata"].as_object().into_iter().flatten() {
        metadata[name] = value.clone();
    }
    let shown = json!({
        "resultsId": results, "simulationId": arguments["simulationId"], "generatedAt": now.whole(),
        "cohort": {
            "size": size, "sampling": cohort["sampling"], "seed": cohort["seed"],
            "covariates": list(&cohort["covariates"]),
        },
        "aggregates": aggregates, "chunks": listed, "metadata": metadata,
    });
    Population { shown, chunks }
}
