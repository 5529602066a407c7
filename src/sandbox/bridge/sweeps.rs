//! A check of the newer version: patterns in a sequence of changes.

use serde_json::{Value, json};

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
