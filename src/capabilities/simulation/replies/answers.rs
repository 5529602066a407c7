//! The answers of tools.

use countersign_core::{
    clock::Timestamp,
    reply::{Part, Reply, Text},
    units::quantity,
};
use serde_json::Value;

use super::{figures, lasting, refusals};
use crate::{
    actions::{compare, sensitivity},
    bridge::{
        data::{Loaded, Metric, Parameter, Snapshot},
        job::{Job, JobStatus},
    },
    curve::Curve,
    under_way::UnderWay,
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
    let copies = answer["copies"].as_u64().unwrap_or_default();
    if all.is_empty() {
        return Reply::text("No simulation is loaded.")
            .hint("Load one, for example “load /data/models/demo.pkml as renal-study”.")
            .choice("Show model files", "show model files");
    }
    let line = |loaded: &Loaded| match &loaded.file {
        Some(file) => Text::new().bold(&loaded.id).plain(", from ").code(file),
        None => Text::new().bold(&loaded.id),
    };
    let count = all.len();
    let noun = if count == 1 { "simulation is" } else { "simulations are" };
    let reply =
        Reply::text(format!("{count} {noun} loaded:")).and(Part::List(all.iter().take(MAX_SHOWN).map(line).collect()));
    match copies {
        0 => reply,
        1 => reply.hint("1 copy from a sensitivity analysis is not listed. The bridge keeps it until it restarts."),
        _ => reply.hint(format!(
            "{copies} copies from sensitivity analyses are not listed. The bridge keeps them until it restarts."
        )),
    }
}

/// Says that the thread uses this simulation from now on.
pub fn used(answer: &Value) -> Reply {
    let simulation = answer["simulation"].as_str().unwrap_or_default();
    Reply::text(Text::from("I'll use ").bold(simulation).plain(" as it is."))
        .hint("“It” means this simulation from now on in this thread.")
}

/// The parameters of a simulation.
pub fn parameters(answer: &Value) -> Reply {
    let paths: Vec<String> = part(&answer["parameters"]);
    let simulation = answer["simulation"].as_str().unwrap_or_default();
    if paths.is_empty() {
        return Reply::text(Text::new().bold(simulation).plain(" has no parameters that match."));
    }
    let values: Vec<Parameter> = part(&answer["values"]);
    let line = |path: &String| {
        let name = Text::new().code(path);
        match values.iter().find(|value| value.path == *path) {
            Some(known) => name.plain(format!(": {}", quantity(known.value, known.unit.as_deref()))),
            None => name,
        }
    };
    let lines = paths.iter().take(MAX_SHOWN).map(line).collect();
    let reply = Reply::text(Text::new().bold(simulation).plain(format!(" has {} parameters:", paths.len())))
        .and(Part::List(lines));
    match paths.len() > MAX_SHOWN {
        true => reply.hint(format!(
            "The first {MAX_SHOWN} are shown. Narrow it down, for example “parameters with liver of {simulation}”."
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

/// The state of a job, or of the work in progress. A job is named by its id only if it was asked for by it.
pub fn job(answer: &Value, now: Timestamp) -> Reply {
    let job = serde_json::from_value::<Job>(answer.clone()).ok();
    if let Ok(work) = serde_json::from_value::<UnderWay>(answer["work"].clone()) {
        return in_progress(&work, job.as_ref(), now);
    }
    if let Some(last) = answer["last"].as_str() {
        let at = Timestamp(answer["at"].as_i64().unwrap_or_default());
        return Reply::text(
            Text::from("No run is in progress. Last: ").bold(last).plain(", started ").moment(at).plain("."),
        );
    }
    let Some(job) = job else { return Reply::text("The job's state can't be read.") };
    let name = match answer["simulation"].as_str() {
        Some(simulation) => Text::from("The last run of ").bold(simulation),
        None => Text::from("Job ").code(&job.id),
    };
    let text = name.plain(match job.status {
        JobStatus::Queued => " is queued at the bridge.".to_owned(),
        JobStatus::Running => {
            let so_far = job.took(now).filter(|took| took.as_secs() < 7 * 86_400);
            format!(" is running{}.", so_far.map(|took| format!(", for {} so far", lasting(took))).unwrap_or_default())
        }
        JobStatus::Succeeded => {
            format!(" succeeded{}.", job.took(now).map(|took| format!(" in {}", lasting(took))).unwrap_or_default())
        }
        JobStatus::Failed => {
            format!(" failed: {}.", job.error.as_deref().unwrap_or("the bridge gave no reason").trim_end_matches('.'))
        }
        JobStatus::Cancelled => " was canceled.".to_owned(),
        JobStatus::Timeout => " took longer than its limit.".to_owned(),
    });
    let reply = Reply::text(text);
    let reply = match (&job.results, job.cancel_requested && !job.status.is_final()) {
        (Some(results), _) => reply.choice("Show its PK figures", format!("show the results of {results}")),
        (None, true) => reply.hint("I asked the bridge to cancel it; it ends after the engine's current step."),
        (None, false) => reply,
    };
    match job.status.is_final() {
        true => reply,
        false => reply.choice("Cancel job", format!("cancel job {}", job.id)),
    }
}

/// Describes work in progress; `job` is the present job of the bridge, if the work has one.
fn in_progress(work: &UnderWay, job: Option<&Job>, now: Timestamp) -> Reply {
    let is_queued = job.is_some_and(|job| job.status == JobStatus::Queued);
    let lasts = match is_queued {
        true => " is queued at the bridge".to_owned(),
        false => format!(" is running, for {} so far", lasting(now.since(work.since))),
    };
    let varied = Text::listed(work.varied.iter().map(|path| Text::new().code(path)), "and");
    let simulation = || Text::new().bold(&work.simulation);
    let reply = match work.action.as_str() {
        compare::NAME => {
            let text = Text::from(format!("The comparison of {} values of ", work.total)).join(varied);
            let text = text.plain(" in ").join(simulation()).plain(lasts);
            let text = text.plain(format!(": {} of {} values are done", work.done, work.total));
            let note = if work.note.is_empty() { String::new() } else { format!(", now {}", work.note) };
            Reply::text(text.plain(note).plain("."))
        }
        sensitivity::NAME => {
            let text = Text::from("The sensitivity analysis of ").join(simulation()).plain(" for ").join(varied);
            Reply::text(text.plain(lasts).plain(". The bridge gives all its figures at the end."))
        }
        _ => {
            let subjects = work.subjects.map(|count| format!(" for {count} virtual subjects")).unwrap_or_default();
            Reply::text(Text::from("The run of ").join(simulation()).plain(subjects).plain(lasts).plain("."))
        }
    };
    match job {
        Some(job) if job.cancel_requested => {
            reply.hint("I asked the bridge to cancel it; it ends after the engine's current step.")
        }
        // A comparison has a job for each of its values.
        Some(job) if work.action != compare::NAME && !job.status.is_final() => {
            reply.choice("Cancel job", format!("cancel job {}", job.id))
        }
        _ => reply.hint("Say “stop” to end it."),
    }
}

/// Says that no job is known.
pub fn no_job() -> Reply {
    Reply::text("No run is in progress, and I have none on record.")
        .hint("Name a job to see its state, such as “status of job ‹id›”.")
}

/// Says that the job does not exist.
pub fn unknown_job(id: &str) -> Reply {
    Reply::text(Text::from("The bridge has no job ").code(id).plain("."))
        .hint("It keeps jobs for about a week. Check the ID on the run's card.")
}

/// Says that there are no results yet; `state` describes the work in progress.
pub fn no_results_yet(state: Reply, earlier: Option<&str>) -> Reply {
    let reply = state.hint("It has no results until it ends.");
    match earlier {
        Some(earlier) => reply.choice("Show earlier results", format!("show the results of {earlier}")),
        None => reply,
    }
}

/// Says that no run with results is known; `compared` is a simulation that has only runs of comparisons.
pub fn no_results(simulation: Option<&str>, compared: Option<&str>) -> Reply {
    match (simulation, compared) {
        (_, Some(compared)) => Reply::text(
            Text::from("I have only a comparison of values of ").bold(compared).plain(", no single run with results."),
        )
        .hint("The figures for each value are in the comparison's thread.")
        .choice("Run simulation", format!("run {compared}")),
        (Some(simulation), None) => {
            Reply::text(Text::from("I have no record of a run of ").bold(simulation).plain(" with results."))
                .choice("Run simulation", format!("run {simulation}"))
        }
        (None, None) => {
            Reply::text("I have no run with results on record. Name the results, such as “show the results of ‹id›”.")
        }
    }
}

/// Names results by their run, or else by their id: “the run of demo, started 10:00 AM”.
fn of_run(answer: &Value) -> Text {
    match (answer["simulation"].as_str(), answer["at"].as_i64()) {
        (Some(simulation), Some(at)) => {
            Text::from("the run of ").bold(simulation).plain(", started ").moment(Timestamp(at))
        }
        _ => Text::new().code(answer["results"].as_str().unwrap_or_default()),
    }
}

/// The requested PK figures.
pub fn metrics(answer: &Value) -> Reply {
    let metrics: Vec<Metric> = part(&answer["metrics"]);
    match metrics.is_empty() {
        true => Reply::text(Text::from("There are no PK figures of ").join(of_run(answer)).plain(".")),
        false => figures::pk(Reply::text(Text::from("PK figures of ").join(of_run(answer)).plain(":")), &metrics),
    }
}

/// The requested figures and curves.
pub fn results(answer: &Value) -> Reply {
    let curves: Vec<Curve> = part(&answer["curves"]);
    let number = if curves.len() == 1 { "1 curve".to_owned() } else { format!("{} curves", curves.len()) };
    let reply = Reply::text(Text::from("Results of ").join(of_run(answer)).plain(format!(": {number}.")));
    let metrics: Vec<Metric> = part(&answer["metrics"]);
    let reply = figures::pk(reply, &metrics);
    let of = answer["simulation"].as_str().or(answer["results"].as_str()).unwrap_or_default();
    figures::with_curves(reply, &format!("Concentration in {of}"), &curves)
}

/// The requested results of a population run.
pub fn population(answer: &Value) -> Reply {
    let results = answer["results"].as_str().unwrap_or_default();
    figures::population_report(
        Reply::text(Text::from("Population results ").code(results).plain(":")),
        &answer["population"],
    )
}

/// The snapshots of a simulation.
pub fn snapshots(answer: &Value) -> Reply {
    let all: Vec<Snapshot> = part(&answer["snapshots"]);
    let taken_here: Vec<String> = part(&answer["taken_here"]);
    let simulation = answer["simulation"].as_str().unwrap_or_default();
    if all.is_empty() {
        return Reply::text(Text::from("There is no snapshot of ").bold(simulation).plain("."))
            .choice("Take snapshot", format!("take a snapshot of {simulation}"));
    }
    let line = |snapshot: &Snapshot| {
        let taken = snapshot.taken_at.as_deref().map(|at| format!(", taken {at}")).unwrap_or_default();
        let here = if taken_here.contains(&snapshot.id) { ", by someone here" } else { "" };
        Text::new().code(&snapshot.id).plain(taken).plain(here)
    };
    let restore = if taken_here.is_empty() { "Restore newest snapshot" } else { "Restore last snapshot" };
    Reply::text(Text::from("Snapshots of ").bold(simulation).plain(", newest first:"))
        .and(Part::List(all.iter().take(10).map(line).collect()))
        .choice(restore, format!("restore {simulation}"))
}

/// The model files that the bridge can load.
pub fn models(answer: &Value) -> Reply {
    let files: Vec<String> = part(&answer["models"]);
    let load = |file: &str| format!("load {file}");
    if let Some(search) = answer["search"].as_str().filter(|_| !files.is_empty()) {
        let found: Vec<String> = part(&answer["found"]);
        return match found.as_slice() {
            [] => refusals::no_model(search, &files, load),
            [one] => {
                let reply = Reply::text(Text::from("Yes: ").code(one).plain("."));
                refusals::load_buttons(reply, &found, load)
            }
            several => refusals::several_models(search, several, load),
        };
    }
    match files.is_empty() {
        true => Reply::text("The bridge has no model files."),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn work_in_progress_is_named_and_lasts() {
        let now = Timestamp(60_000);
        let work = |action: &str| UnderWay {
            action: action.to_owned(),
            simulation: "demo".to_owned(),
            varied: vec!["Dose".to_owned(), "Organism|Weight".to_owned()],
            since: Timestamp(18_000),
            total: 1,
            ..UnderWay::default()
        };
        let said = |answer: Value| job(&answer, now).words();
        assert!(
            said(json!({ "work": work(sensitivity::NAME) })).starts_with(
                "The sensitivity analysis of demo for Dose and Organism|Weight is running, for 42 s so far."
            )
        );
        let sweep = UnderWay {
            varied: vec!["Dose".to_owned()],
            done: 1,
            total: 3,
            note: "at 200 mg".to_owned(),
            ..work(compare::NAME)
        };
        assert!(said(json!({ "work": sweep })).starts_with(
            "The comparison of 3 values of Dose in demo is running, for 42 s so far: 1 of 3 values are done, now at 200 mg."
        ));
        let last = json!({ "last": "Run “demo”", "at": now, "simulation": "demo" });
        assert!(said(last).starts_with("No run is in progress. Last: Run “demo”, started "));
    }

    #[test]
    fn results_are_named_by_their_run_unless_they_were_asked_for_by_their_id() {
        let metric = json!({ "output": "Plasma", "cmax": 1.5 });
        let curve = json!({ "name": "Plasma", "points": [[0.0, 0.0], [1.0, 1.5]] });
        let of_run =
            json!({ "results": "run-1", "simulation": "demo", "at": 0, "metrics": [metric], "curves": [curve] });
        let by_id = json!({ "results": "run-1", "metrics": [metric], "curves": [] });
        assert!(metrics(&of_run).words().starts_with("PK figures of the run of demo, started "));
        assert!(metrics(&by_id).words().starts_with("PK figures of run-1:"));
        assert!(results(&of_run).words().contains(": 1 curve."));
        assert!(results(&by_id).words().starts_with("Results of run-1: 0 curves."));
    }
}
