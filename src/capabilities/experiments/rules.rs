//! The changes of status that the bot makes.
//!
//! The server accepts any change, so this table of good practice is the only safeguard. A new experiment, or one in
//! preview, may start if it is complete; a running one may be stopped and resumed; a stopped one may be set back to
//! inactive; any experiment may be cancelled, and a cancelled one archived. Nothing here makes calls.

use crate::upgrade::{
    experiment::{Condition, View},
    status::Status,
};

/// The reason why a change of status is not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objection {
    /// The experiment already has this status.
    Already,
    /// The experiment could start, but has these shortcomings.
    NotReady(Vec<String>),
    /// The experiment cannot change from its present status to this one, only to these.
    NotPossible(Vec<Status>),
}

/// Checks that an experiment may move to `to` now.
///
/// # Errors
///
/// The [`Objection`].
pub fn check(experiment: &View, to: Status) -> Result<(), Objection> {
    if experiment.state == to && to != Status::Scheduled {
        return Err(Objection::Already);
    }
    if !may_become(experiment.state, to) {
        return Err(Objection::NotPossible(possible(experiment.state)));
    }
    match to {
        Status::Enrolling | Status::Scheduled => match shortcomings(experiment) {
            problems if problems.is_empty() => Ok(()),
            problems => Err(Objection::NotReady(problems)),
        },
        _ => Ok(()),
    }
}

/// Returns the statuses that are offered to an experiment with status `from`. Going back from paused
/// to inactive is possible but not offered.
pub fn possible(from: Status) -> Vec<Status> {
    let offered = |to: &Status| may_become(from, *to) && (from, *to) != (Status::EnrollmentComplete, Status::Inactive);
    Status::ALL.into_iter().filter(offered).collect()
}

/// Returns true if the bot moves an experiment from one status to the other.
pub fn may_become(from: Status, to: Status) -> bool {
    use Status::*;
    match (from, to) {
        (Inactive | Preview, Enrolling) => true,
        (Preview, Inactive) => true,
        (Enrolling, EnrollmentComplete) | (EnrollmentComplete, Enrolling) => true,
        (EnrollmentComplete, Inactive) => true, // after a test; the enrolments are kept
        (Cancelled, Cancelled) => false,
        (_, Cancelled) => true,
        (Cancelled, Archived) => true,
        (Inactive | Preview | Scheduled, Scheduled) => true, // another date
        (Scheduled, Enrolling | Inactive) => true,
        _ => false,
    }
}

/// Returns the reasons why an experiment is not complete enough to start.
fn shortcomings(experiment: &View) -> Vec<String> {
    let mut problems = Vec::new();
    if experiment.decision_points.is_empty() {
        problems.push("it has no decision point".to_owned());
    }
    if experiment.conditions.is_empty() {
        problems.push("it has no condition".to_owned());
    } else if !total_is_100(experiment.conditions.iter().map(|condition| condition.assignment_weight)) {
        let total: f64 = experiment.conditions.iter().map(|condition| condition.assignment_weight).sum();
        problems.push(format!("its weights add up to {}, not 100", number(total)));
    }
    problems
}

/// Returns true if the weights add up to 100, within the rounding error of single precision.
pub fn total_is_100(weights: impl Iterator<Item = f64> + Clone) -> bool {
    let tolerance = 0.01 * f64::from(u32::try_from(weights.clone().count()).unwrap_or(u32::MAX));
    (weights.sum::<f64>() - 100.0).abs() <= tolerance + 1e-9
}

/// Formats a weight in percent. Up to four decimals are shown as stored in single precision, since a
/// person may have written them. A number with more is probably a fraction such as a third and is
/// rounded to two decimals, unless that would make it 0 or 100.
pub fn number(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "that is how weights are stored")]
    let stored = value as f32;
    let exact = stored.to_string();
    let decimals = exact.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let short = ((value * 100.0).round() / 100.0).to_string();
    let looks_like = |round: &str| short == round && exact != round;
    match decimals <= 4 || looks_like("0") || looks_like("100") {
        true => exact,
        false => short,
    }
}

/// Returns the weights in words: `control 50%, variant 50%`.
pub fn weights_in_words(conditions: &[Condition]) -> String {
    let words = conditions.iter().map(|c| format!("{} {}%", c.condition_code, number(c.assignment_weight)));
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the verb with which people ask the bot for a change from `from` to `to`.
pub fn verb(from: Status, to: Status) -> &'static str {
    let usual = || to.verbs().first().map_or("change", |verb| verb.name);
    match (from, to) {
        (Status::EnrollmentComplete, Status::Enrolling) => "resume",
        (Status::EnrollmentComplete | Status::Preview, Status::Inactive) => "deactivate",
        _ => usual(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::upgrade::experiment::Experiment;

    #[test]
    fn a_weight_is_shown_as_written_and_not_rounded_to_0_or_100() {
        for (weight, shown) in [
            (50.0, "50"),
            (99.996, "99.996"),
            (f64::from(99.996_f32), "99.996"),
            (0.004, "0.004"),
            (33.33, "33.33"),
            (33.333_333_333, "33.33"),
            (f64::from(33.333_332_f32), "33.33"),
            (66.666_666_666, "66.67"),
            (0.000_012, "0.000012"),
            (99.999_99, "99.99999"),
            (0.0, "0"),
            (100.0, "100"),
        ] {
            assert_eq!(number(weight), shown, "{weight}");
        }
    }

    fn experiment(state: Status, weights: &[f64], points: usize) -> View {
        let conditions: Vec<_> = weights
            .iter()
            .enumerate()
            .map(|(i, weight)| json!({ "id": i.to_string(), "conditionCode": format!("c{i}"), "assignmentWeight": weight }))
            .collect();
        let points: Vec<_> = (0..points).map(|i| json!({ "id": i.to_string(), "site": "s", "target": "t" })).collect();
        let raw = json!({
            "id": "d56d271d-a23c-4e9b-a163-b5fd658c5b03", "name": "Math Hints", "state": state,
            "conditions": conditions, "partitions": points,
        });
        Experiment::from_value(&raw).unwrap().view
    }

    #[test]
    fn the_whole_table() {
        let mut allowed = Vec::new();
        for from in Status::ALL {
            for to in Status::ALL.into_iter().filter(|to| may_become(from, *to)) {
                allowed.push(format!("{} → {}", from.stored(), to.stored()));
            }
        }
        insta::assert_snapshot!(allowed.join("\n"), @"
        draft → cancelled
        inactive → scheduled
        inactive → enrolling
        inactive → cancelled
        preview → inactive
        preview → scheduled
        preview → enrolling
        preview → cancelled
        scheduled → inactive
        scheduled → scheduled
        scheduled → enrolling
        scheduled → cancelled
        enrolling → enrollmentComplete
        enrolling → cancelled
        enrollmentComplete → inactive
        enrollmentComplete → enrolling
        enrollmentComplete → cancelled
        cancelled → archived
        archived → cancelled
        ");
    }

    #[test]
    fn only_a_complete_experiment_starts() {
        let check = |weights: &[f64], points| check(&experiment(Status::Inactive, weights, points), Status::Enrolling);
        assert_eq!(check(&[50.0, 50.0], 1), Ok(()));
        assert_eq!(check(&[33.333332, 33.333332, 33.333332], 1), Ok(()), "single precision");
        assert_eq!(
            check(&[50.0, 40.0], 0),
            Err(Objection::NotReady(vec![
                "it has no decision point".into(),
                "its weights add up to 90, not 100".into()
            ]))
        );
        assert_eq!(check(&[], 1), Err(Objection::NotReady(vec!["it has no condition".into()])));
    }

    #[test]
    fn the_present_status_is_an_objection() {
        for status in Status::ALL.into_iter().filter(|status| *status != Status::Scheduled) {
            assert_eq!(check(&experiment(status, &[100.0], 1), status), Err(Objection::Already));
        }
    }

    proptest! {
        #[test]
        fn what_is_cancelled_can_only_be_archived(to in prop::sample::select(&Status::ALL[..])) {
            let allowed = check(&experiment(Status::Cancelled, &[100.0], 1), to).is_ok();
            prop_assert_eq!(allowed, to == Status::Archived);
        }

        #[test]
        fn an_even_split_of_any_size_is_complete(n in 1u8..40) {
            let weight = f64::from(100.0 / f32::from(n));
            prop_assert!(total_is_100(std::iter::repeat_n(weight, n.into())));
        }
    }
}
