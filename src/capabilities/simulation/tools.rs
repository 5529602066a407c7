//! The tools, which only read.

use std::sync::Arc;

use countersign_capabilities::{
    Tool, ToolError, ToolInfo,
    parameters::non_blank,
    rows::{Call, Read},
};
use countersign_core::reply::Reply;
use countersign_graph::action::{ActionRecord, ErrorKind, Reader};
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Deps,
    actions::{
        compare, load,
        running::{self, RunProgress},
        sensitivity,
    },
    bridge::{
        client::Version,
        data::{Parameter, without_copies},
        error::Error,
    },
    comparing, curve,
    find::{self, Target},
    memory::Started,
    populations,
    replies::{answers, comparisons, refusals},
    snapshots,
    under_way::{self, UnderWay},
};

/// The maximum number of paths in an answer.
const MAX_PATHS: usize = 200;

/// The maximum number of parameters whose values are read together.
const MAX_VALUES: usize = 40;

/// The parameters of the tools; each tool takes some of them.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Given {
    #[serde(flatten)]
    target: Target,
    /// The parameter: its path or words for it.
    parameter: Option<String>,
    /// The text that a path of a parameter or the name of a model file must contain, such as `Liver`.
    search: Option<String>,
    /// Asks for the present values as well.
    #[schemars(skip)]
    with_values: Option<String>,
    /// Asks which value of the last comparison has the `highest` or the `lowest` figure.
    #[schemars(skip)]
    best: Option<String>,
    /// The figure for [`Self::best`].
    #[schemars(skip)]
    figure: Option<String>,
    /// The id of a job. Default: the newest.
    job: Option<String>,
    /// The id of results. Default: those of the newest run.
    results: Option<String>,
    /// The earlier run in the person's words: “yesterday's run”, “the previous run”, a date, or the id of a job or of
    /// results.
    with: Option<String>,
}

/// The tool whose answer has the bridge's name and version.
pub const HEALTH: &str = "check_bridge_health";

/// The tool that selects a loaded simulation for the thread.
const USE: &str = "use_simulation";

/// Returns the tools.
pub fn all(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    vec![
        row(
            deps,
            HEALTH,
            "Tells whether the simulation bridge is running, its version and its model engine.",
            &[],
            |deps, _, _| Box::pin(health(deps)),
            |_, _, answer| Some(answers::health(answer)),
        ),
        row(
            deps,
            "list_simulations",
            "Lists the simulations that are loaded on the bridge.",
            &[],
            |deps, _, _| Box::pin(simulations(deps)),
            |_, _, answer| Some(answers::simulations(answer)),
        ),
        row(
            deps,
            USE,
            "Makes a loaded simulation the one that the thread is about, as it is. Use it when someone wants \
             to go on with a simulation that is loaded already.",
            &["simulation"],
            |deps, given, _| Box::pin(use_it(deps, given)),
            |_, _, answer| Some(answers::used(answer)),
        ),
        row(
            deps,
            "list_parameters",
            "Lists the paths of the parameters of a loaded simulation.",
            &["simulation", "search"],
            |deps, given, _| Box::pin(list_parameters(deps, given)),
            |_, _, answer| Some(answers::parameters(answer)),
        ),
        row(
            deps,
            "get_parameter_value",
            "Reads the present value of a parameter, such as the dose or the body weight.",
            &["simulation", "parameter"],
            |deps, given, _| Box::pin(value(deps, given)),
            |_, _, answer| Some(answers::value(answer)),
        ),
        row(
            deps,
            "get_job_status",
            "Reads the state of a job (a run): queued, running, succeeded, failed, canceled, timed out.",
            &["job", "simulation"],
            |deps, given, _| Box::pin(job(deps, given)),
            |deps, _, answer| Some(answers::job(answer, deps.client.clock().now())),
        ),
        row(
            deps,
            "calculate_pk_parameters",
            "Reads the PK figures (cmax, tmax, auc) of the results of a run.",
            &["results", "simulation"],
            |deps, given, reader| Box::pin(metrics(deps, given, reader)),
            |_, _, answer| comparisons::extreme(answer).or_else(|| Some(answers::metrics(answer))),
        ),
        row(
            deps,
            "get_results",
            "Reads the PK figures and the concentration–time curves of the results of a run, as a chart.",
            &["results", "simulation"],
            |deps, given, reader| Box::pin(results(deps, given, reader)),
            |_, _, answer| Some(answers::results(answer)),
        ),
        row(
            deps,
            "compare_runs",
            "Compares the newest run of a simulation with an earlier run of it, such as yesterday's or the \
             previous one: both PK figures, and the changes in percent.",
            &["simulation", "with"],
            |deps, given, _| Box::pin(compare_runs(deps, given)),
            |_, _, answer| Some(comparisons::of_runs(answer)),
        ),
        row(
            deps,
            "get_population_results",
            "Reads the aggregated figures of the results of a population run.",
            &["results"],
            |deps, given, reader| Box::pin(population(deps, given, reader)),
            |_, _, answer| Some(answers::population(answer)),
        ),
        row(
            deps,
            "list_snapshots",
            "Lists the snapshots of a simulation, to which it can be restored.",
            &["simulation"],
            |deps, given, _| Box::pin(snapshots(deps, given)),
            |_, _, answer| Some(answers::snapshots(answer)),
        ),
        row(
            deps,
            "discover_models",
            "Lists the model files that the bridge can load.",
            &["search"],
            |deps, given, _| Box::pin(models(deps, given)),
            |_, _, answer| Some(answers::models(answer)),
        ),
    ]
}

/// Returns a tool that takes some of the parameters.
fn row(
    deps: &Deps,
    name: &'static str,
    description: &'static str,
    takes: &'static [&'static str],
    call: Call<Deps, Given>,
    present: fn(&Deps, &Value, &Value) -> Option<Reply>,
) -> Arc<dyn Tool> {
    let info = ToolInfo { settles: (name == USE).then_some(load::NAME), ..ToolInfo::new(name, description) };
    let subject = |_: &Value, answer: &Value| answer["simulation"].as_str().map(str::to_owned);
    Arc::new(Read { takes: Some(takes), present, subject, ..Read::new(deps.clone(), info, call) })
}

/// Returns a reply instead of an answer.
pub(super) fn instead(kind: ErrorKind, reply: Reply) -> ToolError {
    ToolError { kind, reply, transient: false }
}

/// Returns the name of the loaded simulation that is meant; `says` is the beginning of the request.
async fn loaded(deps: &Deps, asked: &Given, says: &str) -> Result<String, ToolError> {
    Ok(find::simulation(deps, &asked.target, |name| format!("{says} {name}")).await?.id)
}

async fn health(deps: &Deps) -> Result<Value, ToolError> {
    let health = deps.client.health().await?;
    let engine = deps.client.engine().await.ok().flatten();
    Ok(json!({ "name": health.name, "version": health.version, "engine": engine }))
}

async fn simulations(deps: &Deps) -> Result<Value, ToolError> {
    let (mut all, copies) = without_copies(deps.client.simulations_and_copies().await?);
    for loaded in all.iter_mut().filter(|loaded| loaded.file.is_none()) {
        if deps.memory.file(&loaded.id).is_none() {
            deps.memory.recall(&loaded.id).await;
        }
        loaded.file = loaded.file.take().or_else(|| deps.memory.file(&loaded.id));
    }
    Ok(json!({ "simulations": all, "copies": copies }))
}

async fn use_it(deps: &Deps, asked: Given) -> Result<Value, ToolError> {
    let simulation = loaded(deps, &asked, "use").await?;
    Ok(json!({ "simulation": simulation }))
}

async fn list_parameters(deps: &Deps, asked: Given) -> Result<Value, ToolError> {
    let simulation = loaded(deps, &asked, "list the parameters of").await?;
    let mut paths =
        deps.client.parameters(&simulation).await.map_err(|error| find::not_read(deps, &simulation, error))?;
    // The search is done here because the engines interpret patterns differently.
    if let Some(search) = non_blank(asked.search.as_ref()) {
        let wanted = search.to_lowercase().replace('*', "");
        paths.retain(|path| path.to_lowercase().contains(wanted.trim()));
    }
    paths.truncate(MAX_PATHS);
    if asked.with_values.is_none() {
        return Ok(json!({ "simulation": simulation, "parameters": paths }));
    }
    let read = paths.iter().take(MAX_VALUES).map(|path| deps.client.parameter(&simulation, path));
    let values: Vec<Parameter> = join_all(read).await.into_iter().flatten().collect();
    Ok(json!({ "simulation": simulation, "parameters": paths, "values": values }))
}

async fn value(deps: &Deps, asked: Given) -> Result<Value, ToolError> {
    let simulation = loaded(deps, &asked, "show the value in").await?;
    let Some(parameter) = non_blank(asked.parameter.as_ref()) else {
        let reply = Reply::text("Which parameter? Name it, such as “what is the dose?”.");
        return Err(instead(ErrorKind::UserInput, reply));
    };
    let says = |path: &str| format!("what is {path} in {simulation}?");
    let path = find::parameter(deps, &simulation, parameter, says).await?;
    let found = find::value(deps, &simulation, &path).await?;
    Ok(match found {
        Some(found) => json!({ "simulation": simulation, "path": path, "value": found.value, "unit": found.unit }),
        None => json!({ "simulation": simulation, "path": path, "value": null }),
    })
}

/// Returns true if the simulation is the one that was named, or none was.
fn is_of(asked: &Given, simulation: &str) -> bool {
    asked.target.name().is_none_or(|asked| asked.eq_ignore_ascii_case(simulation))
}

async fn job(deps: &Deps, asked: Given) -> Result<Value, ToolError> {
    let Some(id) = non_blank(asked.job.as_ref()).map(str::to_owned) else { return newest_job(deps, &asked).await };
    match deps.client.job(&id).await {
        Ok(job) => Ok(json!(job)),
        Err(Error::NotFound { .. }) => Err(instead(ErrorKind::NotFound, answers::unknown_job(&id))),
        Err(error) => Err(error.into()),
    }
}

/// Returns the state of the work in progress, otherwise that of the newest run, otherwise the last work on record.
async fn newest_job(deps: &Deps, asked: &Given) -> Result<Value, ToolError> {
    let simulation = asked.target.name();
    if let Some(record) = under_way::newest(deps, simulation).await {
        return Ok(state_of(deps, &record).await);
    }
    let newest = deps.memory.runs().into_iter().find(|run| is_of(asked, &run.simulation));
    let last = under_way::last(deps, simulation).await;
    // An analysis has no job of its own.
    let is_newer = |last: &ActionRecord| newest.as_ref().is_none_or(|run| last.intent_at > Some(run.at));
    if let Some(last) = last.filter(|last| newest.is_none() || (last.name == sensitivity::NAME && is_newer(last))) {
        let at = last.intent_at.unwrap_or(last.requested_at);
        return Ok(json!({ "simulation": last.parameters["simulation"], "last": last.act(), "at": at }));
    }
    let none = || instead(ErrorKind::NotFound, answers::no_job());
    let run = newest.ok_or_else(none)?;
    match deps.client.job(&run.job).await {
        Ok(job) => {
            let mut answer = json!(job);
            answer["simulation"] = json!(run.simulation);
            Ok(answer)
        }
        Err(Error::NotFound { .. }) => Err(none()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the state of work in progress.
async fn state_of(deps: &Deps, record: &ActionRecord) -> Value {
    let mut answer = match running::progress_of::<RunProgress>(record).job {
        Some(job) => deps.client.job(&job).await.map_or_else(|_| json!({}), |job| json!(job)),
        None => json!({}),
    };
    let work = UnderWay::of(record);
    answer["simulation"] = json!(work.simulation);
    answer["work"] = json!(work);
    answer
}

/// Results that were asked for.
struct Found {
    id: String,
    /// Their run, if they were not asked for by their id.
    run: Option<Started>,
}

impl Found {
    /// Returns the beginning of an answer: the results, and which run they are of.
    fn answer(&self) -> Value {
        let mut answer = json!({ "results": self.id });
        if let Some(run) = &self.run {
            answer["simulation"] = json!(run.simulation);
            answer["at"] = json!(run.at);
        }
        answer
    }
}

/// Returns the results with the given id, otherwise those of the newest run of the simulation that is named. Runs of this
/// thread come before others. A run of a comparison is not taken: its figures mean nothing without its value.
///
/// # Errors
///
/// A reply that work of this thread, or on the named simulation, is in progress, or that there are no results.
async fn find_results(deps: &Deps, asked: &Given, reader: Option<&Reader>) -> Result<Found, ToolError> {
    if let Some(id) = non_blank(asked.results.as_ref()) {
        return Ok(Found { id: id.to_owned(), run: None });
    }
    let simulation = asked.target.name();
    let runs = deps.memory.runs().into_iter().filter(|run| is_of(asked, &run.simulation) && run.results.is_some());
    let (steps, runs): (Vec<Started>, Vec<Started>) = runs.partition(|run| run.is_step);
    let thread = reader.and_then(|reader| reader.thread.as_ref());
    let is_here = |run: &&Started| thread == Some(&run.thread);
    let newest = runs.iter().find(is_here).or(runs.first());
    let none = |reply: Reply| instead(ErrorKind::NotFound, reply);
    let in_progress = under_way::newest(deps, simulation).await;
    let concerns = |record: &ActionRecord| simulation.is_some() || thread == Some(&record.thread);
    if let Some(record) = in_progress.filter(concerns) {
        let state = answers::job(&state_of(deps, &record).await, deps.client.clock().now());
        return Err(none(answers::no_results_yet(state, newest.and_then(|run| run.results.as_deref()))));
    }
    match newest.and_then(|run| Some((run.results.clone()?, run))) {
        Some((id, run)) => Ok(Found { id, run: Some(run.clone()) }),
        None => Err(none(answers::no_results(simulation, steps.first().map(|step| step.simulation.as_str())))),
    }
}

async fn metrics(deps: &Deps, asked: Given, reader: Option<&Reader>) -> Result<Value, ToolError> {
    if let Some(which) = &asked.best {
        let figure = non_blank(asked.figure.as_ref()).unwrap_or("cmax");
        let thread = reader.and_then(|reader| reader.thread.as_ref());
        let running = under_way::newest(deps, asked.target.name()).await;
        if let Some(record) = running.filter(|record| record.name == compare::NAME) {
            let state = answers::job(&state_of(deps, &record).await, deps.client.clock().now());
            return Err(instead(ErrorKind::NotFound, answers::no_results_yet(state, None)));
        }
        let compared =
            comparing::Extreme { is_lowest: which == "lowest", figure, of: non_blank(asked.parameter.as_ref()) };
        return comparing::extreme(deps, &asked.target, &compared, thread).await;
    }
    let found = find_results(deps, &asked, reader).await?;
    let mut answer = found.answer();
    answer["metrics"] = json!(deps.client.metrics(&found.id).await?);
    Ok(answer)
}

async fn results(deps: &Deps, asked: Given, reader: Option<&Reader>) -> Result<Value, ToolError> {
    let found = find_results(deps, &asked, reader).await?;
    let series = deps.client.results(&found.id).await?;
    let mut answer = found.answer();
    answer["metrics"] = json!(deps.client.metrics(&found.id).await.unwrap_or_default());
    answer["curves"] = json!(curve::thinned(&series));
    Ok(answer)
}

async fn compare_runs(deps: &Deps, asked: Given) -> Result<Value, ToolError> {
    let words = non_blank(asked.with.as_ref()).unwrap_or("the previous run");
    comparing::with_earlier(deps, &asked.target, words).await
}

async fn population(deps: &Deps, asked: Given, reader: Option<&Reader>) -> Result<Value, ToolError> {
    let found = find_results(deps, &asked, reader).await?;
    let mut answer = found.answer();
    answer["population"] = json!(populations::read(deps, &found.id).await?);
    Ok(answer)
}

async fn snapshots(deps: &Deps, asked: Given) -> Result<Value, ToolError> {
    let simulation = loaded(deps, &asked, "list the snapshots of").await?;
    let snapshots =
        deps.client.snapshots(&simulation).await.map_err(|error| find::not_read(deps, &simulation, error))?;
    let taken_here: Vec<_> = snapshots::taken_here(deps, &simulation).await.into_iter().map(|taken| taken.id).collect();
    Ok(json!({ "simulation": simulation, "snapshots": snapshots, "taken_here": taken_here }))
}

async fn models(deps: &Deps, asked: Given) -> Result<Value, ToolError> {
    if deps.client.version().await? == Version::V01 {
        return Err(instead(ErrorKind::UserInput, refusals::no_discovery(deps)));
    }
    let mut models = deps.client.models().await?;
    let search = non_blank(asked.search.as_ref());
    let found = search.map(|search| find::models_named(&models, search));
    models.truncate(MAX_PATHS);
    Ok(json!({ "models": models, "search": search, "found": found }))
}
