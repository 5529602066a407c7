//! Loading and discovering models.

use serde_json::{Value, json};

use super::{
    super::{
        Backend, Version,
        arguments::text,
        failure::Failure,
        models::{self, ROOT},
        sweeps,
        world::World,
    },
    CONTRACT,
};

/// Loads a model under an id.
pub(super) fn load(world: &mut World, arguments: &Value) -> Result<Value, Failure> {
    let sent = text(arguments, "filePath").unwrap_or_default();
    if sent.trim().is_empty() {
        return Err(Failure::internal());
    }
    let path = models::resolved(sent);
    let id = text(arguments, "simulationId").map_or_else(|| models::stem(&path).to_owned(), str::to_owned);
    admitted(world.version, sent, &path).map_err(|message| refused(world.version, message))?;
    if world.simulations.iter().any(|simulation| simulation.id == id) {
        let hint = "Choose a unique simulationId or omit it to let the server generate one.";
        return Err(Failure::conflict(format!("Simulation '{id}' is already registered"))
            .at("simulationId")
            .hint(hint));
    }
    if world.backend != Backend::Memory
        && let Some(message) = engine_failure(&id)
    {
        return Err(refused(world.version, message.to_owned()));
    }
    world.register(&id, &path);
    let mut metadata = json!({ "name": null, "modelVersion": null, "createdBy": null, "createdAt": null });
    if world.backend != Backend::Memory {
        let title = models::demo(&path).filter(|_| world.backend == Backend::Demo).map(|demo| demo.title);
        metadata["name"] = json!(title.unwrap_or(&id));
        metadata["modelVersion"] = json!("12.0");
    }
    if world.version == Version::V01 {
        return Ok(json!({ "simulationId": id, "metadata": metadata, "warnings": [] }));
    }
    metadata["backend"] = Value::Null;
    Ok(json!({
        "tool": "load_simulation", "contractVersion": CONTRACT, "simulationId": id, "backend": null,
        "metadata": metadata, "capabilities": {}, "profile": {}, "validation": null, "qualificationState": null,
        "warnings": [], "parameterSweepReview": sweeps::sweep_review(&id, &[]),
    }))
}

/// Refuses a path that is not a model in the configured folder.
fn admitted(version: Version, sent: &str, path: &str) -> Result<(), String> {
    let (endings, words): (&[&str], _) = match version {
        Version::V01 => (&[".pkml"], "Only .pkml files are supported"),
        Version::V05 => (&[".pkml", ".pksim5", ".R"], "Only .pkml, .pksim5 and .R files are supported"),
    };
    if !endings.iter().any(|ending| path.ends_with(ending)) {
        return Err(words.to_owned());
    }
    if !models::is_file(path) {
        return Err(format!("Simulation file '{sent}' does not exist"));
    }
    if !path.starts_with(&format!("{ROOT}/")) {
        return Err("Simulation path is outside the allowed directories".to_owned());
    }
    Ok(())
}

/// Returns the error for a failed load. Like the bridge, it has the same status for every failure.
fn refused(version: Version, message: String) -> Failure {
    let (field, hint) = match version {
        _ if message.to_lowercase().contains("simulation") => {
            ("simulationId", "Ensure the simulation is not already loaded and the identifier is unique.")
        }
        Version::V01 => ("filePath", "Provide an absolute .pkml path within MCP_MODEL_SEARCH_PATHS."),
        Version::V05 => ("filePath", "Provide an absolute .pkml or .pksim5 path within ADAPTER_MODEL_PATHS."),
    };
    Failure::input(message).at(field).hint(hint)
}

/// Returns the failure of the engine for the name of a simulation, if it has such a name.
fn engine_failure(id: &str) -> Option<&'static str> {
    let failures = [
        ("env-", "EnvironmentMissing: R environment unavailable ({'issues': 'ospsuite not installed'})"),
        ("gone-", "Timeout: Simulation load exceeded 30 s"),
        ("broken-", "InteropError: ospsuite raised: unexpected end of file"),
        ("crash-", "InteropError: Segmentation fault"),
        (
            "noise-",
            "InteropError: Failed to decode backend response for 'load_simulation': Expecting value: line 1 column 1 \
             (char 0)",
        ),
    ];
    failures.into_iter().find(|(start, _)| id.starts_with(start)).map(|(_, message)| message)
}

/// Lists the models in the configured folder.
pub(super) fn discover(world: &World, arguments: &Value) -> Result<Value, Failure> {
    let search = text(arguments, "search").unwrap_or_default().to_lowercase();
    let loaded_only = arguments["loadedOnly"] == true;
    let page = arguments["page"].as_u64().unwrap_or(1).max(1);
    let limit = arguments["limit"].as_u64().unwrap_or(100);
    let found: Vec<Value> = models::DEMOS
        .iter()
        .map(|demo| {
            let loaded: Vec<&str> = world
                .simulations
                .iter()
                .filter(|simulation| simulation.file == demo.path)
                .map(|simulation| simulation.id.as_str())
                .collect();
            let stem = models::stem(demo.path);
            let relative = demo.path.trim_start_matches(ROOT).trim_start_matches('/');
            json!({
                "id": relative, "modelId": stem, "suggestedSimulationId": stem, "filePath": demo.path,
                "relativePath": relative, "rootPath": ROOT, "backend": "ospsuite", "runtimeFormat": "pkml",
                "displayName": demo.title, "modelVersion": "12.0", "scientificProfile": false, "profileSource": null,
                "manifestStatus": null, "qualificationState": {}, "curationSummary": {},
                "populationSimulation": world.backend == Backend::Demo, "validationHook": false,
                "discoveryState": if loaded.is_empty() { "discovered" } else { "loaded" },
                "isLoaded": !loaded.is_empty(), "loadedSimulationIds": loaded, "modifiedAt": "2026-01-05T08:00:00Z",
                "metadata": {},
            })
        })
        .filter(|model| search.is_empty() || model.to_string().to_lowercase().contains(&search))
        .filter(|model| !loaded_only || model["isLoaded"] == true)
        .collect();
    let total = found.len();
    let skipped = usize::try_from((page - 1).saturating_mul(limit)).unwrap_or(usize::MAX);
    let shown: Vec<Value> =
        found.into_iter().skip(skipped).take(usize::try_from(limit).unwrap_or(usize::MAX)).collect();
    Ok(json!({
        "tool": "discover_models", "contractVersion": CONTRACT, "items": shown, "page": page, "limit": limit,
        "total": total,
    }))
}

/// Checks a model file without loading it.
pub(super) fn manifest(arguments: &Value) -> Result<Value, Failure> {
    let sent = text(arguments, "filePath").unwrap_or_default();
    let path = models::resolved(sent);
    admitted(Version::V05, sent, &path).map_err(|message| refused(Version::V05, message))?;
    Ok(json!({
        "tool": "validate_model_manifest", "contractVersion": CONTRACT, "filePath": path, "backend": "ospsuite",
        "runtimeFormat": "pkml", "manifest": { "status": "missing" }, "curationSummary": {},
    }))
}
