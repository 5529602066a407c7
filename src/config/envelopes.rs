//! `[approvals.envelopes.<name>]`: what was agreed beforehand about a context or an experiment.

use jiff::{Timestamp, civil, tz::TimeZone};
use serde::Deserialize;

/// `[approvals.envelopes.<name>]`: the limits of what may be done to some experiments by the usual policy. Outside of them
/// two people have to approve, and neither may be the one who asked. What is not set is not limited.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Envelope {
    /// The contexts it is about.
    pub contexts: Vec<String>,
    /// The experiments it is about, by name.
    pub experiments: Vec<String>,
    /// The statuses that an experiment may be given, by their stored names such as `enrolling`.
    pub statuses: Option<Vec<String>>,
    /// The smallest weight of a condition, in percent.
    pub least_weight: Option<f64>,
    /// The largest weight of a condition, in percent.
    pub most_weight: Option<f64>,
    /// Before this no experiment may start by itself: a date or moment such as `2027-01-15` or `2027-01-15T09:00:00Z`.
    pub earliest_start: Option<String>,
    /// After this no experiment may start by itself.
    pub latest_start: Option<String>,
    /// Before this no experiment may end by itself.
    pub earliest_end: Option<String>,
    /// After this no experiment may end by itself.
    pub latest_end: Option<String>,
    /// The most simulated users of one test.
    pub most_users: Option<u64>,
}

/// The statuses that an experiment can be given.
const STATUSES: [&str; 6] = ["inactive", "scheduled", "enrolling", "enrollmentComplete", "cancelled", "archived"];

impl Envelope {
    /// Everything that is wrong with it: the key within it, and what would be right.
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let mut expect = |holds: bool, key: &'static str, what: String| {
            if !holds {
                found.push((key, what));
            }
        };
        let named = self.contexts.iter().chain(&self.experiments).filter(|name| !name.trim().is_empty()).count();
        let all = self.contexts.len() + self.experiments.len();
        expect(
            named > 0 && named == all,
            "experiments",
            "found no name, or an empty one; right would be at least one of contexts and experiments".to_owned(),
        );
        for status in self.statuses.iter().flatten() {
            let known = STATUSES.contains(&status.as_str());
            expect(known, "statuses", format!("found `{status}`; right would be {}", STATUSES.join(", ")));
        }
        for (key, weight) in [("least_weight", self.least_weight), ("most_weight", self.most_weight)] {
            let fits = weight.is_none_or(|weight| (0.0..=100.0).contains(&weight));
            expect(fits, key, format!("found {}; right would be 0 to 100", weight.unwrap_or_default()));
        }
        if let (Some(least), Some(most)) = (self.least_weight, self.most_weight) {
            expect(least <= most, "least_weight", format!("found {least}; right would be {most} or less"));
        }
        let pairs = [
            (("earliest_start", &self.earliest_start), ("latest_start", &self.latest_start)),
            (("earliest_end", &self.earliest_end), ("latest_end", &self.latest_end)),
        ];
        for (first, last) in pairs {
            for (key, given) in [first, last] {
                let readable = given.as_deref().is_none_or(|given| moment(given).is_some());
                let given = given.as_deref().unwrap_or_default();
                expect(readable, key, format!("found `{given}`; right would be a date such as 2027-01-15"));
            }
            let at = |given: &Option<String>| given.as_deref().and_then(moment);
            if let (Some(earliest), Some(latest)) = (at(first.1), at(last.1)) {
                let what = format!("found {earliest}; right would be {latest} or before");
                expect(earliest <= latest, first.0, what);
            }
        }
        found
    }
}

/// A date (its midnight, UTC) or a moment.
pub fn moment(given: &str) -> Option<Timestamp> {
    let given = given.trim();
    let midnight = |date: civil::Date| date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    given.parse().ok().or_else(|| given.parse().ok().and_then(midnight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrong_limit_is_told() {
        let envelope = Envelope {
            experiments: vec![" ".to_owned()],
            statuses: Some(vec!["running".to_owned()]),
            least_weight: Some(60.0),
            most_weight: Some(40.0),
            earliest_start: Some("soon".to_owned()),
            earliest_end: Some("2027-02-01".to_owned()),
            latest_end: Some("2027-01-01T00:00:00Z".to_owned()),
            ..Envelope::default()
        };
        let keys: Vec<_> = envelope.problems().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["experiments", "statuses", "least_weight", "earliest_start", "earliest_end"]);
    }

    #[test]
    fn limits_that_fit_together_are_fine() {
        let envelope = Envelope {
            contexts: vec!["assign-prog".to_owned()],
            statuses: Some(vec!["enrolling".to_owned(), "enrollmentComplete".to_owned()]),
            least_weight: Some(10.0),
            most_weight: Some(90.0),
            earliest_start: Some("2027-01-15".to_owned()),
            latest_start: Some("2027-01-15T09:00:00Z".to_owned()),
            most_users: Some(0),
            ..Envelope::default()
        };
        assert_eq!(envelope.problems(), []);
    }
}
