//! Whether a change is inside what was agreed beforehand.
//!
//! Pure: the configured envelopes and what a change is about in, a sentence out. An envelope that names none of the
//! experiments and contexts of a change says nothing of it; of those that do, each must hold for all of the change.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    config::{Envelope, envelope_moment},
    graph::action::{Policy, Scope},
};

/// How many have to approve what is outside.
const NEEDED: u32 = 2;

/// The policy of a change: the usual one inside, and outside two people of whom none asked for it.
pub fn stricter(usual: Policy, envelopes: &BTreeMap<String, Envelope>, scope: &Scope) -> Policy {
    match outside(envelopes, scope) {
        None => usual,
        Some(why) => Policy {
            own_request: false,
            needed: usual.needed.max(NEEDED),
            typed: false,
            because: Some(match &usual.because {
                Some(also) => format!("{also}. {why}"),
                None => why,
            }),
            ..usual
        },
    }
}

/// Why a change is outside: `outside the envelope pilot: 500 simulated users, at most 200`. Nothing if it is not.
pub fn outside(envelopes: &BTreeMap<String, Envelope>, scope: &Scope) -> Option<String> {
    let concerned = envelopes.iter().filter(|(_, envelope)| names(envelope, scope));
    let broken = concerned.filter_map(|(name, envelope)| {
        let broken = broken(envelope, scope);
        (!broken.is_empty()).then(|| format!("outside the envelope {name}: {}", broken.join("; ")))
    });
    let broken: Vec<_> = broken.collect();
    (!broken.is_empty()).then(|| broken.join(". "))
}

/// Whether it is about something that changes.
fn names(envelope: &Envelope, scope: &Scope) -> bool {
    let among = |ours: &[String], theirs: &[String]| {
        ours.iter().any(|one| theirs.iter().any(|other| one.trim().to_lowercase() == other.trim().to_lowercase()))
    };
    among(&envelope.experiments, &scope.experiments) || among(&envelope.contexts, &scope.contexts)
}

/// Each limit that does not hold.
fn broken(envelope: &Envelope, scope: &Scope) -> Vec<String> {
    let mut broken = Vec::new();
    let values = |measure: &str| scope.measures.get(measure).into_iter().flatten();
    if let Some(allowed) = &envelope.statuses {
        let is_allowed = |status: &str| allowed.iter().any(|one| one == status);
        for status in values("status").filter(|status| !status.as_str().is_some_and(is_allowed)) {
            let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
            broken.push(format!("status {}, allowed: {allowed}", word(status)));
        }
    }
    for weight in values("weight") {
        // A weight is stored in single precision: a hundredth is no difference.
        let beyond = |limit: f64, sign: f64| weight.as_f64().is_none_or(|weight| (weight - limit) * sign > 0.01);
        if let Some(least) = envelope.least_weight.filter(|least| beyond(*least, -1.0)) {
            broken.push(format!("a weight of {} %, at least {least} %", word(weight)));
        }
        if let Some(most) = envelope.most_weight.filter(|most| beyond(*most, 1.0)) {
            broken.push(format!("a weight of {} %, at most {most} %", word(weight)));
        }
    }
    let moments = [
        ("start", "starts", &envelope.earliest_start, &envelope.latest_start),
        ("end", "ends", &envelope.earliest_end, &envelope.latest_end),
    ];
    for (measure, verb, earliest, latest) in moments {
        for at in values(measure) {
            let when: Option<Timestamp> = at.as_str().and_then(|at| at.parse().ok());
            let limit = |given: &Option<String>| given.as_deref().and_then(envelope_moment);
            if let Some(earliest) = limit(earliest).filter(|earliest| when.is_none_or(|when| when < *earliest)) {
                broken.push(format!("{verb} {}, not before {}", day(at), minutes(earliest)));
            }
            if let Some(latest) = limit(latest).filter(|latest| when.is_none_or(|when| when > *latest)) {
                broken.push(format!("{verb} {}, not after {}", day(at), minutes(latest)));
            }
        }
    }
    if let Some(most) = envelope.most_users {
        for users in values("users").filter(|users| users.as_u64().is_none_or(|users| users > most)) {
            broken.push(format!("{} simulated users, at most {most}", word(users)));
        }
    }
    broken
}

/// A value as people write it: `70`, not `70.0`.
fn word(value: &Value) -> String {
    match (value.as_str(), value.as_f64()) {
        (Some(words), _) => words.to_owned(),
        (None, Some(number)) => number.to_string(),
        (None, None) => value.to_string(),
    }
}

fn day(value: &Value) -> String {
    let at: Option<Timestamp> = value.as_str().and_then(|at| at.parse().ok());
    at.map_or_else(|| word(value), minutes)
}

fn minutes(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::action::Approver;

    fn pilot(limits: Envelope) -> BTreeMap<String, Envelope> {
        let envelope = Envelope { experiments: vec!["Math Hints".to_owned()], ..limits };
        BTreeMap::from([("pilot".to_owned(), envelope)])
    }

    fn about(experiment: &str) -> Scope {
        Scope::of("experiment:1").of_experiment(experiment).in_context("assign-prog")
    }

    #[test]
    fn each_limit_holds_up_to_its_edge() {
        let limits = Envelope {
            statuses: Some(vec!["enrolling".to_owned(), "enrollmentComplete".to_owned()]),
            least_weight: Some(10.0),
            most_weight: Some(90.0),
            earliest_start: Some("2027-01-15".to_owned()),
            latest_start: Some("2027-01-31T12:00:00Z".to_owned()),
            earliest_end: Some("2027-02-01".to_owned()),
            latest_end: Some("2027-03-01".to_owned()),
            most_users: Some(200),
            ..Envelope::default()
        };
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
            let found = outside(&pilot(limits.clone()), &about("math hints ").measure(measure, value.clone()));
            let expected = expected.map(|expected| format!("outside the envelope pilot: {expected}"));
            assert_eq!(found, expected, "{measure} {value}");
        }
    }

    #[test]
    fn outside_two_others_have_to_approve_and_the_policy_says_why() {
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
        let all = pilot(Envelope { most_users: Some(200), ..Envelope::default() });
        let inside = stricter(usual.clone(), &all, &about("Math Hints").measure("users", 200));
        assert_eq!(inside, usual);
        let outside = stricter(usual.clone(), &all, &about("Math Hints").measure("users", 500));
        let why = "outside the envelope pilot: 500 simulated users, at most 200";
        let expected = Policy { own_request: false, needed: 2, typed: false, because: Some(why.to_owned()), ..usual };
        assert_eq!(outside, expected);
        let three =
            stricter(Policy { needed: 3, ..expected.clone() }, &all, &about("Math Hints").measure("users", 500));
        assert_eq!(three.needed, 3, "an envelope makes nothing easier");
    }

    #[test]
    fn every_value_counts_and_every_limit_is_told() {
        let limits = Envelope { most_weight: Some(80.0), most_users: Some(10), ..Envelope::default() };
        let scope = about("Math Hints").measure("weight", 10).measure("weight", 90).measure("users", 11);
        let told = "outside the envelope pilot: a weight of 90 %, at most 80 %; 11 simulated users, at most 10";
        assert_eq!(outside(&pilot(limits), &scope).as_deref(), Some(told));
    }

    #[test]
    fn an_envelope_says_nothing_of_what_it_does_not_name() {
        let limits = Envelope { most_users: Some(10), ..Envelope::default() };
        let users = |scope: Scope| scope.measure("users", 500);
        assert_eq!(outside(&pilot(limits.clone()), &users(about("Other"))), None);
        assert_eq!(outside(&BTreeMap::new(), &users(about("Math Hints"))), None);
        assert_eq!(outside(&pilot(limits), &about("Math Hints")), None, "nothing that it limits");
    }

    #[test]
    fn of_several_envelopes_each_must_hold() {
        let of_context =
            Envelope { contexts: vec!["ASSIGN-prog".to_owned()], most_users: Some(100), ..Envelope::default() };
        let mut all = pilot(Envelope { most_users: Some(200), ..Envelope::default() });
        all.insert("all of it".to_owned(), of_context);
        let found = outside(&all, &about("Math Hints").measure("users", 150));
        assert_eq!(found.as_deref(), Some("outside the envelope all of it: 150 simulated users, at most 100"));
        let found = outside(&all, &about("Math Hints").measure("users", 500)).unwrap();
        assert!(found.contains("all of it") && found.contains("pilot"), "{found}");
    }

    #[test]
    fn of_several_experiments_one_is_enough_to_be_named() {
        let limits = Envelope { statuses: Some(Vec::new()), ..Envelope::default() };
        let scope = about("Other").of_experiment("Math Hints").measure("status", "enrolling");
        let told = "outside the envelope pilot: status enrolling, allowed: none";
        assert_eq!(outside(&pilot(limits), &scope).as_deref(), Some(told));
    }
}
