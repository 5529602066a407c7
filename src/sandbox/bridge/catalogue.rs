//! The tools of each version with their schemas, in the form in which the bridge publishes them.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{Role, Version};

static V01: LazyLock<Vec<Value>> = LazyLock::new(|| read(include_str!("tools-0.1.json")));
static V05: LazyLock<Vec<Value>> = LazyLock::new(|| read(include_str!("tools-0.5.json")));
static RESOURCES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("resources-0.5.json")).expect("the embedded file is valid"));

fn read(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("the embedded file is valid")
}

/// The tools whose calls require a confirmation.
pub const CRITICAL: &[&str] = &[
    "load_simulation",
    "set_parameter_value",
    "run_simulation",
    "run_population_simulation",
    "run_sensitivity_analysis",
];

/// Returns the tools of a version, in the order in which the bridge lists them.
pub(crate) fn tools(version: Version) -> &'static [Value] {
    match version {
        Version::V01 => &V01,
        Version::V05 => &V05,
    }
}

/// Returns a tool of a version.
pub(crate) fn tool(version: Version, name: &str) -> Option<&'static Value> {
    tools(version).iter().find(|tool| tool["name"] == name)
}

/// Returns the roles that may use a tool.
pub(crate) fn roles(tool: &Value) -> Vec<Role> {
    let named = tool["annotations"]["roles"].as_array().into_iter().flatten();
    named.filter_map(|role| Role::ALL.into_iter().find(|own| role == own.name())).collect()
}

/// Returns the resources and the resource templates of the newer version.
pub(crate) fn resources() -> &'static Value {
    &RESOURCES
}

/// Returns the schema of a route without a tool.
pub(crate) fn route_schema(path: &str) -> Option<Value> {
    let text = |most: u64| json!({ "type": "string", "minLength": 1, "maxLength": most });
    let (required, properties) = match path {
        "/get_simulation_results" => (json!(["resultsId"]), json!({ "resultsId": text(128) })),
        "/snapshot_simulation" => (json!(["simulationId"]), json!({ "simulationId": text(64) })),
        "/restore_simulation" => {
            let snapshot = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
            (json!(["simulationId"]), json!({ "simulationId": text(64), "snapshotId": snapshot }))
        }
        _ => return None,
    };
    Some(json!({ "type": "object", "required": required, "properties": properties }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_critical_tools_are_those_marked_in_the_catalogue() {
        for version in [Version::V01, Version::V05] {
            let marked = tools(version).iter().filter(|tool| tool["annotations"]["critical"] == true);
            let mut marked: Vec<_> = marked.filter_map(|tool| tool["name"].as_str()).collect();
            marked.sort_unstable();
            let mut known = CRITICAL.to_vec();
            known.sort_unstable();
            assert_eq!(marked, known);
        }
    }
}
