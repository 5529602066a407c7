//! The curves of the subjects of a population, which the bridge offers in chunks, reduced to their spread.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{client::BridgeClient, error::Error};

/// The maximum number of chunks that are read. A bridge accepts 120 requests in a minute.
const MAX_CHUNKS: usize = 20;
/// The maximum number of subjects in a chunk, and of points of a curve, that are read.
const MAX_ENTRIES: usize = 1_000;
/// The maximum number of points of a spread.
const MAX_POINTS: usize = 120;
/// The minimum number of subjects for percentiles.
const MIN_SUBJECTS: usize = 5;

/// The spread of the curves of several subjects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// The number of subjects.
    pub subjects: usize,
    /// The points: time in hours, 5th percentile, median, and 95th percentile.
    pub points: Vec<(f64, f64, f64, f64)>,
}

/// The curve of one subject.
type SubjectCurve = Vec<(f64, f64)>;

impl BridgeClient {
    /// Reads the curves in these chunks and returns their spread; `None` if there are too few of them.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the bridge does not have them any more.
    pub async fn spread(&self, results: &str, chunks: &[String]) -> Result<Option<Band>, Error> {
        let quoted = |id: &str| url::form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>();
        let mut curves = Vec::new();
        for chunk in chunks.iter().take(MAX_CHUNKS) {
            let path = format!("/population_results/{}/chunks/{}", quoted(results), quoted(chunk));
            curves.extend(subjects(&self.read(Method::GET, &path, None).await?));
        }
        Ok(band(&curves))
    }
}

/// Reads the curves in a chunk.
fn subjects(chunk: &Value) -> Vec<SubjectCurve> {
    let numbers = |list: &Value| -> Vec<f64> {
        list.as_array().into_iter().flatten().take(MAX_ENTRIES).filter_map(Value::as_f64).collect()
    };
    let curve = |subject: &Value| -> SubjectCurve {
        numbers(&subject["time"]).into_iter().zip(numbers(&subject["concentration"])).collect()
    };
    chunk["series"].as_array().into_iter().flatten().take(MAX_ENTRIES).map(curve).collect()
}

/// Returns the spread of the curves that have the same times as the first one.
fn band(curves: &[SubjectCurve]) -> Option<Band> {
    let first = curves.first()?;
    let has_its_times = |curve: &&SubjectCurve| {
        curve.len() == first.len() && curve.iter().zip(first).all(|(point, other)| point.0 == other.0)
    };
    let curves: Vec<&SubjectCurve> = curves.iter().filter(has_its_times).collect();
    if curves.len() < MIN_SUBJECTS || first.len() < 2 {
        return None;
    }
    let step = first.len().div_ceil(MAX_POINTS).max(1);
    let point = |at: usize| {
        let mut values: Vec<f64> = curves.iter().map(|curve| curve[at].1).collect();
        values.sort_by(f64::total_cmp);
        (first[at].0, quantile(&values, 0.05), quantile(&values, 0.5), quantile(&values, 0.95))
    };
    let kept = (0..first.len()).filter(|at| at % step == 0 || at + 1 == first.len());
    Some(Band { subjects: curves.len(), points: kept.map(point).collect() })
}

/// Returns a quantile of sorted values, interpolated between neighbours.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * sorted.len().saturating_sub(1) as f64;
    let (below, rest) = (at.floor() as usize, at.fract());
    let value = |at: usize| sorted.get(at).or(sorted.last()).copied().unwrap_or_default();
    value(below) + (value(below + 1) - value(below)) * rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_spread_has_percentiles_at_each_time() {
        let series: Vec<Value> = (0..21)
            .map(|nth| json!({ "subjectId": nth, "time": [0.0, 4.0], "concentration": [0.0, f64::from(nth)] }))
            .collect();
        let band = band(&subjects(&json!({ "series": series }))).unwrap();
        assert_eq!(band, Band { subjects: 21, points: vec![(0.0, 0.0, 0.0, 0.0), (4.0, 1.0, 10.0, 19.0)] });
    }

    #[test]
    fn few_or_different_curves_have_none() {
        let curve = |end: f64| json!({ "time": [0.0, end], "concentration": [0.0, 1.0] });
        let different: Vec<Value> = (0..20).map(|nth| curve(f64::from(nth))).collect();
        assert_eq!(band(&subjects(&json!({ "series": different }))), None);
        assert_eq!(band(&subjects(&json!({ "series": [curve(1.0), curve(1.0)] }))), None);
        assert_eq!(band(&subjects(&json!({}))), None);
    }
}
