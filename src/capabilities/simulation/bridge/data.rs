//! The data in the bridge's answers, read defensively: missing or invalid parts are left out, and lists are bounded.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::{clock::Timestamp, units::quantity};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{answer::shortened, error::Error, subjects::Band};

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

/// The part of the name of a copy, made by a sensitivity analysis, between the name of the simulation and a number.
const COPY: &str = "__sens_";

/// Removes the copies that sensitivity analyses have left from a list of loaded simulations. Returns their number, too.
pub fn without_copies(all: Vec<Loaded>) -> (Vec<Loaded>, usize) {
    let count = all.len();
    let names: BTreeSet<String> = all.iter().map(|loaded| loaded.id.clone()).collect();
    let is_copy = |loaded: &Loaded| {
        loaded.id.rsplit_once(COPY).is_some_and(|(of, number)| {
            names.contains(of) && !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
        })
    };
    let own: Vec<Loaded> = all.into_iter().filter(|loaded| !is_copy(loaded)).collect();
    let copies = count - own.len();
    (own, copies)
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

impl Parameter {
    /// Returns the value with its unit, for people.
    pub fn words(&self) -> String {
        quantity(self.value, self.unit.as_deref())
    }
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

impl Metric {
    /// Returns the figures with their names and units.
    pub fn figures(&self) -> [(&'static str, Option<f64>, Option<String>); 3] {
        let area = self.unit.as_deref().map(auc_unit);
        [("Cmax", self.cmax, self.unit.clone()), ("Tmax", self.tmax, Some("h".to_owned())), ("AUC", self.auc, area)]
    }
}

/// Returns the unit of the area under a curve whose values have this unit.
pub fn auc_unit(unit: &str) -> String {
    match unit.split_once('/') {
        Some((above, below)) => format!("{above}·h/{below}"),
        None => format!("{unit}·h"),
    }
}

/// Returns the change of a figure in percent; `None` if one of the two is missing, or the one before is zero.
pub fn percent(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    let before = before.filter(|before| *before != 0.0)?;
    Some((after? - before) / before * 100.0)
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
    /// The simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<String>,
    /// The number of subjects.
    pub size: Option<u64>,
    /// The aggregated figures by name.
    pub aggregates: BTreeMap<String, f64>,
    /// The number of chunks in which the subjects' curves can be fetched.
    pub chunks: usize,
    /// The ids of these chunks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunk_ids: Vec<String>,
    /// The unit of the concentrations, as far as it is known: the bridge does not report it with a population.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The spread of the subjects' curves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<Band>,
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
    /// The change of cmax, tmax and auc in percent, for the first output, relative to a copy in which the parameter has
    /// its present value.
    pub deltas: BTreeMap<String, f64>,
    /// The PK figures of the first output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
}

impl Scenario {
    /// Returns true if this is the run of the simulation itself.
    pub fn is_of_itself(&self) -> bool {
        self.path.is_none()
    }

    /// Returns true if this is a copy in which the parameter has its present value.
    pub fn is_reference(&self) -> bool {
        self.path.is_some() && self.change == 0.0
    }
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

/// Reads the paths of model files.
pub(super) fn models(body: &Value) -> Vec<String> {
    let listed = ["items", "models"].into_iter().find_map(|key| body[key].as_array());
    let file = |item: &Value| ["filePath", "path"].into_iter().find_map(|key| item[key].as_str().map(str::to_owned));
    listed.into_iter().flatten().filter_map(file).collect()
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
        simulation: word(&body["simulationId"]),
        size: body["cohort"]["size"].as_u64(),
        aggregates: aggregates.collect(),
        chunks: body["chunks"].as_array().map_or(0, Vec::len),
        chunk_ids: list(&body["chunks"]).filter_map(|chunk| word(&chunk["chunkId"])).collect(),
        unit: None,
        band: None,
    }
}

/// Reads the report of a sensitivity analysis.
///
/// The percentages in the report are not used. They are relative to a run of the simulation itself, but the copies are
/// loaded from the model file and lack the changes made since then. The figures of each copy are compared with those of
/// the copy in which the same parameter has its present value.
pub(super) fn scenarios(body: &Value) -> Vec<Scenario> {
    let scenario = |found: &Value| Scenario {
        path: word(&found["parameter_path"]),
        change: found["percent_change"].as_f64().unwrap_or_default(),
        value: found["absolute_value"].as_f64(),
        succeeded: found["job_status"] == "succeeded",
        deltas: BTreeMap::new(),
        metric: list(&found["metrics"]).find_map(metric),
    };
    let mut all: Vec<Scenario> = list(&body["report"]["scenarios"]).map(scenario).collect();
    let references: Vec<Scenario> =
        all.iter().filter(|found| found.is_reference() && found.succeeded).cloned().collect();
    for found in all.iter_mut().filter(|found| found.path.is_some() && found.succeeded) {
        let reference = references.iter().find(|reference| reference.path == found.path);
        if let (Some(before), Some(after)) = (reference.and_then(|found| found.metric.as_ref()), &found.metric) {
            let figures = before.figures().into_iter().zip(after.figures());
            found.deltas = figures
                .filter_map(|((name, before, _), (_, after, _))| Some((name.to_lowercase(), percent(before, after)?)))
                .collect();
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scenario(path: Option<&str>, change: f64, cmax: f64) -> Value {
        let metrics = json!([{ "parameter": "C", "unit": "mg/L", "cmax": cmax, "tmax": 2.0, "auc": 10.0 * cmax }]);
        json!({
            "parameter_path": path, "percent_change": change, "job_status": "succeeded", "metrics": metrics,
            "delta_percent": { "C": { "cmax": -90.0, "tmax": 0.0, "auc": -90.0 } },
        })
    }

    #[test]
    fn a_copy_is_compared_with_a_copy_and_not_with_the_changed_simulation() {
        let rows = [
            scenario(None, 0.0, 10.0),
            scenario(Some("CL"), 0.0, 1.0),
            scenario(Some("CL"), 0.1, 0.9),
            scenario(Some("ka"), 0.1, 1.1),
        ];
        let found = scenarios(&json!({ "report": { "scenarios": rows } }));
        assert!((found[2].deltas["cmax"] + 10.0).abs() < 1e-9 && (found[2].deltas["auc"] + 10.0).abs() < 1e-9);
        assert!(found[3].deltas.is_empty(), "without a copy to compare with, there is no percentage");
    }

    #[test]
    fn copies_of_an_analysis_are_no_simulations_of_their_own() {
        let loaded = |id: &str| Loaded { id: id.to_owned(), file: None, loaded_at: None };
        let all = ["demo", "demo__sens_1", "demo__sens_12", "demo__sens_x", "gone__sens_1"].map(loaded);
        let (own, copies) = without_copies(all.into());
        let names: Vec<&str> = own.iter().map(|loaded| loaded.id.as_str()).collect();
        assert_eq!((names.as_slice(), copies), (["demo", "demo__sens_x", "gone__sens_1"].as_slice(), 2));
    }
}
