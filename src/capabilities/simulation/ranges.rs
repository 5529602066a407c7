//! The ranges in which a bridge of version 0.5 allows values, computed here so that a card can show them.
//!
//! The bridge picks the range by the longest key that a path ends with, or otherwise contains. It checks every volume,
//! flow and clearance against such a range, and scales the usual value of some of them with the body weight.

use countersign_core::units::number;

use super::bridge::data::Parameter;

/// A row of the bridge's table.
struct Row {
    key: &'static str,
    min: f64,
    max: f64,
    usual: f64,
    unit: &'static str,
    scales: bool,
}

const fn row(key: &'static str, min: f64, max: f64, usual: f64, unit: &'static str, scales: bool) -> Row {
    Row { key, min, max, usual, unit, scales }
}

/// The bridge's table.
const ROWS: &[Row] = &[
    row("Liver", 0.01, 3.0, 1.5, "L", true),
    row("Kidney", 0.005, 0.6, 0.31, "L", true),
    row("Brain", 0.05, 1.8, 1.4, "L", false),
    row("Muscle", 0.1, 35.0, 24.0, "L", true),
    row("Adipose", 0.05, 30.0, 15.0, "L", true),
    row("Fat", 0.05, 30.0, 15.0, "L", true),
    row("Heart", 0.002, 0.6, 0.33, "L", true),
    row("Lung", 0.005, 2.0, 1.2, "L", true),
    row("Skin", 0.01, 5.0, 3.3, "L", true),
    row("Bone", 0.01, 5.0, 3.0, "L", true),
    row("SmallIntestine", 0.005, 2.0, 0.8, "L", true),
    row("LargeIntestine", 0.002, 1.0, 0.5, "L", true),
    row("Pancreas", 0.001, 0.2, 0.1, "L", true),
    row("Spleen", 0.001, 0.4, 0.2, "L", true),
    row("Liver|BloodFlow", 0.01, 2.0, 1.0, "L/min", true),
    row("Kidney|BloodFlow", 0.01, 1.5, 1.0, "L/min", true),
    row("Brain|BloodFlow", 0.01, 1.0, 0.7, "L/min", true),
    row("Heart|BloodFlow", 0.001, 0.5, 0.25, "L/min", true),
    row("Lung|BloodFlow", 0.05, 8.0, 5.0, "L/min", true),
    row("Skin|BloodFlow", 0.001, 0.8, 0.3, "L/min", true),
    row("Bone|BloodFlow", 0.001, 0.8, 0.3, "L/min", true),
    row("SmallIntestine|BloodFlow", 0.005, 2.0, 1.0, "L/min", true),
    row("LargeIntestine|BloodFlow", 0.002, 0.8, 0.3, "L/min", true),
    row("Pancreas|BloodFlow", 0.001, 0.3, 0.1, "L/min", true),
    row("Spleen|BloodFlow", 0.001, 0.4, 0.2, "L/min", true),
    row("Liver|Clearance", 0.0, 100.0, 1.0, "L/h", false),
    row("Kidney|Clearance", 0.0, 50.0, 1.0, "L/h", false),
    row("Lipophilicity", -5.0, 10.0, 1.0, "logP", false),
    row("MolecularWeight", 50.0, 1000.0, 300.0, "g/mol", false),
    row("FractionUnbound", 0.0, 1.0, 0.1, "–", false),
];

/// The body weight that the usual values are for, in kilograms.
const USUAL_WEIGHT: f64 = 70.0;

/// The path of the body weight.
pub const BODY_WEIGHT: &str = "Organism|Weight";

/// The range in which a bridge allows a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
    /// The unit of the bounds.
    pub unit: &'static str,
    /// The key of its row in the table, such as `Liver`.
    pub key: &'static str,
    /// The body weight that it was scaled to, in kilograms; `None` if it does not depend on it or the weight is not
    /// known.
    pub weight: Option<f64>,
}

impl Range {
    /// Returns the range for a path; `None` if the bridge allows every value.
    pub fn of(path: &str, body_weight: Option<f64>) -> Option<Self> {
        let fits = |matches: fn(&str, &str) -> bool| {
            ROWS.iter().filter(|row| matches(path, row.key)).max_by_key(|row| row.key.len())
        };
        let row = fits(|path, key| path.ends_with(key)).or_else(|| fits(|path, key| path.contains(key)))?;
        let range = |min, max, weight| Self { min, max, unit: row.unit, key: row.key, weight };
        let Some(weight) = body_weight.filter(|weight| row.scales && *weight > 0.0) else {
            return Some(range(row.min, row.max, None));
        };
        let exponent = if row.unit == "L" { 1.0 } else { 0.75 };
        let usual = row.usual * (weight / USUAL_WEIGHT).powf(exponent);
        let (min, max) = ((usual / 2.5).max(row.min), (usual * 2.5).min(row.max));
        match min <= max {
            true => Some(range(min, max, Some(weight))),
            false => Some(range(row.min, row.max, None)),
        }
    }

    /// Returns true if the bridge allows this value.
    pub fn allows(&self, value: f64) -> bool {
        (self.min..=self.max).contains(&value)
    }

    /// Returns the range in words, with its source: “0.6–3 L (reference range for Liver at 70 kg body weight)”.
    pub fn words(&self) -> String {
        let unit = if self.unit == "–" { String::new() } else { format!(" {}", self.unit) };
        let at = self.weight.map(|kg| format!(" at {} kg body weight", number(kg))).unwrap_or_default();
        format!("{}–{}{unit} (reference range for {}{at})", number(self.min), number(self.max), self.key)
    }
}

/// Returns the total volume of the organs among these parameters, in liters.
pub fn organ_volume(parameters: &[Parameter]) -> f64 {
    let volumes = parameters.iter().filter(|parameter| is_organ_volume(&parameter.path));
    volumes.map(|parameter| parameter.value).sum()
}

/// Returns true if this is the path of an organ's volume.
pub fn is_organ_volume(path: &str) -> bool {
    let mut organs = ROWS.iter().filter(|row| row.unit == "L");
    path.ends_with("|Volume") && organs.any(|organ| path.split('|').any(|part| part == organ.key))
}

/// Returns true if this is the path of a fraction of a whole, such as a bioavailability.
pub fn is_fraction(path: &str) -> bool {
    let last = path.rsplit('|').next().unwrap_or(path).to_lowercase().replace([' ', '_', '-'], "");
    ["bioavailability", "hematocrit", "haematocrit", "fu", "fup"].contains(&last.as_str()) || last.contains("fraction")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_known_by_their_names() {
        for path in ["Compound|Bioavailability", "Compound|FractionUnbound", "Compound|Fraction unbound (plasma)"] {
            assert!(is_fraction(path), "{path}");
        }
        for path in ["Dose", "Organism|Weight", "Compound|HepaticPartition"] {
            assert!(!is_fraction(path), "{path}");
        }
    }

    #[test]
    fn the_liver_at_70_kg_is_between_0_6_and_3_liters() {
        let range = Range::of("Organism|Liver|Volume", Some(70.0)).unwrap();
        assert_eq!(range.words(), "0.6–3 L (reference range for Liver at 70 kg body weight)");
        assert!(range.allows(0.6) && range.allows(3.0) && !range.allows(9.9));
    }

    #[test]
    fn the_longest_key_counts_and_an_end_before_a_middle() {
        assert_eq!(Range::of("Organism|Liver|BloodFlow", None).unwrap().unit, "L/min");
        assert_eq!(Range::of("Organism|Kidney|GFR", None).unwrap().key, "Kidney", "the bridge's rule misfires here");
        assert_eq!(Range::of("Dose", Some(70.0)), None);
    }

    #[test]
    fn a_weight_that_leaves_no_range_leaves_that_of_the_table() {
        let tiny = Range::of("Organism|Liver|Volume", Some(0.01)).unwrap();
        assert_eq!((tiny.min, tiny.max, tiny.weight), (0.01, 3.0, None));
    }
}
