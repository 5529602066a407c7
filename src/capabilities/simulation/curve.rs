//! Curves reduced to few points, as they are stored with an outcome.

use countersign_core::units::rounded;
use serde::{Deserialize, Serialize};

use super::bridge::data::Series;

/// The maximum number of points of a stored curve, not counting the highest and the last one.
const MAX_POINTS: usize = 120;
/// The maximum number of stored curves.
const MAX_CURVES: usize = 4;

/// A curve with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The name of the output, or of the compared value.
    pub name: String,
    /// The unit of the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The points: time in hours, and value.
    pub points: Vec<(f64, f64)>,
}

/// Returns the first [`MAX_CURVES`] curves, reduced to about [`MAX_POINTS`] points each. The highest and the last point
/// are kept.
pub fn thinned(series: &[Series]) -> Vec<Curve> {
    series.iter().take(MAX_CURVES).map(|series| thin(&series.output, series)).collect()
}

/// Returns one curve, reduced in the same way, with this name.
pub fn thin(name: &str, series: &Series) -> Curve {
    let points = &series.points;
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    let highest = (0..points.len()).max_by(|a, b| points[*a].1.total_cmp(&points[*b].1));
    let last = points.len().checked_sub(1);
    let kept = (0..points.len()).filter(|at| at % step == 0 || Some(*at) == highest || Some(*at) == last);
    let short = |value: f64| format!("{value:.5e}").parse().unwrap_or_else(|_| rounded(value));
    Curve {
        name: name.to_owned(),
        unit: series.unit.clone(),
        points: kept.map(|at| (short(points[at].0), short(points[at].1))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_curve_keeps_its_peak_and_its_end() {
        let points = (0..10_001).map(|at| (f64::from(at), if at == 4_321 { 9.0 } else { 1.0 })).collect();
        let series = Series { output: "C".to_owned(), unit: None, points };
        let curve = &thinned(&[series])[0];
        assert!(curve.points.len() <= MAX_POINTS + 2);
        assert!(curve.points.contains(&(4_321.0, 9.0)));
        assert_eq!(curve.points.last(), Some(&(10_000.0, 1.0)));
    }
}
