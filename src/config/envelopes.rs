//! `[approvals.envelopes.<name>]`: limits that were agreed beforehand for some contexts or things.

use serde::Deserialize;

use super::{
    measure::{Limits, Measure},
    nearest::nearest,
};

/// `[approvals.envelopes.<name>]`: the limits within which some things may be changed by the usual policy. Beyond them
/// two people have to approve, and neither may be the one who asked. A limit that is not set does not apply.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Envelope {
    /// The contexts it applies to.
    pub contexts: Vec<String>,
    /// The things it applies to, by name. Settings of earlier versions have another key.
    #[serde(alias = "experiments")]
    pub subjects: Vec<String>,
    /// Limits by key; the measures of the capabilities define which keys exist.
    #[serde(flatten)]
    pub limits: Limits,
}

impl Envelope {
    /// Returns every problem if its limits are those of these measures: the key within the envelope, and what would be
    /// right.
    pub fn problems(&self, measures: &[&[Measure]]) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let named = self.contexts.iter().chain(&self.subjects).filter(|name| !name.trim().is_empty()).count();
        if named == 0 || named != self.contexts.len() + self.subjects.len() {
            let what = "found no name, or an empty one; right would be at least one of contexts and subjects";
            found.push(("subjects".to_owned(), what.to_owned()));
        }
        let known: Vec<&str> = ["contexts", "subjects"]
            .into_iter()
            .chain(measures.iter().copied().flatten().flat_map(Measure::keys))
            .collect();
        for key in self.limits.keys().filter(|key| !known.contains(&key.as_str())) {
            let near = nearest(key, known.iter().copied()).map(|near| format!("did you mean `{near}`? "));
            let what = format!("there is no such limit; {}there are {}", near.unwrap_or_default(), known.join(", "));
            found.push((key.clone(), what));
        }
        let wrong = measures.iter().copied().flatten().flat_map(|measure| measure.problems(&self.limits));
        found.extend(wrong.map(|(key, what)| (key.to_owned(), what)));
        found
    }
}
