//! The model engine: one compartment with absorption from the gut and elimination by clearance.
//!
//! The amount that reaches the blood is dose times bioavailability. The volume is a parameter of
//! the model or computed from body weight and liver volume, so that a heavier subject or a larger
//! liver dilutes the same dose. The clearance is a parameter or the sum of the organ clearances.
//! The curve is the closed-form solution at 48 equal steps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The name of the only series that the engine computes.
pub(crate) const PLASMA: &str = "VenousBlood|Plasma|Concentration";

/// The number of steps of a curve.
const STEPS: u32 = 48;

/// A parameter of a loaded simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parameter {
    /// The value.
    pub(crate) value: f64,
    /// The unit.
    pub(crate) unit: String,
}

/// The parameters of a simulation, sorted by path.
pub(crate) type Parameters = BTreeMap<String, Parameter>;

/// A curve with its name and unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// The name.
    pub(crate) parameter: String,
    /// The unit of the values.
    pub(crate) unit: String,
    /// The points: times in hours, with values.
    pub(crate) points: Vec<(f64, f64)>,
}

impl Series {
    /// Returns the series in the format of results.
    pub(crate) fn shown(&self) -> Value {
        let values: Vec<Value> =
            self.points.iter().map(|(time, value)| json!({ "time": time, "value": value })).collect();
        json!({ "parameter": self.parameter, "unit": self.unit, "values": values })
    }
}

/// The characteristic figures of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// The highest value.
    pub(crate) cmax: f64,
    /// The first time of the highest value.
    pub(crate) tmax: f64,
    /// The area under the curve, by the trapezoidal rule.
    pub(crate) auc: f64,
}

/// Returns the figures of a curve.
pub(crate) fn figures(points: &[(f64, f64)]) -> Figures {
    let mut found = Figures::default();
    for (at, (time, value)) in points.iter().enumerate() {
        if at == 0 || *value > found.cmax {
            (found.cmax, found.tmax) = (*value, *time);
        }
    }
    for pair in points.windows(2) {
        found.auc += (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0;
    }
    found
}

/// The extrapolation of a curve to infinity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Terminal {
    /// The terminal rate constant, per hour.
    pub(crate) rate: f64,
    /// The area under the curve to infinity.
    pub(crate) auc: f64,
}

/// The number of points to which the terminal phase is fitted.
pub(crate) const TERMINAL_POINTS: usize = 5;

/// Fits a straight line to the logarithms of the last points. Returns `None` if they do not
/// decrease.
pub(crate) fn terminal(points: &[(f64, f64)]) -> Option<Terminal> {
    let last: Vec<_> = points.iter().filter(|(_, value)| *value > 0.0).copied().collect();
    let last = &last[last.len().checked_sub(TERMINAL_POINTS)?..];
    let count = last.len() as f64;
    let mean_time = last.iter().map(|(time, _)| time).sum::<f64>() / count;
    let mean_log = last.iter().map(|(_, value)| value.ln()).sum::<f64>() / count;
    let above: f64 = last.iter().map(|(time, value)| (time - mean_time) * (value.ln() - mean_log)).sum();
    let below: f64 = last.iter().map(|(time, _)| (time - mean_time).powi(2)).sum();
    let rate = -above / below;
    let end = last.last()?.1;
    (rate > 0.0).then(|| Terminal { rate, auc: figures(points).auc + end / rate })
}

/// Runs a simulation.
pub(crate) fn run(parameters: &Parameters) -> Series {
    let of = |path: &str| parameters.get(path).map(|parameter| parameter.value);
    let end = of("Simulation|EndTime").unwrap_or(24.0).max(1.0);
    let dose = of("Dose").unwrap_or(0.0) * of("Compound|Bioavailability").unwrap_or(1.0);
    let body = Body { dose, volume: volume(parameters), clearance: clearance(parameters) };
    let absorption = of("Compound|ka").unwrap_or(1.0);
    let points = (0..=STEPS).map(|step| {
        let time = end * f64::from(step) / f64::from(STEPS);
        (time, rounded(body.concentration(absorption, time)))
    });
    Series { parameter: PLASMA.to_owned(), unit: "mg/L".to_owned(), points: points.collect() }
}

/// Returns the volume of distribution, in litres.
fn volume(parameters: &Parameters) -> f64 {
    let of = |path: &str| parameters.get(path).map(|parameter| parameter.value);
    if let Some(volume) = of("Compound|V") {
        return volume.max(1e-6);
    }
    let (weight, liver) = (of("Organism|Weight").unwrap_or(70.0), of("Organism|Liver|Volume").unwrap_or(1.5));
    let spread = of("Compound|VolumePerWeight").unwrap_or(0.6);
    let kept = of("Compound|HepaticPartition").unwrap_or(1.0);
    (spread * (weight - liver).max(0.0) + kept * liver).max(1e-6)
}

/// Returns the clearance, in litres per hour.
fn clearance(parameters: &Parameters) -> f64 {
    let of = |path: &str| parameters.get(path).map(|parameter| parameter.value);
    let organs = || of("Organism|Liver|Clearance").unwrap_or(0.0) + of("Organism|Kidney|Clearance").unwrap_or(0.0);
    of("Compound|CL").unwrap_or_else(organs)
}

/// A subject with its dose.
struct Body {
    dose: f64,
    volume: f64,
    clearance: f64,
}

impl Body {
    fn concentration(&self, absorption: f64, time: f64) -> f64 {
        let elimination = self.clearance / self.volume;
        let start = self.dose / self.volume;
        if absorption <= 0.0 {
            return 0.0;
        }
        if ((absorption - elimination) / absorption).abs() < 1e-9 {
            return start * absorption * time * (-absorption * time).exp();
        }
        start * absorption / (absorption - elimination) * ((-elimination * time).exp() - (-absorption * time).exp())
    }
}

/// Rounds to the engine's six decimals.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// A pseudo-random number generator with a seed.
#[derive(Clone, Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    /// Creates a generator with this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// Returns the next number between 0 and 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns the next factor of a log-normal distribution with median 1.
    fn spread(&mut self, deviation: f64) -> f64 {
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        (normal * deviation).exp()
    }
}

/// Returns the parameters of a random subject of a population. Weight, organ volumes, clearance and
/// absorption vary.
pub(crate) fn subject(parameters: &Parameters, draw: &mut Draw) -> Parameters {
    let mut own = parameters.clone();
    let (size, cleared, absorbed) = (draw.spread(0.15), draw.spread(0.3), draw.spread(0.3));
    for (path, parameter) in &mut own {
        if path.ends_with("|Weight") || path.ends_with("|Volume") || path == "Compound|V" {
            parameter.value *= size;
        } else if path.ends_with("|Clearance") || path == "Compound|CL" {
            parameter.value *= cleared;
        } else if path == "Compound|ka" {
            parameter.value *= absorbed;
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::models;

    fn peak(change: &str, value: f64) -> f64 {
        let mut parameters = models::demo("/data/models/demo.pkml").unwrap().parameters();
        if let Some(parameter) = parameters.get_mut(change) {
            parameter.value = value;
        }
        figures(&run(&parameters).points).cmax
    }

    #[test]
    fn curves_react_to_dose_weight_liver_and_clearance() {
        let usual = peak("", 0.0);
        assert!((peak("Dose", 200.0) / usual - 2.0).abs() < 1e-3);
        assert!(peak("Organism|Weight", 100.0) < usual);
        assert!(peak("Organism|Liver|Volume", 3.0) < usual);
        assert!(peak("Organism|Liver|Clearance", 3.0) > usual);
        assert!(peak("Compound|ka", 3.0) > usual);
    }

    #[test]
    fn a_seed_gives_the_same_subject_again() {
        let parameters = models::demo("/data/models/demo.pkml").unwrap().parameters();
        let one = subject(&parameters, &mut Draw::new(7));
        assert_eq!(one, subject(&parameters, &mut Draw::new(7)));
        assert_ne!(one, subject(&parameters, &mut Draw::new(8)));
    }
}
