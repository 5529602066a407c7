//! `[approvals.envelopes.<name>]`: what was agreed beforehand about some contexts or things.

use serde::Deserialize;

use super::{
    measure::{Limits, Measure},
    nearest::nearest,
};

/// `[approvals.envelopes.<name>]`: the limits of what may be done to some things by the usual policy. Outside of them two
/// people have to approve, and neither may be the one who asked. What is not set is not limited.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Envelope {
    /// The contexts it is about.
    pub contexts: Vec<String>,
    /// The things it is about, by name. Settings of earlier versions have another key.
    #[serde(alias = "experiments")]
    pub subjects: Vec<String>,
    /// Limits by key; which there are, the measures of the capabilities say.
    #[serde(flatten)]
    pub limits: Limits,
}

impl Envelope {
    /// Everything that is wrong with it, if its limits are those of these measures: the key within it, and what would be
    /// right.
    pub(super) fn problems(&self, measures: &[&[Measure]]) -> Vec<(String, String)> {
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(envelope: Value) -> Vec<String> {
        let envelope: Envelope = serde_json::from_value(envelope).unwrap();
        envelope.problems(crate::app::installed::SETTINGS.measures).into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn every_wrong_limit_is_told() {
        let wrong = json!({
            "subjects": [" "],
            "statuses": ["running"],
            "least_weight": 60,
            "most_weight": 40,
            "earliest_start": "soon",
            "earliest_end": "2027-02-01",
            "latest_end": "2027-01-01T00:00:00Z",
            "most_users": -1,
            "most_user": 10,
        });
        let keys =
            ["subjects", "most_user", "statuses", "least_weight", "earliest_start", "earliest_end", "most_users"];
        assert_eq!(problems(wrong), keys);
        assert_eq!(problems(json!({ "subjects": ["A"], "statuses": "enrolling", "most_users": "many" })).len(), 2);
    }

    #[test]
    fn limits_that_fit_together_are_fine() {
        let fine = json!({
            "contexts": ["assign-prog"],
            "experiments": ["Math Hints"], // as in settings of earlier versions
            "statuses": ["enrolling", "enrollmentComplete"],
            "least_weight": 10.0,
            "most_weight": 90,
            "earliest_start": "2027-01-15",
            "latest_start": "2027-01-15T09:00:00Z",
            "most_users": 0,
        });
        assert_eq!(problems(fine), Vec::<String>::new());
    }
}
