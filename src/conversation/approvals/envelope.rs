//! Checks whether a change is inside its envelopes, which are limits agreed beforehand.
//!
//! The result depends only on the configured envelopes and the scope of the change. An envelope
//! applies only if it names one of the change's subjects or contexts. All envelopes that apply must
//! hold for the whole change.

use std::collections::BTreeMap;

use countersign_config::{Envelope, Measure};
use countersign_graph::action::{Policy, Scope};

/// The minimum number of people who must approve a change outside of its envelopes.
const APPROVALS_OUTSIDE: u32 = 2;

/// Returns the policy of a change. Inside the envelopes it is the usual one; outside, at least two
/// people must approve, and requesters may not.
pub fn tightened(
    usual: Policy,
    envelopes: &BTreeMap<String, Envelope>,
    measures: &[&[Measure]],
    scope: &Scope,
) -> Policy {
    match violation_of(envelopes, measures, scope) {
        None => usual,
        // Outside of what was agreed, a second pair of eyes is the point, so the requester does not count, and no word
        // in passing.
        Some(why) => Policy {
            own_request: false,
            needed: usual.needed.max(APPROVALS_OUTSIDE),
            typed: false,
            because: Some(match &usual.because {
                Some(also) => format!("{also}. {why}"),
                None => why,
            }),
            ..usual
        },
    }
}

/// Returns the reason why a change is outside, such as `outside the envelope pilot: 500 simulated
/// users, at most 200`; `None` if it is inside.
pub fn violation_of(envelopes: &BTreeMap<String, Envelope>, measures: &[&[Measure]], scope: &Scope) -> Option<String> {
    let concerned = envelopes.iter().filter(|(_, envelope)| applies_to(envelope, scope));
    let broken = concerned.filter_map(|(name, envelope)| {
        let broken = exceeded_limits(envelope, measures, scope);
        (!broken.is_empty()).then(|| format!("outside the envelope {name}: {}", broken.join("; ")))
    });
    let broken: Vec<_> = broken.collect();
    (!broken.is_empty()).then(|| broken.join(". "))
}

/// Returns true if the envelope names one of the change's subjects or contexts.
fn applies_to(envelope: &Envelope, scope: &Scope) -> bool {
    let among = |ours: &[String], theirs: &[String]| {
        ours.iter().any(|one| theirs.iter().any(|other| one.trim().to_lowercase() == other.trim().to_lowercase()))
    };
    among(&envelope.subjects, &scope.subjects) || among(&envelope.contexts, &scope.contexts)
}

/// Returns a description of each limit that is exceeded.
fn exceeded_limits(envelope: &Envelope, measures: &[&[Measure]], scope: &Scope) -> Vec<String> {
    let beyond = |measure: &Measure| {
        let values = scope.measures.get(measure.name).map(Vec::as_slice).unwrap_or_default();
        measure.violations(&envelope.limits, values)
    };
    measures.iter().copied().flatten().flat_map(beyond).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use countersign_graph::action::Approver;

    fn pilot(limits: Envelope) -> BTreeMap<String, Envelope> {
        let envelope = Envelope { subjects: vec!["Math Hints".to_owned()], ..limits };
        BTreeMap::from([("pilot".to_owned(), envelope)])
    }

    fn limits(limits: Value) -> Envelope {
        Envelope { limits: serde_json::from_value(limits).unwrap(), ..Envelope::default() }
    }

    /// The measures of the tests.
    const MEASURES: &[&[Measure]] = &[countersign_experiments::settings::MEASURES];

    fn about(experiment: &str) -> Scope {
        Scope::of("experiment:1").of_subject(experiment).in_context("assign-prog")
    }

    #[test]
    fn each_limit_includes_its_bounds() {
        let limits = limits(json!({
            "statuses": ["enrolling", "enrollmentComplete"],
            "least_weight": 10,
            "most_weight": 90.0,
            "earliest_start": "2027-01-15",
            "latest_start": "2027-01-31T12:00:00Z",
            "earliest_end": "2027-02-01",
            "latest_end": "2027-03-01",
            "most_users": 200,
        }));
        let cases: [(&str, Value, Option<&str>); 18] = [
            ("status", "enrolling".into(), None),
            ("status", "cancelled".into(), Some("status cancelled, allowed: enrolling, enrollmentComplete")),
            ("weight", 10.0.into(), None),
            ("weight", 9.996.into(), None),
            ("weight", 9.5.into(), Some("a weight of 9.5 %, at least 10 %")),
            ("weight", 90.into(), None),
            ("weight", 95.0.into(), Some("a weight of 95 %, at most 90 %")),
            ("start", "2027-01-15T00:00:00.000Z".into(), None),
            (
                "start",
                "2027-01-14T23:59:00Z".into(),
                Some("starts 2027-01-14 23:59 UTC, not before 2027-01-15 00:00 UTC"),
            ),
            ("start", "2027-01-31T12:00:00Z".into(), None),
            (
                "start",
                "2027-01-31T12:01:00Z".into(),
                Some("starts 2027-01-31 12:01 UTC, not after 2027-01-31 12:00 UTC"),
            ),
            ("end", "2027-02-15T00:00:00Z".into(), None),
            ("end", "2027-01-31T00:00:00Z".into(), Some("ends 2027-01-31 00:00 UTC, not before 2027-02-01 00:00 UTC")),
            ("end", "2027-03-01T00:01:00Z".into(), Some("ends 2027-03-01 00:01 UTC, not after 2027-03-01 00:00 UTC")),
            ("users", 200.into(), None),
            ("users", 500.into(), Some("500 simulated users, at most 200")),
            ("users", "many".into(), Some("many simulated users, at most 200")),
            ("tags", "anything".into(), None),
        ];
        for (measure, value, expected) in cases {
            let found =
                violation_of(&pilot(limits.clone()), MEASURES, &about("math hints ").measure(measure, value.clone()));
            let expected = expected.map(|expected| format!("outside the envelope pilot: {expected}"));
            assert_eq!(found, expected, "{measure} {value}");
        }
    }

    #[test]
    fn outside_two_other_people_must_approve() {
        let usual = Policy {
            approvers: vec![Approver::Channel],
            also: Vec::new(),
            own_request: true,
            needed: 1,
            typed: true,
            escalation: None,
            because: None,
            apart: None,
        };
        let all = pilot(limits(json!({ "most_users": 200 })));
        let inside = tightened(usual.clone(), &all, MEASURES, &about("Math Hints").measure("users", 200));
        assert_eq!(inside, usual);
        let outside = tightened(usual.clone(), &all, MEASURES, &about("Math Hints").measure("users", 500));
        let why = "outside the envelope pilot: 500 simulated users, at most 200";
        let expected = Policy { own_request: false, needed: 2, typed: false, because: Some(why.to_owned()), ..usual };
        assert_eq!(outside, expected);
        let three = tightened(
            Policy { needed: 3, ..expected.clone() },
            &all,
            MEASURES,
            &about("Math Hints").measure("users", 500),
        );
        assert_eq!(three.needed, 3, "an envelope never reduces the required approvals");
    }

    #[test]
    fn every_value_counts_and_every_exceeded_limit_is_listed() {
        let limits = limits(json!({ "most_weight": 80, "most_users": 10 }));
        let scope = about("Math Hints").measure("weight", 10).measure("weight", 90).measure("users", 11);
        let told = "outside the envelope pilot: a weight of 90 %, at most 80 %; 11 simulated users, at most 10";
        assert_eq!(violation_of(&pilot(limits), MEASURES, &scope).as_deref(), Some(told));
    }

    #[test]
    fn an_envelope_does_not_limit_anything_else() {
        let limits = limits(json!({ "most_users": 10 }));
        let users = |scope: Scope| scope.measure("users", 500);
        assert_eq!(violation_of(&pilot(limits.clone()), MEASURES, &users(about("Other"))), None);
        assert_eq!(violation_of(&BTreeMap::new(), MEASURES, &users(about("Math Hints"))), None);
        assert_eq!(
            violation_of(&pilot(limits), MEASURES, &about("Math Hints")),
            None,
            "the change has no limited value"
        );
    }

    #[test]
    fn all_applicable_envelopes_must_hold() {
        let of_context = Envelope { contexts: vec!["ASSIGN-prog".to_owned()], ..limits(json!({ "most_users": 100 })) };
        let mut all = pilot(limits(json!({ "most_users": 200 })));
        all.insert("all of it".to_owned(), of_context);
        let found = violation_of(&all, MEASURES, &about("Math Hints").measure("users", 150));
        assert_eq!(found.as_deref(), Some("outside the envelope all of it: 150 simulated users, at most 100"));
        let found = violation_of(&all, MEASURES, &about("Math Hints").measure("users", 500)).unwrap();
        assert!(found.contains("all of it") && found.contains("pilot"), "{found}");
    }

    #[test]
    fn one_named_experiment_of_several_is_enough() {
        let limits = limits(json!({ "statuses": [] }));
        let scope = about("Other").of_subject("Math Hints").measure("status", "enrolling");
        let told = "outside the envelope pilot: status enrolling, allowed: none";
        assert_eq!(violation_of(&pilot(limits), MEASURES, &scope).as_deref(), Some(told));
    }
}
