//! The tools, one function each, for routes, `call_tool` and MCP.
//!
//! A tool works on the world and returns its answer or an error. The role, the confirmation and the
//! schema of the arguments are checked before.

mod models;
mod parameters;
mod results;
mod review;
mod runs;
mod sensitivity;
pub(crate) mod snapshots;

use serde_json::Value;

pub(crate) use self::{results::route_results, runs::again};
use super::{failure::Failure, world::World};

/// The way in which a tool is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Via {
    /// The tool's own route.
    Route,
    /// `call_tool` or MCP.
    Call,
}

/// The version of the answers of the newer bridge.
pub(crate) const CONTRACT: &str = "pbpk-mcp.v1";

/// Calls a tool.
pub(crate) fn call(world: &mut World, name: &str, arguments: &Value, via: Via) -> Result<Value, Failure> {
    match name {
        "load_simulation" => models::load(world, arguments),
        "discover_models" => models::discover(world, arguments),
        "validate_model_manifest" => models::manifest(arguments),
        "list_parameters" => parameters::list(world, arguments),
        "get_parameter_value" => parameters::get(world, arguments),
        "set_parameter_value" => parameters::set(world, arguments),
        "run_simulation" => runs::run(world, arguments, via),
        "run_population_simulation" => runs::population(world, arguments, via),
        "get_job_status" => runs::status(world, arguments, via),
        "cancel_job" => runs::cancel(world, arguments),
        "get_results" => results::get(world, arguments),
        "calculate_pk_parameters" => results::figures(world, arguments),
        "get_population_results" => results::population(world, arguments),
        "run_sensitivity_analysis" => sensitivity::run(world, arguments),
        "run_parameter_consistency_check" => review::consistency(world, arguments),
        "validate_simulation_request" => review::request(world, arguments),
        "run_verification_checks" => review::verification(world, arguments),
        "export_oecd_report" => review::report(world, arguments),
        "ingest_external_pbpk_bundle" => Ok(review::bundle(arguments)),
        _ => Err(Failure::not_found(format!("Tool '{name}' is not registered")).at("tool")),
    }
}

/// Returns the error for a simulation that is not loaded.
pub(crate) fn unknown_simulation(id: &str) -> Failure {
    Failure::not_found(format!("Simulation '{id}' not found"))
}
