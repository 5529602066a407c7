//! Two checks of the newer version: plausible ranges of values, and patterns in a sequence of
//! changes.

use serde_json::{Value, json};

use super::engine::Parameters;

/// The path of the body weight.
const WEIGHT: &str = "Organism|Weight";

/// A range of plausible values.
struct Range {
    key: &'static str,
    min: f64,
    max: f64,
    usual: f64,
    unit: &'static str,
    scales: bool,
}

const fn range(key: &'static str, min: f64, max: f64, usual: f64, unit: &'static str, scales: bool) -> Range {
    Range { key, min, max, usual, unit, scales }
}

const RANGES: &[Range] = &[
    range("Liver", 0.01, 3.0, 1.5, "L", true),
    range("Kidney", 0.005, 0.6, 0.31, "L", true),
    range("Brain", 0.05, 1.8, 1.4, "L", false),
    range("Muscle", 0.1, 35.0, 24.0, "L", true),
    range("Adipose", 0.05, 30.0, 15.0, "L", true),
    range("Fat", 0.05, 30.0, 15.0, "L", true),
    range("Heart", 0.002, 0.6, 0.33, "L", true),
    range("Lung", 0.005, 2.0, 1.2, "L", true),
    range("Skin", 0.01, 5.0, 3.3, "L", true),
    range("Bone", 0.01, 5.0, 3.0, "L", true),
    range("SmallIntestine", 0.005, 2.0, 0.8, "L", true),
    range("LargeIntestine", 0.002, 1.0, 0.5, "L", true),
    range("Pancreas", 0.001, 0.2, 0.1, "L", true),
    range("Spleen", 0.001, 0.4, 0.2, "L", true),
    range("Liver|BloodFlow", 0.01, 2.0, 1.0, "L/min", true),
    range("Kidney|BloodFlow", 0.01, 1.5, 1.0, "L/min", true),
    range("Brain|BloodFlow", 0.01, 1.0, 0.7, "L/min", true),
    range("Heart|BloodFlow", 0.001, 0.5, 0.25, "L/min", true),
    range("Lung|BloodFlow", 0.05, 8.0, 5.0, "L/min", true),
    range("Skin|BloodFlow", 0.001, 0.8, 0.3, "L/min", true),
    range("Bone|BloodFlow", 0.001, 0.8, 0.3, "L/min", true),
    range("SmallIntestine|BloodFlow", 0.005, 2.0, 1.0, "L/min", true),
    range("LargeIntestine|BloodFlow", 0.002, 0.8, 0.3, "L/min", true),
    range("Pancreas|BloodFlow", 0.001, 0.3, 0.1, "L/min", true),
    range("Spleen|BloodFlow", 0.001, 0.4, 0.2, "L/min", true),
    range("Liver|Clearance", 0.0, 100.0, 1.0, "L/h", false),
    range("Kidney|Clearance", 0.0, 50.0, 1.0, "L/h", false),
    range("Lipophilicity", -5.0, 10.0, 1.0, "logP", false),
    range("MolecularWeight", 50.0, 1000.0, 300.0, "g/mol", false),
    range("FractionUnbound", 0.0, 1.0, 0.1, "", false),
];

/// Returns the range for a path: that of the longest key with which the path ends, or else which it
/// contains.
fn range_of(path: &str) -> Option<&'static Range> {
    let longest =
        |fits: &dyn Fn(&str) -> bool| RANGES.iter().filter(|range| fits(range.key)).max_by_key(|range| range.key.len());
    longest(&|key| path.ends_with(key)).or_else(|| longest(&|key| path.contains(key)))
}

impl Range {
    /// Returns the minimum and the maximum for a body weight.
    fn limits(&self, weight: Option<f64>) -> (f64, f64) {
        let Some(weight) = weight.filter(|weight| self.scales && *weight > 0.0) else { return (self.min, self.max) };
        let exponent = if self.unit == "L" { 1.0 } else { 0.75 };
        let usual = self.usual * (weight / 70.0).powf(exponent);
        let (least, most) = ((usual / 2.5).max(self.min), (usual * 2.5).min(self.max));
        if least > most { (self.min, self.max) } else { (least, most) }
    }
}

/// Returns the source of the range for a path.
pub(crate) fn reference(path: &str) -> Vec<&'static str> {
    if range_of(path).is_some_and(|range| matches!(range.unit, "L" | "L/min")) { vec!["ICRP 89"] } else { Vec::new() }
}

/// Refuses a value outside of the range for its path.
pub(crate) fn in_range(path: &str, value: f64, parameters: &Parameters) -> Result<(), String> {
    let Some(range) = range_of(path) else { return Ok(()) };
    let (least, most) = range.limits(parameters.get(WEIGHT).map(|weight| weight.value));
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let unit = range.unit;
    Err(format!(
        "Parameter bounds violation: Value {} for parameter outside plausible range [{least:.4}, {most:.4}] {unit}",
        json!(value)
    ))
}

/// A change that was made.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The path.
    pub(crate) path: String,
    /// The value before.
    pub(crate) old: Option<f64>,
    /// The value after.
    pub(crate) new: f64,
}

/// Returns the patterns in a sequence of changes that look like a search for a desired result.
pub(crate) fn sweep_alerts(changes: &[Change]) -> Vec<Value> {
    let mut paths: Vec<&str> = Vec::new();
    for change in changes {
        if !paths.contains(&change.path.as_str()) {
            paths.push(&change.path);
        }
    }
    let mut alerts = Vec::new();
    let mut alert = |kind: &str, path: &str, count: usize, advice: &str| {
        alerts.push(json!({ "type": kind, "parameterPath": path, "count": count, "recommendation": advice }));
    };
    for path in paths {
        let own: Vec<&Change> = changes.iter().filter(|change| change.path == path).collect();
        if own.len() > 5 {
            let advice = "Frequent parameter changes detected - possible optimization bias";
            alert("frequent_changes", path, own.len(), advice);
        }
        let ups: Vec<bool> =
            own.windows(2).filter(|pair| pair[0].new != pair[1].new).map(|pair| pair[1].new > pair[0].new).collect();
        let turns = ups.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if own.len() >= 3 && turns >= 2 {
            let advice = "Oscillating parameter values - possible target-seeking behavior";
            alert("oscillating_values", path, own.len(), advice);
        }
        let is_large =
            |change: &&&Change| change.old.is_some_and(|old| old != 0.0 && ((change.new - old) / old).abs() > 0.5);
        let large = own.iter().filter(is_large).count();
        if large > 2 {
            let advice = "Large parameter changes detected - review physiological plausibility";
            alert("large_changes", path, large, advice);
        }
    }
    alerts
}

/// Returns the review of the changes of a simulation, for answers.
pub(crate) fn sweep_review(simulation: &str, changes: &[Change]) -> Value {
    let alerts = sweep_alerts(changes);
    let kinds: Vec<&str> = alerts.iter().filter_map(|alert| alert["type"].as_str()).collect();
    let (status, summary) = if changes.is_empty() {
        ("no_changes", "No parameter changes have been recorded for this simulation.".to_owned())
    } else if alerts.is_empty() {
        ("no_sweeps", "No parameter sweep patterns have been detected for this simulation.".to_owned())
    } else {
        let kinds = kinds.join(", ");
        let summary = format!(
            "Parameter sweep patterns ({kinds}) have been detected and not yet reviewed. Human review is recommended \
             before using this simulation for trust-bearing outputs."
        );
        ("unreviewed_sweeps", summary)
    };
    json!({
        "summaryVersion": "pbpk-parameter-sweep-review.v1", "simulationId": simulation, "status": status,
        "plainLanguageSummary": summary, "sweepAlerts": alerts, "reviewedAt": null, "reviewedBy": null,
        "requiresReviewerAttention": !kinds.is_empty(), "blocksTrustBearingOutput": !kinds.is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::models;

    #[test]
    fn the_range_of_the_liver_scales_and_the_filtration_rate_is_checked_as_a_kidney_volume() {
        let parameters = models::recorded();
        assert!(in_range("Organism|Liver|Volume", 0.6, &parameters).is_ok());
        assert!(in_range("Organism|Liver|Volume", 0.59, &parameters).is_err());
        let misfire = in_range("Organism|Kidney|GFR", 0.12, &parameters).unwrap_err();
        assert!(misfire.ends_with("[0.1240, 0.6000] L"), "{misfire}");
        assert!(in_range("Dose", 1e9, &parameters).is_ok());
    }
}
