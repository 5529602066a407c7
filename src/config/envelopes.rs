//! `[approvals.envelopes.<name>]`: limits agreed beforehand for some contexts or things.

use serde::Deserialize;

use super::{
    measure::{Limits, Measure},
    nearest::nearest,
};

/// `[approvals.envelopes.<name>]`: the limits within which some things may be changed under the usual policy. A change
/// beyond them must be approved by two people other than the requester. A limit that is not set does not apply.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Envelope {
    /// The contexts to which the envelope applies.
    pub contexts: Vec<String>,
    /// The names of the things to which the envelope applies.
    pub subjects: Vec<String>,
    /// The limits, by key. The measures of the capabilities define the valid keys.
    #[serde(flatten)]
    pub limits: Limits,
}

impl Envelope {
    /// Returns every problem with the envelope, given the known measures: the key within the envelope, and a
    /// description with what would be right.
    pub fn problems(&self, measures: &[&[Measure]]) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let named = self.contexts.iter().chain(&self.subjects).filter(|name| !name.trim().is_empty()).count();
        if named == 0 || named != self.contexts.len() + self.subjects.len() {
            let what = "found no name, or an empty one; expected at least one of contexts and subjects";
            found.push(("subjects".to_owned(), what.to_owned()));
        }
        let known: Vec<&str> = ["contexts", "subjects"]
            .into_iter()
            .chain(measures.iter().copied().flatten().flat_map(Measure::keys))
            .collect();
        for key in self.limits.keys().filter(|key| !known.contains(&key.as_str())) {
            let near = nearest(key, known.iter().copied()).map(|near| format!("did you mean `{near}`? "));
            let what =
                format!("there is no such limit; {}the limits are {}", near.unwrap_or_default(), known.join(", "));
            found.push((key.clone(), what));
        }
        let wrong = measures.iter().copied().flatten().flat_map(|measure| measure.problems(&self.limits));
        found.extend(wrong.map(|(key, what)| (key.to_owned(), what)));
        found
    }
}
