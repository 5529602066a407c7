//! Read-only data: capabilities, pages of resources, chunks and the audit trail.

use serde_json::{Value, json};

use super::{
    Backend, Version, catalogue,
    failure::Failure,
    rest::{Answer, Call},
    world::{Simulation, World, digest},
};

/// Returns the capabilities of the bridge.
pub(crate) fn capabilities(world: &World) -> Value {
    let name = if world.backend == Backend::Memory { "inmemory" } else { "subprocess" };
    json!({
        "transports": ["http-streamable"],
        "adapter": {
            "name": name, "populationSupported": true,
            "health": {
                "status": "initialised",
                "environment": {
                    "available": false, "rPath": null, "ospsuiteLibs": null, "rVersion": null,
                    "ospsuiteAvailable": false, "issues": ["R binary not found on PATH or configured via R_PATH/r_path"],
                },
            },
        },
        "maxPayloadKb": 512,
        "timeouts": { "defaultMs": 300_000, "adapterTimeoutMs": 30_000 },
        "annotations": { "service": "mcp-bridge", "environment": "development" },
    })
}

/// Returns the metrics as text.
pub(crate) fn metrics(world: &World) -> String {
    format!(
        "# HELP mcp_http_requests_total Requests.\n# TYPE mcp_http_requests_total counter\n\
         mcp_http_requests_total {}\n# HELP mcp_jobs_total Jobs.\n# TYPE mcp_jobs_total counter\nmcp_jobs_total {}\n",
        world.trail.len(),
        world.jobs.len()
    )
}

/// Returns the tools, in the format of the route.
pub(crate) fn tools(version: Version) -> &'static [Value] {
    catalogue::tools(version)
}

/// A page of a list.
struct Page {
    number: usize,
    limit: usize,
}

impl Page {
    fn of(call: &Call) -> Self {
        let number = |name: &str| call.query(name).and_then(|value| value.parse().ok()).filter(|number| *number > 0);
        Self { number: number("page").unwrap_or(1), limit: number("limit").unwrap_or(100) }
    }

    fn paginate(&self, items: Vec<Value>) -> Value {
        let total = items.len();
        let skipped = (self.number - 1).saturating_mul(self.limit);
        let items: Vec<Value> = items.into_iter().skip(skipped).take(self.limit).collect();
        json!({ "items": items, "page": self.number, "limit": self.limit, "total": total })
    }
}

/// Responds with a page, or with status 304 if the caller already has it.
fn tagged(call: &Call, body: Value, modified: String, more: Vec<(&'static str, String)>) -> Answer {
    let tag = format!("W/\"{}\"", &digest(&body.to_string())[..40]);
    let mut headers = vec![("etag", tag.clone()), ("last-modified", modified)];
    if call.if_none_match.as_deref() == Some(tag.as_str()) {
        return Answer::Json { status: 304, body: None, headers };
    }
    headers.extend(more);
    Answer::Json { status: 200, body: Some(body), headers }
}

/// Returns the engine's metadata about a simulation.
fn metadata(world: &World, simulation: &Simulation) -> Value {
    match world.backend {
        Backend::Memory => json!({}),
        Backend::Recorded | Backend::Demo => json!({ "modelVersion": "12.0", "name": simulation.id }),
    }
}

/// Lists the loaded simulations.
pub(crate) fn simulations(world: &World, call: &Call) -> Answer {
    let mut loaded: Vec<&Simulation> = world.simulations.iter().collect();
    loaded.sort_by(|a, b| a.id.cmp(&b.id));
    let modified = loaded.iter().map(|simulation| simulation.accessed).max().unwrap_or(world.now).whole();
    let items = loaded
        .into_iter()
        .map(|simulation| {
            let metadata = metadata(world, simulation);
            json!({
                "id": simulation.id, "simulationId": simulation.id, "displayName": metadata["name"],
                "modelVersion": metadata["modelVersion"], "createdAt": simulation.created.whole(),
                "lastAccessedAt": simulation.accessed.whole(), "metadata": metadata,
            })
        })
        .collect();
    tagged(call, Page::of(call).paginate(items), modified, Vec::new())
}

/// Lists the parameters of a simulation.
pub(crate) fn parameters(world: &mut World, call: &Call) -> Result<Answer, Failure> {
    let id = call.query("simulationId").unwrap_or_default();
    let items = parameter_rows(world, &id).ok_or_else(|| {
        let hint = "Load the simulation before inspecting parameter resources.";
        Failure::not_found(format!("Simulation '{id}' is not registered")).at("simulationId").hint(hint)
    })?;
    let simulation = world.simulation(&id).expect("it was found above");
    let (created, modified) = (simulation.created.whole(), simulation.accessed.whole());
    let more = vec![("mcp-simulation-created-at", created), ("mcp-simulation-fingerprint", "meta:none".to_owned())];
    Ok(tagged(call, Page::of(call).paginate(items), modified, more))
}

/// Returns the parameters of a simulation in the format of resources.
pub(crate) fn parameter_rows(world: &World, id: &str) -> Option<Vec<Value>> {
    let simulation = world.simulations.iter().find(|simulation| simulation.id == id)?;
    let named = world.backend != Backend::Memory;
    let row = |(path, parameter): (&String, &super::engine::Parameter)| {
        let name = path.rsplit('|').next().filter(|_| named);
        json!({
            "id": format!("{id}:{path}"), "simulationId": id, "path": path, "displayName": name, "unit": parameter.unit,
            "category": null, "isEditable": true,
        })
    };
    Some(simulation.parameters.iter().map(row).collect())
}

/// Returns the loaded simulations in the format of the MCP resource.
pub(crate) fn simulation_rows(world: &World) -> Vec<Value> {
    let row = |simulation: &Simulation| {
        json!({
            "createdAt": simulation.created.whole(), "filePath": simulation.file, "id": simulation.id,
            "lastAccessedAt": simulation.accessed.whole(), "metadata": metadata(world, simulation),
            "simulationId": simulation.id,
        })
    };
    world.simulations.iter().map(row).collect()
}

/// Returns a chunk of a population's curves.
pub(crate) fn chunk(world: &World, results: &str, chunk: &str) -> Result<Answer, Failure> {
    let found = world.populations.get(results).and_then(|population| population.chunks.get(chunk));
    let found = found.ok_or_else(|| {
        Failure::not_found(format!("Chunk '{chunk}' for results '{results}' was not found"))
            .at("chunkId")
            .hint("Ensure the population results are still retained on disk.")
    })?;
    let name = format!("attachment; filename=\"{chunk}.json\"");
    Ok(Answer::Json { status: 200, body: Some(found.clone()), headers: vec![("content-disposition", name)] })
}

/// Returns the audit trail, newest first.
pub(crate) fn audit(world: &World, call: &Call) -> Value {
    let limit = call.query("limit").and_then(|limit| limit.parse().ok()).unwrap_or(100);
    let kind = call.query("eventType");
    let matches = |event: &&Value| kind.as_ref().is_none_or(|kind| event["eventType"] == **kind);
    let events: Vec<&Value> = world.trail.iter().rev().filter(matches).take(limit).collect();
    json!({ "events": events })
}
