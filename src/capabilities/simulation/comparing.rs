//! The comparison of the newest run of a simulation with an earlier one, from the records of both.

use std::collections::BTreeMap;

use countersign_capabilities::{ToolError, dates::day, rows::stored};
use countersign_core::{
    ids::ThreadId,
    reply::Reply,
    units::{Fit, fit},
};
use countersign_graph::action::{ActionRecord, ErrorKind, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Deps,
    actions::compare::{Comparison, Point},
    bridge::data::{Metric, percent},
    changes::{self, Changed},
    find::{self, Target},
    replies::comparisons,
    runs::{self, PastRun},
    tools::instead,
    under_way,
};

/// Two runs of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwoRuns {
    /// The simulation.
    pub simulation: String,
    /// The earlier run.
    pub earlier: PastRun,
    /// The newest run.
    pub newest: PastRun,
    /// The parameters with different values in the two runs; `None` if the records do not show them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<Changed>>,
    /// The changes of the figures of the first output in percent, with `%` as the unit of each.
    pub change: BTreeMap<String, Value>,
}

/// A figure of both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The output that it belongs to.
    pub output: String,
    /// The name: `Cmax`, `Tmax` or `AUC`.
    pub name: &'static str,
    /// The unit in the newest run.
    pub unit: Option<String>,
    /// The figure of the earlier run in that unit; `None` if it has none, or one in a unit that cannot be converted.
    pub earlier: Option<f64>,
    /// The figure of the newest run.
    pub newest: Option<f64>,
}

impl Compared {
    /// Returns the change in percent; `None` if one of the figures is missing, or the earlier one is zero.
    pub fn percent(&self) -> Option<f64> {
        percent(self.earlier, self.newest)
    }
}

/// Returns the figures of the outputs that both runs have.
pub fn figures(earlier: &[Metric], newest: &[Metric]) -> Vec<Compared> {
    let of_output = |newest: &Metric| {
        let before = earlier.iter().find(|before| before.output == newest.output)?;
        let pairs = before.figures().into_iter().zip(newest.figures());
        let compared = pairs.map(|((name, before, before_unit), (_, value, unit))| {
            let in_unit = |value: f64| match fit(value, before_unit.as_deref(), unit.as_deref()) {
                Fit::Same if before_unit.is_some() == unit.is_some() => Some(value),
                Fit::Converted(converted) => Some(converted),
                Fit::Same | Fit::Other | Fit::Unknown => None,
            };
            let earlier = before.and_then(in_unit);
            Compared { output: newest.output.clone(), name, earlier, newest: value, unit }
        });
        Some(compared.collect::<Vec<_>>())
    };
    newest.iter().filter_map(of_output).flatten().collect()
}

/// Compares the newest run of a simulation with the earlier one that these words mean.
///
/// # Errors
///
/// A reply that says which runs there are, if there is no such run.
pub async fn with_earlier(deps: &Deps, target: &Target, words: &str) -> Result<Value, ToolError> {
    let none = |reply: Reply| instead(ErrorKind::NotFound, reply);
    let Some(which) = runs::which(words, day(deps.client.clock().now())) else {
        return Err(instead(ErrorKind::UserInput, comparisons::unclear(words)));
    };
    let (simulation, all) = runs_of(deps, target).await?;
    let Some(newest) = all.first() else { return Err(none(comparisons::no_run(&simulation))) };
    let Some(earlier) = runs::earlier(&all, &which) else {
        return Err(none(comparisons::no_earlier_run(&simulation, &which, &all)));
    };
    let changed = changes::between(deps, &simulation, earlier.at, newest.at).await;
    let compared = figures(&earlier.metrics, &newest.metrics);
    let of_first = compared.iter().filter(|figure| compared.first().is_some_and(|first| first.output == figure.output));
    let change = of_first.filter_map(|figure| Some((figure.name.to_lowercase(), figure.percent()?)));
    let change = change.flat_map(|(name, percent)| [(format!("{name}_unit"), json!("%")), (name, json!(percent))]);
    Ok(json!(TwoRuns {
        simulation,
        changed,
        change: change.collect(),
        earlier: earlier.clone(),
        newest: newest.clone(),
    }))
}

/// The question which value of a comparison has the highest or the lowest figure.
#[derive(Clone, Copy, Debug)]
pub struct Extreme<'a> {
    /// True for the lowest.
    pub is_lowest: bool,
    /// The figure: `cmax`, `tmax` or `auc`.
    pub figure: &'a str,
    /// The words for the parameter that was varied, if it was named.
    pub of: Option<&'a str>,
}

/// The answer to [`Extreme`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The simulation.
    pub simulation: String,
    /// The path of the parameter that was varied.
    pub path: String,
    /// The unit of its values.
    pub unit: Option<String>,
    /// The name of the figure: `Cmax`, `Tmax` or `AUC`.
    pub figure: String,
    /// The unit of the figure.
    pub figure_unit: Option<String>,
    /// True for the lowest.
    pub is_lowest: bool,
    /// The values with their figures, the best one first.
    pub values: Vec<(f64, f64)>,
}

/// Returns the value with the highest or lowest figure in the last comparison, of this thread if it has one.
///
/// # Errors
///
/// A reply that there is no such comparison on record.
pub async fn extreme(
    deps: &Deps,
    target: &Target,
    asked: &Extreme<'_>,
    thread: Option<&ThreadId>,
) -> Result<Value, ToolError> {
    let mut records = under_way::comparisons(deps, target.name()).await;
    records.sort_by_key(|record| Some(&record.thread) != thread);
    let found = records.iter().find_map(|record| best_of(record, asked));
    let found = found.ok_or_else(|| instead(ErrorKind::NotFound, comparisons::no_comparison(asked)))?;
    Ok(json!({ "extreme": found, "simulation": found.simulation }))
}

/// Returns the values in the record of a comparison, by the figure; `None` if it varied another parameter or has no such figure.
fn best_of(record: &ActionRecord, asked: &Extreme<'_>) -> Option<Found> {
    let comparison: Comparison = stored(record).ok()?;
    if asked.of.is_some_and(|of| !find::is_named(&comparison.parameter, of)) {
        return None;
    }
    let Some(Outcome::Done { result, .. }) = &record.outcome else { return None };
    let points: Vec<Point> = serde_json::from_value(result["points"].clone()).ok()?;
    let figure = |point: &Point| {
        let figures = point.metric.as_ref()?.figures();
        let (name, value, unit) = figures.into_iter().find(|(name, ..)| name.eq_ignore_ascii_case(asked.figure))?;
        Some((point.value, value?, name, unit))
    };
    let figures: Vec<_> = points.iter().filter_map(figure).collect();
    let (_, _, name, figure_unit) = figures.first().cloned()?;
    let mut values: Vec<(f64, f64)> = figures.into_iter().map(|(value, figure, ..)| (value, figure)).collect();
    values.sort_by(|(_, one), (_, other)| if asked.is_lowest { one.total_cmp(other) } else { other.total_cmp(one) });
    Some(Found {
        simulation: comparison.simulation,
        path: comparison.parameter,
        unit: comparison.unit,
        figure: name.to_owned(),
        figure_unit,
        is_lowest: asked.is_lowest,
        values,
    })
}

/// Returns the simulation that is meant, and its finished runs. It need not be loaded any more.
async fn runs_of(deps: &Deps, target: &Target) -> Result<(String, Vec<PastRun>), ToolError> {
    if let Some(name) = target.name().or(target.active()) {
        let all = runs::finished(deps, name).await;
        if !all.is_empty() {
            return Ok((name.to_owned(), all));
        }
    }
    let says = |name: &str| format!("compare the runs of {name}");
    let loaded = find::simulation(deps, target, says).await?;
    let all = runs::finished(deps, &loaded.id).await;
    Ok((loaded.id, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(unit: Option<&str>, cmax: f64) -> Metric {
        let unit = unit.map(str::to_owned);
        Metric { output: "C".to_owned(), unit, cmax: Some(cmax), tmax: Some(2.0), auc: Some(cmax * 10.0) }
    }

    fn percents(earlier: Metric, newest: Metric) -> Vec<Option<f64>> {
        let rounded = |figure: &Compared| figure.percent().map(|percent| percent.round());
        figures(&[earlier], &[newest]).iter().map(rounded).collect()
    }

    #[test]
    fn figures_are_compared_in_one_unit_or_not_at_all() {
        let changes = [Some(400.0), Some(0.0), Some(400.0)];
        assert_eq!(percents(metric(Some("mg/L"), 1.0), metric(Some("mg/L"), 5.0)), changes);
        assert_eq!(percents(metric(Some("ng/mL"), 1_000.0), metric(Some("mg/L"), 5.0)), changes);
        assert_eq!(percents(metric(Some("umol/L"), 1.0), metric(Some("mg/L"), 5.0)), [None, Some(0.0), None]);
        assert_eq!(percents(metric(None, 1.0), metric(Some("mg/L"), 5.0)), [None, Some(0.0), None]);
        assert_eq!(percents(metric(None, 0.0), metric(None, 5.0)), [None, Some(0.0), None]);
        assert!(figures(&[metric(None, 1.0)], &[Metric { output: "D".to_owned(), ..metric(None, 1.0) }]).is_empty());
    }
}
