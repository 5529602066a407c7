//! Starting runs, reading their status and cancelling them.

use serde_json::{Value, json};

use super::{
    super::{
        Version,
        arguments::text,
        failure::Failure,
        jobs::{Job, Work},
        models,
        world::World,
    },
    CONTRACT, Via, unknown_simulation,
};

/// The maximum number of subjects in a population.
const MAX_COHORT: u64 = 5000;
/// The maximum memory for a population, in MB.
const MAX_MEMORY: u64 = 2048;

/// Starts a run.
pub(super) fn run(world: &mut World, arguments: &Value, via: Via) -> Result<Value, Failure> {
    let id = text(arguments, "simulationId").unwrap_or_default();
    if world.simulation(id).is_none() {
        let hint = "Load the simulation before running it.";
        return Err(unknown_simulation(id).at("simulationId").hint(hint));
    }
    // The route ignores the time limit and retries.
    let own = |name: &str| if via == Via::Call { &arguments[name] } else { &Value::Null };
    let (limit, retries) = (own("timeoutSeconds").as_f64(), own("maxRetries").as_u64());
    let job = world.submit(id, text(arguments, "runId"), Work::Run, limit, retries);
    let job = world.job(&job).expect("it was submitted above");
    Ok(match via {
        Via::Route => json!({
            "jobId": job.id, "queuedAt": job.submitted.iso(), "estimatedDurationSeconds": null, "expiresAt": null,
        }),
        Via::Call => started(job),
    })
}

/// Returns the answer to a started run, and to a repetition of the same call.
fn started(job: &Job) -> Value {
    json!({
        "jobId": job.id, "status": job.status.word(), "queuedAt": job.submitted.epoch(), "attempts": job.attempts,
        "maxRetries": job.max_retries, "timeoutSeconds": job.timeout,
    })
}

/// Returns the answer to a call that was made before with the same key.
pub(crate) fn again(world: &World, id: &str) -> Option<Value> {
    let job = world.job(id)?;
    let mut answer = started(job);
    if matches!(job.work, Work::Population(_)) {
        answer["simulationId"] = json!(job.simulation);
        answer.as_object_mut()?.remove("attempts");
    }
    Some(answer)
}

/// Starts a run of a population.
pub(super) fn population(world: &mut World, arguments: &Value, via: Via) -> Result<Value, Failure> {
    let id = text(arguments, "simulationId").unwrap_or_default();
    let refuse = |message: String| {
        Failure::input(message).at("simulationId").hint("Validate population configuration and model path inputs.")
    };
    if world.version == Version::V05 {
        let size = arguments["cohort"]["size"].as_u64().unwrap_or_default();
        let mut problems = Vec::new();
        if size > MAX_COHORT {
            let advice = "Contact an administrator for large simulations.";
            problems.push(format!("Population size {size} exceeds maximum {MAX_COHORT}. {advice}"));
        }
        let memory = size.saturating_mul(3) / 8 + 150;
        if memory > MAX_MEMORY {
            problems.push(format!(
                "Estimated memory requirement ({memory} MB) exceeds quota ({MAX_MEMORY} MB) for population size {size}."
            ));
        }
        if !problems.is_empty() {
            return Err(refuse(format!("Job validation failed: {}", problems.join("; "))));
        }
    }
    if world.simulation(id).is_none() {
        match text(arguments, "modelPath").map(models::resolved) {
            Some(path) if models::is_file(&path) => world.register(id, &path),
            Some(path) => return Err(refuse(format!("Simulation file '{path}' does not exist"))),
            None => return Err(unknown_simulation(id).at("simulationId")),
        }
    }
    let (limit, retries) = (arguments["timeoutSeconds"].as_f64(), arguments["maxRetries"].as_u64());
    let job = world.submit(id, None, Work::Population(arguments.clone()), limit, retries);
    let job = world.job(&job).expect("it was submitted above");
    let queued = if via == Via::Route { json!(job.submitted.iso()) } else { json!(job.submitted.epoch()) };
    Ok(json!({
        "jobId": job.id, "simulationId": id, "status": job.status.word(), "queuedAt": queued,
        "timeoutSeconds": job.timeout, "maxRetries": job.max_retries,
    }))
}

/// Returns the status of a job.
pub(super) fn status(world: &World, arguments: &Value, via: Via) -> Result<Value, Failure> {
    let id = text(arguments, "jobId").unwrap_or_default();
    let hint = "Verify the job identifier is correct and the job is still retained.";
    let job = world.job(id).ok_or_else(|| Failure::not_found("Job not found").at("jobId").hint(hint))?;
    Ok(match (via, world.version) {
        (Via::Route, _) => job.on_route(),
        (Via::Call, Version::V01) => json!({ "job": job.in_tool() }),
        (Via::Call, Version::V05) => {
            let mut answer = job.in_tool();
            answer["tool"] = json!("get_job_status");
            answer["contractVersion"] = json!(CONTRACT);
            answer["resultHandle"] = json!(job.result_id().map(|id| json!({ "resultsId": id })));
            answer["job"] = job.in_tool();
            answer
        }
    })
}

/// Cancels a job.
pub(super) fn cancel(world: &mut World, arguments: &Value) -> Result<Value, Failure> {
    let id = text(arguments, "jobId").unwrap_or_default();
    match world.cancel(id) {
        Some(status) => Ok(json!({ "jobId": id, "status": status.word() })),
        None => {
            let hint = "Ensure the job is still queued or running before cancelling.";
            Err(Failure::not_found("Job not found or already terminal").at("jobId").hint(hint))
        }
    }
}
