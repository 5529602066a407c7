//! The simulated model files of the bridge.
//!
//! There are demonstration models in the configured folder, and a file outside of it that is
//! refused. The content of a file depends on the back end: nothing, the six parameters of the
//! recordings, or a model with many parameters.

use super::engine::{Parameter, Parameters};

/// The folder of the models. Relative paths refer to it.
pub(crate) const ROOT: &str = "/data/models";

/// A demonstration model.
#[derive(Debug)]
pub(crate) struct Demo {
    /// The path of the file.
    pub(crate) path: &'static str,
    /// The title.
    pub(crate) title: &'static str,
    parameters: &'static [(&'static str, f64, &'static str)],
}

impl Demo {
    /// Returns the parameters in the file.
    pub(crate) fn parameters(&self) -> Parameters {
        of(self.parameters)
    }
}

/// The demonstration models. The two for known substances have values from textbooks.
pub(crate) const DEMOS: &[Demo] = &[
    Demo {
        path: "/data/models/demo.pkml",
        title: "Demo compound in an adult",
        parameters: &[
            ("Compound|Bioavailability", 0.9, "unitless"),
            ("Compound|FractionUnbound", 0.25, "unitless"),
            ("Compound|Lipophilicity", 1.9, "logP"),
            ("Compound|HepaticPartition", 4.0, "unitless"),
            ("Compound|MolecularWeight", 250.0, "g/mol"),
            ("Compound|VolumePerWeight", 0.6, "L/kg"),
            ("Compound|ka", 1.2, "1/h"),
            ("Dose", 100.0, "mg"),
            ("Organism|Age", 30.0, "year(s)"),
            ("Organism|CardiacOutput", 5.6, "L/min"),
            ("Organism|Height", 176.0, "cm"),
            ("Organism|Kidney|Clearance", 2.0, "L/h"),
            ("Organism|Kidney|GFR", 0.12, "L/min"),
            ("Organism|Kidney|Volume", 0.31, "L"),
            ("Organism|Liver|BloodFlow", 1.0, "L/min"),
            ("Organism|Liver|Clearance", 6.0, "L/h"),
            ("Organism|Liver|Volume", 1.5, "L"),
            ("Organism|Weight", 70.0, "kg"),
            ("Simulation|EndTime", 24.0, "h"),
        ],
    },
    Demo {
        path: "/data/models/theophylline.pkml",
        title: "Theophylline in an adult",
        parameters: &[
            ("Compound|Bioavailability", 0.96, "unitless"),
            ("Compound|FractionUnbound", 0.6, "unitless"),
            ("Compound|Lipophilicity", -0.02, "logP"),
            ("Compound|HepaticPartition", 0.7, "unitless"),
            ("Compound|MolecularWeight", 180.16, "g/mol"),
            ("Compound|VolumePerWeight", 0.5, "L/kg"),
            ("Compound|ka", 1.5, "1/h"),
            ("Dose", 300.0, "mg"),
            ("Organism|Age", 35.0, "year(s)"),
            ("Organism|Kidney|Clearance", 0.3, "L/h"),
            ("Organism|Liver|BloodFlow", 1.0, "L/min"),
            ("Organism|Liver|Clearance", 2.5, "L/h"),
            ("Organism|Liver|Volume", 1.5, "L"),
            ("Organism|Weight", 70.0, "kg"),
            ("Simulation|EndTime", 48.0, "h"),
        ],
    },
    Demo {
        path: "/data/models/caffeine-child.pkml",
        title: "Caffeine in a child",
        parameters: &[
            ("Compound|Bioavailability", 1.0, "unitless"),
            ("Compound|FractionUnbound", 0.7, "unitless"),
            ("Compound|Lipophilicity", -0.07, "logP"),
            ("Compound|HepaticPartition", 1.0, "unitless"),
            ("Compound|MolecularWeight", 194.19, "g/mol"),
            ("Compound|VolumePerWeight", 0.6, "L/kg"),
            ("Compound|ka", 4.0, "1/h"),
            ("Dose", 50.0, "mg"),
            ("Organism|Age", 6.0, "year(s)"),
            ("Organism|Kidney|Clearance", 0.05, "L/h"),
            ("Organism|Liver|BloodFlow", 0.4, "L/min"),
            ("Organism|Liver|Clearance", 2.2, "L/h"),
            ("Organism|Liver|Volume", 0.55, "L"),
            ("Organism|Weight", 20.0, "kg"),
            ("Simulation|EndTime", 24.0, "h"),
        ],
    },
];

/// Other files that exist: a model of the recordings, and two files that are refused.
const OTHER_FILES: &[&str] = &["/data/models/study.pkml", "/data/models/demo.txt", "/data/outside.pkml"];

/// Returns the model with this path.
pub(crate) fn demo(path: &str) -> Option<&'static Demo> {
    DEMOS.iter().find(|demo| demo.path == path)
}

/// Returns the parameters of [`super::Backend::Recorded`].
pub(crate) fn recorded() -> Parameters {
    of(&[
        ("Compound|CL", 8.0, "L/h"),
        ("Compound|V", 42.0, "L"),
        ("Compound|ka", 1.2, "1/h"),
        ("Dose", 100.0, "mg"),
        ("Organism|Liver|Volume", 1.5, "L"),
        ("Organism|Weight", 70.0, "kg"),
    ])
}

fn of(rows: &[(&str, f64, &str)]) -> Parameters {
    let row = |(path, value, unit): &(&str, f64, &str)| {
        ((*path).to_owned(), Parameter { value: *value, unit: (*unit).to_owned() })
    };
    rows.iter().map(row).collect()
}

/// Returns the path with `.` and `..` resolved.
pub(crate) fn resolved(path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{ROOT}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Returns true if the file exists.
pub(crate) fn is_file(path: &str) -> bool {
    demo(path).is_some() || OTHER_FILES.contains(&path)
}

/// Returns the name of a file without its folder and extension.
pub(crate) fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}
