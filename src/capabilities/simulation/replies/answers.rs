//! The answers of tools, and the additions to outcomes: tables and charts.

use countersign_core::{
    clock::Timestamp,
    reply::{Attachment, Part, Reply, Text},
};
use serde_json::Value;

use super::lasting;
use crate::{
    actions::compare::{Comparison, Point},
    bridge::{
        data::{Loaded, Metric, Population, Scenario, Snapshot},
        job::{Job, JobStatus},
    },
    chart::{self, Bar},
    curve::Curve,
    units::{figure, quantity},
};

/// The maximum number of entries of a list that are shown.
const MAX_SHOWN: usize = 40;

/// Reads a part of an answer; empty if it has another form.
pub fn part<T: serde::de::DeserializeOwned + Default>(answer: &Value) -> T {
    serde_json::from_value(answer.clone()).unwrap_or_default()
}

/// The bridge's report of itself.
pub fn health(answer: &Value) -> Reply {
    let of = |key: &str| answer[key].as_str().unwrap_or("unknown").to_owned();
    Reply::text(format!("The simulation bridge is running: {} {}.", of("name"), of("version")))
        .hint(format!("Model engine: {}", of("engine")))
}

/// The loaded simulations.
pub fn simulations(answer: &Value) -> Reply {
    let all: Vec<Loaded> = part(&answer["simulations"]);
    if all.is_empty() {
        return Reply::text("No simulation is loaded.")
            .hint("Load one, for example “load /data/models/demo.pkml as renal-study”.");
    }
    let line = |loaded: &Loaded| match &loaded.file {
        Some(file) => Text::new().bold(&loaded.id).plain(", from ").code(file),
        None => Text::new().bold(&loaded.id),
    };
    let count = all.len();
    let noun = if count == 1 { "simulation is" } else { "simulations are" };
    Reply::text(format!("{count} {noun} loaded:")).and(Part::List(all.iter().take(MAX_SHOWN).map(line).collect()))
}

/// The parameters of a simulation.
pub fn parameters(answer: &Value) -> Reply {
    let paths: Vec<String> = part(&answer["parameters"]);
    let simulation = answer["simulation"].as_str().unwrap_or_default();
    if paths.is_empty() {
        return Reply::text(Text::new().bold(simulation).plain(" has no parameters that match."));
    }
    let lines = paths.iter().take(MAX_SHOWN).map(|path| Text::new().code(path)).collect();
    let reply = Reply::text(Text::new().bold(simulation).plain(format!(" has {} parameters:", paths.len())))
        .and(Part::List(lines));
    match paths.len() > MAX_SHOWN {
        true => reply.hint(format!(
            "The first {MAX_SHOWN} are shown. Ask for some of them, such as “parameters with liver of {simulation}”."
        )),
        false => reply,
    }
}

/// The value of a parameter.
pub fn value(answer: &Value) -> Reply {
    let path = answer["path"].as_str().unwrap_or_default();
    let simulation = answer["simulation"].as_str().unwrap_or_default();
    let text = Text::new().code(path).plain(" in ").bold(simulation);
    match answer["value"].as_f64() {
        Some(value) => Reply::text(text.plain(format!(" is {}.", quantity(value, answer["unit"].as_str())))),
        None => Reply::text(text.plain(" has no value.")),
    }
}

/// The state of a job.
pub fn job(answer: &Value, now: Timestamp) -> Reply {
    let Ok(job) = serde_json::from_value::<Job>(answer.clone()) else {
        return Reply::text("The job's state can't be read.");
    };
    let text = Text::from("Job ").code(&job.id).plain(match job.status {
        JobStatus::Queued => " is queued: it waits for the bridge.".to_owned(),
        JobStatus::Running => {
            let so_far = job.took(now).filter(|took| took.as_secs() < 7 * 86_400);
            format!(" is running{}.", so_far.map(|took| format!(", for {} so far", lasting(took))).unwrap_or_default())
        }
        JobStatus::Succeeded => {
            format!(" succeeded{}.", job.took(now).map(|took| format!(" in {}", lasting(took))).unwrap_or_default())
        }
        JobStatus::Failed => {
            format!(" failed: {}.", job.error.as_deref().unwrap_or("the bridge gives no reason").trim_end_matches('.'))
        }
        JobStatus::Cancelled => " was canceled.".to_owned(),
        JobStatus::Timeout => " took longer than its limit.".to_owned(),
    });
    let reply = Reply::text(text);
    let reply = match (&job.results, job.cancel_requested && !job.status.is_final()) {
        (Some(results), _) => reply.choice("Show its PK figures", format!("show the results of {results}")),
        (None, true) => reply.hint("Its cancellation was requested; it ends after the engine's present step."),
        (None, false) => reply,
    };
    match job.status.is_final() {
        true => reply,
        false => reply.choice("Cancel it", format!("cancel job {}", job.id)),
    }
}

/// Says that this process has not started a job.
pub fn no_job() -> Reply {
    Reply::text("I haven't started a run since I last started. Name the job, such as “status of job ‹id›”.")
}

/// Says that the job does not exist.
pub fn unknown_job(id: &str) -> Reply {
    Reply::text(Text::from("The bridge knows no job ").code(id).plain("."))
        .hint("It keeps jobs for about a week. Check the id on the card of the run.")
}

/// The PK figures as a table.
fn table(metrics: &[Metric]) -> Part {
    let cell = |value: Option<f64>, unit: Option<String>| {
        Text::from(value.map_or("–".to_owned(), |value| figure(value, unit.as_deref())))
    };
    let row = |metric: &Metric| {
        let unit = metric.unit.clone();
        vec![
            Text::from(metric.output.as_str()),
            cell(metric.cmax, unit.clone()),
            cell(metric.tmax, Some("h".to_owned())),
            cell(metric.auc, unit.map(|unit| auc_unit(&unit))),
        ]
    };
    let columns = ["Output", "Cmax", "Tmax", "AUC"].map(str::to_owned).into();
    Part::Table { columns, rows: metrics.iter().take(20).map(row).collect() }
}

/// Returns the unit of the area under a curve whose values have this unit.
pub fn auc_unit(unit: &str) -> String {
    match unit.split_once('/') {
        Some((above, below)) => format!("{above}·h/{below}"),
        None => format!("{unit}·h"),
    }
}

/// The requested PK figures.
pub fn metrics(answer: &Value) -> Reply {
    let metrics: Vec<Metric> = part(&answer["metrics"]);
    let results = answer["results"].as_str().unwrap_or_default();
    match metrics.is_empty() {
        true => Reply::text(Text::from("The results ").code(results).plain(" have no PK figures.")),
        false => Reply::text(Text::from("PK figures of ").code(results).plain(":")).and(table(&metrics)),
    }
}

/// The requested figures and curves.
pub fn results(answer: &Value) -> Reply {
    let curves: Vec<Curve> = part(&answer["curves"]);
    let results = answer["results"].as_str().unwrap_or_default();
    let reply = Reply::text(Text::from("Results ").code(results).plain(format!(" have {} curves.", curves.len())));
    let metrics: Vec<Metric> = part(&answer["metrics"]);
    let reply = if metrics.is_empty() { reply } else { reply.and(table(&metrics)) };
    with_curves(reply, &format!("Concentration in {results}"), &curves)
}

/// Adds a chart of curves, unless it cannot be drawn.
fn with_curves(reply: Reply, title: &str, curves: &[Curve]) -> Reply {
    picture(reply, "concentration-time.png", title, chart::curves(title, curves))
}

fn picture(reply: Reply, name: &str, title: &str, drawn: anyhow::Result<Vec<u8>>) -> Reply {
    match drawn {
        Ok(bytes) => reply.file(Attachment { name: name.to_owned(), title: title.to_owned(), bytes }),
        Err(error) => {
            tracing::debug!(%error, "Cannot draw a chart");
            reply
        }
    }
}

/// Adds the figures of a run to its outcome.
pub fn run_report(reply: Reply, result: &Value) -> Reply {
    let metrics: Vec<Metric> = part(&result["figures"]["metrics"]);
    let curves: Vec<Curve> = part(&result["figures"]["curves"]);
    let reply = if metrics.is_empty() { reply } else { reply.and(table(&metrics)) };
    let simulation = result["simulation"].as_str().unwrap_or_default();
    with_curves(reply, &format!("Concentration over time in {simulation}"), &curves)
}

/// The figures of a population run.
pub fn population_report(reply: Reply, population: &Value) -> Reply {
    let Ok(found) = serde_json::from_value::<Population>(population.clone()) else { return reply };
    let label = |name: &str| {
        const KINDS: &[(&str, &str)] = &[
            ("mean", "Mean"),
            ("median", "Median"),
            ("sd", "SD of"),
            ("p05", "5th percentile of"),
            ("p95", "95th percentile of"),
        ];
        let kind = KINDS.iter().find_map(|(short, words)| Some(format!("{words} {}", name.strip_prefix(short)?)));
        kind.unwrap_or_else(|| name.to_owned())
    };
    let figures = found.aggregates.iter().map(|(name, value)| (label(name), Text::from(figure(*value, None))));
    let subjects = found.size.map(|size| ("Subjects".to_owned(), Text::from(size.to_string())));
    reply.and(Part::Facts(subjects.into_iter().chain(figures).take(20).collect()))
}

/// The requested results of a population run.
pub fn population(answer: &Value) -> Reply {
    let results = answer["results"].as_str().unwrap_or_default();
    population_report(Reply::text(Text::from("Population results ").code(results).plain(":")), &answer["population"])
}

/// The figures of a sensitivity analysis.
pub fn sensitivity_report(reply: Reply, result: &Value) -> Reply {
    let scenarios: Vec<Scenario> = part(&result["scenarios"]);
    let of = |scenario: &Scenario, figure: &str| match scenario.deltas.get(figure) {
        Some(delta) if scenario.succeeded => Text::from(format!("{delta:+.1}%")),
        _ => Text::from("–"),
    };
    let varied = || scenarios.iter().filter(|scenario| scenario.path.is_some());
    let rows: Vec<Vec<Text>> = varied()
        .take(24)
        .map(|scenario| {
            let path = scenario.path.clone().unwrap_or_default();
            vec![
                Text::from(path),
                Text::from(format!("{:+}%", (scenario.change * 1000.0).round() / 10.0)),
                of(scenario, "cmax"),
                of(scenario, "auc"),
            ]
        })
        .collect();
    if rows.is_empty() {
        return reply;
    }
    let columns = ["Parameter", "Change", "Cmax", "AUC"].map(str::to_owned).into();
    let mut bars: Vec<Bar> = Vec::new();
    for scenario in varied().filter(|scenario| scenario.succeeded) {
        let (Some(path), Some(delta)) = (&scenario.path, scenario.deltas.get("cmax")) else { continue };
        if !bars.iter().any(|bar| bar.name == *path) {
            bars.push(Bar { name: path.clone(), down: 0.0, up: 0.0 });
        }
        if let Some(bar) = bars.iter_mut().find(|bar| bar.name == *path) {
            if scenario.change < 0.0 { bar.down = *delta } else { bar.up = *delta }
        }
    }
    let percent = varied().map(|scenario| scenario.change.abs() * 100.0).fold(0.0, f64::max);
    let title = format!("Sensitivity of Cmax in {}", result["simulation"].as_str().unwrap_or_default());
    let drawn = chart::tornado(&title, "Cmax", percent, &bars);
    picture(reply.and(Part::Table { columns, rows }), "sensitivity.png", &title, drawn)
}

/// The figures of a comparison.
pub fn comparison_report(reply: Reply, comparison: &Comparison, points: &[Point]) -> Reply {
    if points.is_empty() {
        return reply;
    }
    let unit = comparison.unit.as_deref();
    let name = |point: &Point| quantity(point.value, unit);
    let row = |point: &Point| {
        let cell = |read: fn(&Metric) -> Option<f64>, unit: fn(&Metric) -> Option<String>| {
            let metric = point.metric.as_ref();
            let value = metric.and_then(|metric| Some(figure(read(metric)?, unit(metric).as_deref())));
            Text::from(value.unwrap_or_else(|| "–".to_owned()))
        };
        vec![
            Text::from(name(point)),
            cell(|metric| metric.cmax, |metric| metric.unit.clone()),
            cell(|metric| metric.tmax, |_| Some("h".to_owned())),
            cell(|metric| metric.auc, |metric| metric.unit.as_deref().map(auc_unit)),
        ]
    };
    let columns = [comparison.parameter.as_str(), "Cmax", "Tmax", "AUC"].map(str::to_owned).into();
    let reply = reply.and(Part::Table { columns, rows: points.iter().map(row).collect() });
    let problems =
        points.iter().filter_map(|point| Some(Text::from(format!("At {}: {}", name(point), point.problem.as_ref()?))));
    let problems: Vec<Text> = problems.collect();
    let reply = if problems.is_empty() { reply } else { reply.and(Part::List(problems)) };
    let curves = points.iter().filter_map(|point| Some(Curve { name: name(point), ..point.curve.clone()? }));
    let curves: Vec<Curve> = curves.collect();
    let last = comparison.parameter.rsplit('|').next().unwrap_or_default();
    with_curves(reply, &format!("{} at {} values of {last}", comparison.simulation, points.len()), &curves)
}

/// The snapshots of a simulation.
pub fn snapshots(answer: &Value) -> Reply {
    let all: Vec<Snapshot> = part(&answer["snapshots"]);
    let simulation = answer["simulation"].as_str().unwrap_or_default();
    if all.is_empty() {
        return Reply::text(Text::from("There is no snapshot of ").bold(simulation).plain("."))
            .choice("Take one", format!("take a snapshot of {simulation}"));
    }
    let line = |snapshot: &Snapshot| {
        let taken = snapshot.taken_at.as_deref().map(|at| format!(", taken {at}")).unwrap_or_default();
        Text::new().code(&snapshot.id).plain(taken)
    };
    Reply::text(Text::from("Snapshots of ").bold(simulation).plain(", newest first:"))
        .and(Part::List(all.iter().take(10).map(line).collect()))
        .choice("Restore the newest", format!("restore {simulation}"))
}

/// The model files that the bridge can load.
pub fn models(answer: &Value) -> Reply {
    let files: Vec<String> = part(&answer["models"]);
    match files.is_empty() {
        true => Reply::text("The bridge finds no model files."),
        false => {
            let lines = files.iter().take(MAX_SHOWN).map(|file| Text::new().code(file)).collect();
            let reply = Reply::text("Model files that the bridge can load:").and(Part::List(lines));
            files.iter().take(3).fold(reply, |reply, file| {
                let short = file.rsplit('/').next().unwrap_or(file);
                reply.choice(format!("Load {short}"), format!("load {file}"))
            })
        }
    }
}
