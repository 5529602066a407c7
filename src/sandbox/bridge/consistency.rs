//! Rules across parameters, which the newer version checks for every change.
//!
//! A rule uses the current parameters, except for the new value. The body weight is a peculiarity
//! of the platform: a new weight is not compared with the organs, and if it is too small, nothing
//! else can be set afterwards.

use super::engine::Parameters;

/// The names of the rules in a check of consistency.
pub(crate) const RULES: [&str; 3] =
    ["organ_volumes_vs_body_weight", "organ_blood_flows_vs_cardiac_output", "hepatic_clearance_vs_blood_flow"];

/// An organ: its names in paths, and the names of its volume and its flow in messages.
struct Organ {
    names: &'static [&'static str],
    volume: &'static str,
    flow: Option<&'static str>,
}

const fn organ(names: &'static [&'static str], volume: &'static str, flow: Option<&'static str>) -> Organ {
    Organ { names, volume, flow }
}

const ORGANS: &[Organ] = &[
    organ(&["Liver"], "Liver volume", Some("Hepatic blood flow")),
    organ(&["Kidney"], "Kidney volume", Some("Renal blood flow")),
    organ(&["Brain"], "Brain volume", Some("Cerebral blood flow")),
    organ(&["Muscle"], "Muscle volume", None),
    organ(&["AdiposeTissue", "Adipose", "Fat"], "Adipose volume", None),
    organ(&["Heart", "Coronary"], "Heart volume", Some("Coronary blood flow")),
    organ(&["Lung", "Pulmonary"], "Lung volume", Some("Pulmonary blood flow")),
    organ(&["Skin"], "Skin volume", Some("Cutaneous blood flow")),
    organ(&["Bone", "Skeletal"], "Bone volume", Some("Skeletal blood flow")),
    organ(&["SmallIntestine", "Small intestine"], "Small intestine volume", Some("Small intestinal blood flow")),
    organ(&["LargeIntestine", "Large intestine"], "Large intestine volume", Some("Large intestinal blood flow")),
    organ(&["Pancreas"], "Pancreas volume", Some("Pancreatic blood flow")),
    organ(&["Spleen"], "Spleen volume", Some("Splenic blood flow")),
];

/// A requested change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proposed<'a> {
    /// The path.
    pub(crate) path: &'a str,
    /// The value.
    pub(crate) value: f64,
    /// The unit in the request.
    pub(crate) unit: Option<&'a str>,
}

/// Returns the value in the unit `wanted`. A value in an unknown unit is not converted.
fn standard(value: f64, unit: &str, wanted: &str) -> f64 {
    match (wanted, unit.trim().to_lowercase().as_str()) {
        ("L", "ml") | ("kg", "g") | ("L/min", "ml/min") => value / 1000.0,
        ("L/min", "l/h") => value / 60.0,
        _ => value,
    }
}

/// The parameters with a proposed change.
struct View<'a> {
    parameters: &'a Parameters,
    proposed: Option<Proposed<'a>>,
}

impl View<'_> {
    /// Returns the value `what` of an organ with these names. A proposed value takes precedence if
    /// its path ends with one of them.
    fn read(&self, names: &[&str], what: &str, unit: &str) -> Option<f64> {
        let endings: Vec<String> = names.iter().map(|name| format!("{name}|{what}")).collect();
        if let Some(proposed) = self.proposed.filter(|own| endings.iter().any(|ending| own.path.ends_with(ending))) {
            return Some(standard(proposed.value, proposed.unit.unwrap_or_default(), unit));
        }
        let whole = endings.iter().map(|ending| format!("Organism|{ending}")).chain(endings.iter().cloned());
        whole.into_iter().find_map(|path| self.plain(&path, unit))
    }

    fn plain(&self, path: &str, unit: &str) -> Option<f64> {
        self.parameters.get(path).map(|own| standard(own.value, &own.unit, unit))
    }

    fn volumes(&self) -> Option<String> {
        let weight = self.plain("Organism|Weight", "kg").or_else(|| self.plain("Weight", "kg"))?;
        let own: Vec<(&str, f64)> =
            ORGANS.iter().filter_map(|organ| Some((organ.volume, self.read(organ.names, "Volume", "L")?))).collect();
        let total: f64 = own.iter().map(|(_, volume)| volume).sum();
        let each: Vec<String> = own.iter().map(|(label, volume)| format!("{label}={volume:.3} L")).collect();
        (total > weight).then(|| {
            let each = each.join(", ");
            format!("Total organ volume ({total:.3} L) exceeds body weight ({weight:.3} kg). Organs: {each}")
        })
    }

    fn flows(&self) -> Option<String> {
        let output = self.plain("Organism|CardiacOutput", "L/min").or_else(|| self.plain("CardiacOutput", "L/min"))?;
        let own: Vec<(&str, f64)> = ORGANS
            .iter()
            .filter_map(|organ| Some((organ.flow?, self.read(organ.names, "BloodFlow", "L/min")?)))
            .collect();
        let total: f64 = own.iter().map(|(_, flow)| flow).sum();
        let each: Vec<String> = own.iter().map(|(label, flow)| format!("{label}={flow:.3} L/min")).collect();
        (total > output).then(|| {
            let each = each.join(", ");
            format!(
                "Total organ blood flow ({total:.3} L/min) exceeds cardiac output ({output:.3} L/min). Flows: {each}"
            )
        })
    }

    fn hepatic(&self) -> Option<String> {
        let flow = self.read(&["Liver"], "BloodFlow", "L/min")?;
        let clearance = self.read(&["Liver"], "Clearance", "L/min")?;
        (clearance > flow)
            .then(|| format!("Hepatic clearance ({clearance:.3} L/min) exceeds hepatic blood flow ({flow:.3} L/min)"))
    }
}

/// Returns the violations of the rules in the parameters.
pub(crate) fn violations(parameters: &Parameters) -> Vec<String> {
    let view = View { parameters, proposed: None };
    [view.volumes(), view.flows(), view.hepatic()].into_iter().flatten().collect()
}

/// Refuses a change that violates the rules.
pub(crate) fn check(proposed: Proposed<'_>, parameters: &Parameters) -> Result<(), String> {
    let view = View { parameters, proposed: Some(proposed) };
    let about_the_liver = ["Liver|Clearance", "Liver|BloodFlow"].iter().any(|ending| proposed.path.ends_with(ending));
    let hepatic = if about_the_liver { view.hepatic() } else { None };
    let found: Vec<String> = [view.volumes(), view.flows(), hepatic].into_iter().flatten().collect();
    if found.is_empty() { Ok(()) } else { Err(format!("Cross-parameter consistency violation: {}", found.join("; "))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::models;

    fn sets(path: &str, value: f64, unit: Option<&str>, parameters: &Parameters) -> Result<(), String> {
        check(Proposed { path, value, unit }, parameters)
    }

    #[test]
    fn a_weight_below_the_organs_blocks_every_later_change() {
        let mut parameters = models::recorded();
        assert!(sets("Organism|Weight", 1.0, Some("kg"), &parameters).is_ok());
        parameters.get_mut("Organism|Weight").unwrap().value = 1.0;
        assert!(sets("Dose", 100.0, Some("mg"), &parameters).is_err());
        assert!(sets("Organism|Weight", 70.0, Some("kg"), &parameters).is_err());
    }

    #[test]
    fn a_clearance_without_a_unit_is_taken_for_litres_per_minute() {
        let parameters = models::demo("/data/models/demo.pkml").unwrap().parameters();
        assert!(violations(&parameters).is_empty());
        assert!(sets("Organism|Liver|Clearance", 12.0, Some("L/h"), &parameters).is_ok());
        let refused = sets("Organism|Liver|Clearance", 12.0, None, &parameters).unwrap_err();
        assert!(refused.ends_with("exceeds hepatic blood flow (1.000 L/min)"), "{refused}");
    }
}
