//! The search for simulations and parameters by a person's words.

use countersign_capabilities::{
    ToolError,
    parameters::{incomplete, non_blank, refused},
};
use countersign_core::units::quantity;
use countersign_graph::action::{ErrorKind, PrepareError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Deps,
    bridge::{
        client::Version,
        data::{Loaded, Parameter, without_copies},
        error::Error,
    },
    ranges::{self, Range},
    replies::{errors, refusals},
};

/// The maximum number of names that are offered.
const MAX_OFFERED: usize = 8;

/// People's words, each with the words of paths that it can mean.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("body", &["organism"]),
    ("subject", &["organism"]),
    ("patient", &["organism"]),
    ("person", &["organism"]),
    ("bodyweight", &["weight"]),
    ("clearance", &["cl", "clearance"]),
    ("cl", &["clearance", "cl"]),
    ("size", &["volume"]),
    ("vol", &["volume"]),
    ("hepatic", &["liver"]),
    ("renal", &["kidney"]),
    ("cardiac", &["heart", "cardiac"]),
    ("dosage", &["dose"]),
    ("absorption", &["ka", "absorption"]),
    ("mass", &["weight", "mass"]),
    ("weight", &["weight", "mass"]),
    ("flow", &["flow", "bloodflow"]),
];

/// Words that do not help to identify a parameter.
const STOP_WORDS: &[&str] = &["the", "a", "an", "of", "parameter", "value", "its", "rate", "in", "for"];

/// The simulation of a request, as far as it is given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Target {
    /// The simulation, by name. Optional if only one is loaded.
    #[serde(default)]
    simulation: Option<String>,
    /// The simulation mentioned before, if none is named.
    #[serde(default)]
    active: Option<String>,
}

impl Target {
    /// Returns the name, if one was given.
    pub fn name(&self) -> Option<&str> {
        non_blank(self.simulation.as_ref())
    }

    /// Returns the simulation mentioned before.
    pub fn active(&self) -> Option<&str> {
        non_blank(self.active.as_ref())
    }
}

/// Returns the simulation that is meant: the named one, otherwise the one mentioned before, otherwise the only one.
/// `says` turns a name into a whole request.
///
/// # Errors
///
/// A question if several are loaded, or a refusal if the named one is not.
pub async fn simulation(deps: &Deps, target: &Target, says: impl Fn(&str) -> String) -> Result<Loaded, PrepareError> {
    let everything = deps.client.simulations_and_copies().await?;
    // A copy of a sensitivity analysis is meant only if it is named.
    let (name, active) = (target.name(), target.active());
    let named = name.and_then(|name| everything.iter().find(|loaded| loaded.id == name)).cloned();
    let (all, _) = without_copies(everything);
    let known = |id: &str| all.iter().any(|loaded| loaded.id == id && loaded.file.is_some());
    let only = (all.len() == 1).then(|| all[0].id.as_str());
    for meant in [name, active, only].into_iter().flatten().filter(|id| !known(id)) {
        deps.memory.recall(meant).await;
    }
    let Some(asked) = name else {
        if let Some(active) = all.iter().find(|loaded| active == Some(loaded.id.as_str())) {
            return Ok(active.clone());
        }
        let gone = active.filter(|active| deps.memory.file(active).is_some());
        return match (all.as_slice(), gone) {
            ([], Some(gone)) => Err(refused(ErrorKind::NotFound, refusals::forgotten(deps, gone))),
            ([], None) => Err(refused(ErrorKind::NotFound, refusals::nothing_loaded(deps))),
            ([one], _) => Ok(one.clone()),
            (several, _) => {
                let options = several.iter().map(|loaded| loaded.id.clone()).take(25).collect();
                Err(incomplete("simulation", "Which simulation?", options))
            }
        };
    };
    let mut same = all.iter().filter(|loaded| loaded.id.eq_ignore_ascii_case(asked));
    match (named, same.next(), same.next()) {
        (Some(one), ..) => Ok(one),
        (None, Some(one), None) => Ok(one.clone()),
        _ => {
            let files = listed_models(deps).await.map_or_else(Vec::new, |listed| models_named(&listed, asked));
            Err(refused(ErrorKind::NotFound, refusals::not_loaded(deps, asked, &all, &files, says)))
        }
    }
}

/// Returns the path of the parameter that is meant.
///
/// # Errors
///
/// A refusal with similar paths, or with the paths that fit if there are several.
pub async fn parameter(
    deps: &Deps,
    simulation: &str,
    asked: &str,
    says: impl Fn(&str) -> String,
) -> Result<String, PrepareError> {
    let paths = deps.client.parameters(simulation).await.map_err(|error| not_read(deps, simulation, error))?;
    let asked = asked.trim();
    if asked.is_empty() || asked.chars().any(char::is_control) || asked.chars().count() > 300 {
        return Err(refused(ErrorKind::Validation, refusals::no_path()));
    }
    match best(&paths, asked).as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            if paths.iter().all(|path| !path.contains('|')) || creates_parameters(deps).await {
                return Ok(asked.to_owned());
            }
            Err(refused(
                ErrorKind::NotFound,
                refusals::unknown_parameter(asked, simulation, &similar(&paths, asked), says),
            ))
        }
        several => Err(refused(ErrorKind::UserInput, refusals::several_parameters(asked, several, says))),
    }
}

/// Returns the model files that the bridge can load; `None` if it does not list them.
pub async fn listed_models(deps: &Deps) -> Option<Vec<String>> {
    if deps.client.version().await.ok()? == Version::V01 {
        return None;
    }
    deps.client.models().await.ok()
}

/// Returns the path of the model file that is meant: a path as it is, otherwise the one listed file that has these words in
/// its name. Where no files are listed, it is a file in the folder of models; `None` if that is not known either. `says` turns
/// a path into a whole request.
///
/// # Errors
///
/// A question if several listed files have these words, or a refusal if none has.
pub async fn model_file(
    deps: &Deps,
    named: &str,
    says: impl Fn(&str) -> String,
) -> Result<Option<String>, PrepareError> {
    let is_path = named.contains(['/', '\\']);
    let Some(listed) = listed_models(deps).await.filter(|listed| !is_path && !listed.is_empty()) else {
        return Ok(deps.settings.file_named(named));
    };
    match models_named(&listed, named).as_slice() {
        [one] => Ok(Some(one.clone())),
        [] => Err(refused(ErrorKind::NotFound, refusals::no_model(named, &listed, says))),
        several => Err(refused(ErrorKind::UserInput, refusals::several_models(named, several, says))),
    }
}

/// Returns the last part of a path, whichever system it is of.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns the model files with these words in their names; only the one of exactly this name, if there is one.
pub fn models_named(listed: &[String], named: &str) -> Vec<String> {
    const NOUNS: &[&str] = &["the", "a", "an", "model", "models", "file", "simulation", "one"];
    let named = named.trim().to_lowercase();
    let short = |path: &String| file_name(path).to_lowercase();
    let stem = |path: &String| short(path).rsplit_once('.').map_or_else(|| short(path), |(stem, _)| stem.to_owned());
    let wanted: Vec<String> = words(&named).into_iter().filter(|word| !NOUNS.contains(&word.as_str())).collect();
    let exact = listed.iter().find(|path| short(path) == named || words(&stem(path)) == wanted);
    if let Some(exact) = exact {
        return vec![exact.clone()];
    }
    let has = |path: &&String| {
        let parts = words(&short(path));
        let begins = |word: &String| parts.iter().any(|part| part == word || word.len() > 3 && part.starts_with(word));
        !wanted.is_empty() && wanted.iter().all(begins)
    };
    listed.iter().filter(has).cloned().collect()
}

/// Returns true if the engine behind the bridge has no model of its own and creates any parameter that is set.
async fn creates_parameters(deps: &Deps) -> bool {
    deps.client.engine().await.ok().flatten().as_deref() == Some("inmemory")
}

/// Returns a parameter with its value; `None` if it has no value yet.
///
/// # Errors
///
/// A refusal if the simulation is gone, or an error of the bridge.
pub async fn value(deps: &Deps, simulation: &str, path: &str) -> Result<Option<Parameter>, PrepareError> {
    match deps.client.parameter(simulation, path).await {
        Ok(parameter) => Ok(Some(parameter)),
        Err(Error::NotFound { reason }) if !reason.contains("Simulation") => Ok(None),
        Err(error) => Err(not_read(deps, simulation, error)),
    }
}

/// Returns the reference range of a parameter, scaled to the present body weight; `None` if it has none.
pub async fn range(deps: &Deps, simulation: &str, path: &str) -> Option<Range> {
    let weight = deps.client.parameter(simulation, ranges::BODY_WEIGHT).await.ok().map(|weight| weight.value);
    Range::of(path, weight)
}

/// Checks values against the range in which the bridge allows them. Returns the range; `None` if this bridge checks none
/// or the parameter has none.
///
/// # Errors
///
/// A refusal for the first value outside of the range, or an error of the bridge.
pub async fn allowed(
    deps: &Deps,
    simulation: &str,
    path: &str,
    values: &[f64],
    unit: Option<&str>,
) -> Result<Option<Range>, PrepareError> {
    if deps.client.version().await? == Version::V01 {
        return Ok(None);
    }
    let Some(range) = range(deps, simulation, path).await else { return Ok(None) };
    match values.iter().find(|value| !range.allows(**value)) {
        Some(value) => {
            Err(refused(ErrorKind::Validation, refusals::out_of_range(path, &quantity(*value, unit), &range)))
        }
        None => Ok(Some(range)),
    }
}

/// Returns the error of `prepare` for a failed read about a simulation.
pub fn not_read(deps: &Deps, simulation: &str, error: Error) -> PrepareError {
    match error.forgot(simulation) {
        true => refused(ErrorKind::NotFound, refusals::forgotten(deps, simulation)),
        false => error.into(),
    }
}

impl From<Error> for PrepareError {
    /// A failed read.
    fn from(error: Error) -> Self {
        let (kind, reply) = (errors::kind(&error), errors::reply(&error));
        match error {
            Error::Unavailable { .. } | Error::Busy | Error::NoAnswer { .. } => {
                Self::Unavailable { error: kind, reply }
            }
            _ => refused(kind, reply),
        }
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        PrepareError::from(error).into()
    }
}

/// Returns true if these words may mean the parameter with this path.
pub fn is_named(path: &str, asked: &str) -> bool {
    !best(&[path.to_owned()], asked).is_empty()
}

/// Returns the paths that fit these words best: a single one if the match is unambiguous.
fn best(paths: &[String], asked: &str) -> Vec<String> {
    let exact = paths.iter().find(|path| *path == asked);
    let folded = |text: &str| text.to_lowercase().replace([' ', '_', '-'], "");
    if let Some(path) = exact.or_else(|| paths.iter().find(|path| folded(path) == folded(asked))) {
        return vec![path.clone()];
    }
    if asked.contains('|') {
        // The end of a path is enough if only one path ends so.
        let ends = paths.iter().filter(|path| folded(path).ends_with(&format!("|{}", folded(asked))));
        return ends.take(MAX_OFFERED).cloned().collect();
    }
    let wanted: Vec<String> = words(asked).into_iter().filter(|word| !STOP_WORDS.contains(&word.as_str())).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let fits = |path: &&String| {
        let path_words = words(path);
        wanted.iter().all(|word| has_word(&path_words, word))
    };
    let all: Vec<&String> = paths.iter().filter(fits).collect();
    // A parameter called “Dose” is preferred to one that only contains the word.
    let last = |path: &&&String| path.rsplit('|').next().is_some_and(|last| folded(last) == folded(asked));
    let named: Vec<&String> = all.iter().filter(last).copied().collect();
    let found = if named.len() == 1 { named } else { all };
    found.into_iter().take(MAX_OFFERED).cloned().collect()
}

/// Returns paths that share a word with these words or are spelt similarly.
fn similar(paths: &[String], asked: &str) -> Vec<String> {
    let wanted = words(asked);
    let mut scored: Vec<(usize, &String)> = paths
        .iter()
        .map(|path| {
            let path_words = words(path);
            (wanted.iter().filter(|word| has_word(&path_words, word)).count(), path)
        })
        .filter(|(score, _)| *score > 0)
        .collect();
    scored.sort_by_key(|(score, path)| (usize::MAX - score, path.len()));
    let near =
        |path: &&String| strsim::normalized_damerau_levenshtein(&path.to_lowercase(), &asked.to_lowercase()) > 0.6;
    let spelt = paths.iter().filter(near).map(|path| (0, path));
    let mut found: Vec<String> = Vec::new();
    for (_, path) in scored.into_iter().chain(spelt) {
        if found.len() < 5 && !found.contains(path) {
            found.push(path.clone());
        }
    }
    found
}

/// Returns true if a path has this word or a synonym of it.
fn has_word(path_words: &[String], word: &str) -> bool {
    let meant = SYNONYMS.iter().find(|(said, _)| *said == word).map(|(_, meant)| *meant);
    path_words.iter().any(|part| part == word || meant.is_some_and(|meant| meant.contains(&part.as_str())))
}

/// Returns the words of a path or a request in lower case: `SmallIntestine|BloodFlow` has four.
fn words(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        let begins = !c.is_alphanumeric() || c.is_uppercase() && before.is_lowercase();
        if begins {
            found.push(String::new());
        }
        if c.is_alphanumeric() {
            found.last_mut().expect("there is one").extend(c.to_lowercase());
        }
        before = c;
    }
    found.retain(|word| !word.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Vec<String> {
        [
            "Compound|CL",
            "Compound|V",
            "Compound|ka",
            "Dose",
            "Organism|Liver|Volume",
            "Organism|Weight",
            "Organism|Liver|BloodFlow",
        ]
        .map(str::to_owned)
        .into()
    }

    #[test]
    fn a_model_file_is_found_by_a_part_of_its_name() {
        let listed = ["demo", "demo-long", "theophylline", "caffeine-child", "caffeine-adult"];
        let listed = listed.map(|stem| format!("/data/models/{stem}.pkml"));
        let found = |named: &str| {
            let found = models_named(&listed, named);
            found.iter().map(|path| path["/data/models/".len()..].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(found("demo"), ["demo.pkml"]);
        assert_eq!(found("demo.pkml"), ["demo.pkml"]);
        assert_eq!(found("the Theophylline model"), ["theophylline.pkml"]);
        assert_eq!(found("theo"), ["theophylline.pkml"]);
        assert_eq!(found("caffeine"), ["caffeine-child.pkml", "caffeine-adult.pkml"]);
        assert_eq!(found("child caffeine"), ["caffeine-child.pkml"]);
        assert!(found("aspirin").is_empty());
        assert!(found("the model").is_empty());
        assert!(found("a").is_empty());
    }

    #[test]
    fn a_parameter_is_found_by_the_words_of_people() {
        for (said, path) in [
            ("Organism|Weight", "Organism|Weight"),
            ("organism|weight", "Organism|Weight"),
            ("Liver|Volume", "Organism|Liver|Volume"),
            ("the body weight", "Organism|Weight"),
            ("weight", "Organism|Weight"),
            ("dose", "Dose"),
            ("the dose", "Dose"),
            ("liver volume", "Organism|Liver|Volume"),
            ("clearance", "Compound|CL"),
            ("hepatic blood flow", "Organism|Liver|BloodFlow"),
            ("ka", "Compound|ka"),
        ] {
            assert_eq!(best(&paths(), said), [path], "{said}");
        }
        assert_eq!(best(&paths(), "liver").len(), 2);
        assert!(best(&paths(), "kidney volume").is_empty());
        assert_eq!(
            similar(&paths(), "liver weight")[..],
            ["Organism|Weight", "Organism|Liver|Volume", "Organism|Liver|BloodFlow"]
        );
    }
}
