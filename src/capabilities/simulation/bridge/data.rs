//! The data in the bridge's answers, read defensively: missing or invalid parts are left out, and lists are bounded.

use std::collections::BTreeMap;

use countersign_core::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{answer::shortened, error::Error};

/// The maximum number of entries of a list that are read.
const MAX_ENTRIES: usize = 500;
/// The maximum number of points of a curve that are read.
const MAX_POINTS: usize = 20_000;

/// A loaded simulation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// The name.
    pub id: String,
    /// The model file it was loaded from, if the bridge reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The time of its loading, as the bridge writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_at: Option<String>,
}

/// A parameter with its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// The path, such as `Organism|Weight`.
    pub path: String,
    /// The value.
    pub value: f64,
    /// The unit as the bridge writes it; `None` for a pure number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// The notes of the bridge on a changed parameter (0.5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Governance {
    /// The snapshot that was taken before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The warnings about the changes of the parameter so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<String>,
}

/// The PK figures of one output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The output, such as `VenousBlood|Plasma|Concentration`.
    pub output: String,
    /// The unit of the concentration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The highest concentration.
    pub cmax: Option<f64>,
    /// The time of the highest concentration, in hours.
    pub tmax: Option<f64>,
    /// The area under the curve.
    pub auc: Option<f64>,
}

/// The curve of one output.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The output.
    pub output: String,
    /// The unit of the values.
    pub unit: Option<String>,
    /// The points: time in hours, and value.
    pub points: Vec<(f64, f64)>,
}

/// A snapshot of the parameters of a simulation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The id.
    pub id: String,
    /// The time it was taken, as the bridge writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<String>,
    /// The hash of the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// The results of a population run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// The number of subjects.
    pub size: Option<u64>,
    /// The aggregated figures by name.
    pub aggregates: BTreeMap<String, f64>,
    /// The number of chunks in which the subjects' curves can be fetched.
    pub chunks: usize,
}

/// One scenario of a sensitivity analysis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// The parameter that was changed; `None` for the baseline.
    pub path: Option<String>,
    /// The change as a fraction: 0.1 is +10 %.
    pub change: f64,
    /// The value that was used.
    pub value: Option<f64>,
    /// True if its run succeeded.
    pub succeeded: bool,
    /// The change of cmax, tmax and auc in percent, for the first output.
    pub deltas: BTreeMap<String, f64>,
}

/// Returns the error for an answer without this part.
fn lacks(what: &str) -> Error {
    Error::Decode { reason: format!("it has no {what}") }
}

/// Returns a text; `None` if it is missing or empty.
pub(super) fn word(value: &Value) -> Option<String> {
    value.as_str().map(shortened).filter(|text| !text.is_empty())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten().take(MAX_ENTRIES)
}

/// Reads a moment: text with an offset, or seconds as a number.
pub(super) fn moment(value: &Value) -> Option<Timestamp> {
    if let Some(seconds) = value.as_f64() {
        return Some(Timestamp((seconds * 1000.0) as i64));
    }
    let at: jiff::Timestamp = value.as_str()?.parse().ok()?;
    Some(Timestamp(at.as_millisecond()))
}

/// Reads the list of loaded simulations.
pub(super) fn simulations(body: &Value) -> Vec<Loaded> {
    let loaded = |item: &Value| {
        let id = word(&item["simulationId"]).or_else(|| word(&item["id"]))?;
        let file = word(&item["filePath"]).or_else(|| word(&item["metadata"]["filePath"]));
        Some(Loaded { id, file, loaded_at: word(&item["createdAt"]) })
    };
    list(&body["items"]).filter_map(loaded).collect()
}

/// Reads the paths of parameters.
pub(super) fn paths(body: &Value) -> Vec<String> {
    list(&body["parameters"]).filter_map(word).collect()
}

/// Reads a parameter.
pub(super) fn parameter(body: &Value) -> Result<Parameter, Error> {
    let found = &body["parameter"];
    let unit = word(&found["unit"]).filter(|unit| !matches!(unit.as_str(), "unitless" | "-" | "–" | "1"));
    Ok(Parameter {
        path: word(&found["path"]).ok_or_else(|| lacks("path"))?,
        value: found["value"].as_f64().ok_or_else(|| lacks("value"))?,
        unit,
    })
}

/// Reads the notes on a change.
pub(super) fn governance(body: &Value) -> Governance {
    let notes = &body["governance"];
    let alerts = list(&notes["sweepAlerts"]).filter_map(|alert| word(&alert["recommendation"]));
    Governance { snapshot: word(&notes["snapshotId"]), alerts: alerts.take(8).collect() }
}

/// Reads PK figures.
pub(super) fn metrics(body: &Value) -> Vec<Metric> {
    list(&body["metrics"]).filter_map(metric).collect()
}

fn metric(found: &Value) -> Option<Metric> {
    let number = |key: &str| found[key].as_f64();
    let output = word(&found["parameter"])?;
    Some(Metric { output, unit: word(&found["unit"]), cmax: number("cmax"), tmax: number("tmax"), auc: number("auc") })
}

/// Reads curves.
pub(super) fn series(body: &Value) -> Vec<Series> {
    let point = |point: &Value| Some((point["time"].as_f64()?, point["value"].as_f64()?));
    let one = |found: &Value| {
        let points = found["values"].as_array().into_iter().flatten().take(MAX_POINTS).filter_map(point);
        Some(Series { output: word(&found["parameter"])?, unit: word(&found["unit"]), points: points.collect() })
    };
    list(&body["series"]).filter_map(one).collect()
}

/// Reads one snapshot.
pub(super) fn snapshot(found: &Value) -> Option<Snapshot> {
    let id = word(&found["snapshotId"])?;
    Some(Snapshot { id, taken_at: word(&found["createdAt"]), hash: word(&found["hash"]) })
}

/// Reads the snapshots of a simulation, newest first.
pub(super) fn snapshots(body: &Value) -> Vec<Snapshot> {
    let mut all: Vec<Snapshot> = list(&body["snapshots"]).filter_map(snapshot).collect();
    all.sort_by(|a, b| b.taken_at.cmp(&a.taken_at));
    all
}

/// Reads the results of a population run.
pub(super) fn population(body: &Value) -> Population {
    let aggregates = body["aggregates"].as_object().into_iter().flatten().take(MAX_ENTRIES);
    let aggregates = aggregates.filter_map(|(name, value)| Some((shortened(name), value.as_f64()?)));
    Population {
        size: body["cohort"]["size"].as_u64(),
        aggregates: aggregates.collect(),
        chunks: body["chunks"].as_array().map_or(0, Vec::len),
    }
}

/// Reads the report of a sensitivity analysis.
pub(super) fn scenarios(body: &Value) -> Vec<Scenario> {
    let scenario = |found: &Value| {
        let deltas = found["delta_percent"].as_object().and_then(|all| all.values().next()?.as_object());
        let deltas = deltas.into_iter().flatten().filter_map(|(name, value)| Some((shortened(name), value.as_f64()?)));
        Scenario {
            path: word(&found["parameter_path"]),
            change: found["percent_change"].as_f64().unwrap_or_default(),
            value: found["absolute_value"].as_f64(),
            succeeded: found["job_status"] == "succeeded",
            deltas: deltas.collect(),
        }
    };
    list(&body["report"]["scenarios"]).map(scenario).collect()
}
