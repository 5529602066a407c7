//! The condition that each visitor should get in each phase, by the consistency rule, *exclude if
//! reached* and the post-experiment rule, as the platform was observed to apply them. Nothing here
//! makes calls.
//!
//! The drawn condition itself is not predicted, only that one is drawn, and which visitors have to get
//! the same one later.

use serde::{Deserialize, Serialize};

use crate::upgrade::{experiment::View, status::Status};

/// A phase of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Inactive.
    Before,
    /// Enrolling.
    Running,
    /// Enrolment complete.
    Paused,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 3] = [Self::Before, Self::Running, Self::Paused];

    /// Returns the status of an experiment in this phase.
    pub fn status(self) -> Status {
        match self {
            Self::Before => Status::Inactive,
            Self::Running => Status::Enrolling,
            Self::Paused => Status::EnrollmentComplete,
        }
    }

    /// Returns the phase of an experiment with this status; `None` if it cannot go through the phases
    /// from there.
    pub fn of(status: Status) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.status() == status)
    }
}

/// The consistency rule: whose past assignment decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consistency {
    /// The person's.
    Individual,
    /// The group's.
    Group,
    /// Only the experiment's: nobody is excluded for an early visit.
    Experiment,
}

/// The post-experiment rule, which applies once the experiment is paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Afterwards {
    /// Everyone keeps their condition.
    Keep,
    /// Everyone enrolled gets this condition.
    Named(String),
    /// Everyone gets the application's default.
    Default,
}

/// The rules that decide who gets which condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// True if groups draw, false if individuals do.
    pub by_group: bool,
    /// The consistency rule.
    pub consistency: Consistency,
    /// The post-experiment rule.
    pub afterwards: Afterwards,
    /// True if people who visited before the start are excluded (*exclude if reached*).
    pub early_stay_out: bool,
}

impl Rules {
    /// Returns the rules of an experiment at a point; `None` if their effect cannot be predicted.
    pub fn of(view: &View, early_stay_out: bool) -> Option<Self> {
        let by_group = match view.assignment_unit.as_str() {
            "group" => true,
            "individual" => false,
            _ => return None,
        };
        let consistency = match (view.consistency_rule.as_deref(), by_group) {
            (Some("individual"), _) => Consistency::Individual,
            (Some("group"), true) => Consistency::Group,
            (Some("experiment"), _) => Consistency::Experiment,
            _ => return None,
        };
        let named = view.revert_to.as_deref().and_then(|id| view.condition(id));
        let afterwards = match (view.post_experiment_rule.as_str(), named) {
            ("assign", Some(condition)) => Afterwards::Named(condition.condition_code.clone()),
            ("assign", None) => Afterwards::Default,
            _ => Afterwards::Keep,
        };
        Some(Self { by_group, consistency, afterwards, early_stay_out })
    }
}

/// A simulated user who visits in every phase from `arrives` on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visitor {
    /// The name on the platform.
    pub user: String,
    /// The phase of their first visit.
    pub arrives: Phase,
    /// The letter of their group, if groups draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<char>,
}

/// Returns visitors that reveal the differences between the rules in the phases from `first` on. `name`
/// returns the name of the visitor with an index.
pub fn visitors(by_group: bool, first: Phase, name: impl Fn(u32) -> String) -> Vec<Visitor> {
    use Phase::{Before, Paused, Running};
    let all: &[(Phase, Option<char>)] = match by_group {
        false => &[(Before, None), (Running, None), (Paused, None)],
        true => &[
            (Before, Some('A')),
            (Running, Some('A')),
            (Running, Some('B')),
            (Paused, Some('A')),
            (Paused, Some('B')),
            (Paused, Some('C')),
        ],
    };
    // If the test starts paused, no group has a past, so one newcomer is enough.
    let is_useful = |group: Option<char>| group == Some('C') || group.is_none() || first < Paused;
    let all = all.iter().filter(|(arrives, group)| *arrives >= first && is_useful(*group));
    all.zip(0..).map(|((arrives, group), nth)| Visitor { user: name(nth), arrives: *arrives, group: *group }).collect()
}

/// The condition that a visitor should get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// No condition: the application shows its default.
    Nothing,
    /// Any condition, since the visitor draws.
    Drawn,
    /// The condition that was drawn before.
    Same,
    /// This condition.
    Named(String),
}

/// One observation of a visitor. The report is sorted by the fields, in this order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Observation {
    /// The phase of the visit.
    pub phase: Phase,
    /// The index in the list of visitors.
    pub visitor: usize,
    /// The code of the condition, if there was one.
    pub got: Option<String>,
}

/// An observation and its expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedObservation {
    /// The observation.
    pub observation: Observation,
    /// The expectation.
    pub expected: Expected,
    /// The condition that was drawn before, with [`Expected::Same`] and if it was observed.
    pub drawn: Option<String>,
}

impl CheckedObservation {
    /// Returns true if the observation meets the expectation.
    pub fn fits(&self) -> bool {
        match (&self.expected, &self.observation.got) {
            (Expected::Nothing, None) => true,
            (Expected::Drawn, Some(_)) => true,
            (Expected::Same, Some(got)) => self.drawn.as_ref().is_none_or(|drawn| drawn == got),
            (Expected::Named(code), Some(got)) => code == got,
            (Expected::Nothing, Some(_)) | (Expected::Drawn | Expected::Same | Expected::Named(_), None) => false,
        }
    }
}

/// Compares the observations, in their order, with the rules.
pub fn judge(rules: &Rules, visitors: &[Visitor], observations: &[Observation]) -> Vec<CheckedObservation> {
    let visitor_of = |observation: &Observation| &visitors[observation.visitor];
    let mut judged = Vec::with_capacity(observations.len());
    for (nth, observation) in observations.iter().enumerate() {
        let visitor = visitor_of(observation);
        // A group draws once for all its members.
        let same_draw = |earlier: &&Observation| match rules.by_group {
            true => visitor_of(earlier).group == visitor.group,
            false => earlier.visitor == observation.visitor,
        };
        let drawn = observations[..nth].iter().filter(same_draw).find_map(|earlier| earlier.got.clone());
        let expected = match expected(rules, visitors, visitor, observation.phase) {
            Expected::Drawn if drawn.is_some() => Expected::Same,
            expected => expected,
        };
        judged.push(CheckedObservation {
            observation: observation.clone(),
            drawn: drawn.filter(|_| expected == Expected::Same),
            expected,
        });
    }
    judged
}

fn expected(rules: &Rules, visitors: &[Visitor], visitor: &Visitor, phase: Phase) -> Expected {
    let with = |other: &Visitor| if rules.by_group { other.group == visitor.group } else { other == visitor };
    // A draw counts for the whole group if any member enrolled while the experiment ran.
    let enrolled = visitors.iter().any(|v| with(v) && v.arrives <= Phase::Running && !stays_out(rules, visitors, v));
    let out = stays_out(rules, visitors, visitor);
    match (phase, &rules.afterwards) {
        (Phase::Before, _) => Expected::Nothing,
        (Phase::Running, _) if out => Expected::Nothing,
        (Phase::Running, _) => Expected::Drawn,
        (Phase::Paused, Afterwards::Default) => Expected::Nothing,
        // An excluded person still gets the named condition if their group takes part.
        (Phase::Paused, Afterwards::Named(code)) if enrolled => Expected::Named(code.clone()),
        (Phase::Paused, Afterwards::Keep) if enrolled && !out => Expected::Same,
        (Phase::Paused, Afterwards::Named(_) | Afterwards::Keep) => Expected::Nothing,
    }
}

/// Returns true if *exclude if reached* excludes this visitor, because they or a member of their group
/// visited before the start.
fn stays_out(rules: &Rules, visitors: &[Visitor], visitor: &Visitor) -> bool {
    let early = |v: &Visitor| v.arrives == Phase::Before;
    let excludes = rules.early_stay_out && rules.consistency != Consistency::Experiment;
    let of_an_early_group = || {
        let whole_group = rules.by_group && rules.consistency == Consistency::Group;
        whole_group && visitors.iter().any(|v| early(v) && v.group == visitor.group)
    };
    excludes && (early(visitor) || of_an_early_group())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Returns the rules of a recorded run.
    fn recorded_rules(run: &Value) -> Rules {
        Rules {
            by_group: run["assignmentUnit"] == "group",
            consistency: serde_json::from_value(run["consistencyRule"].clone()).unwrap(),
            afterwards: match (run["postExperimentRule"].as_str(), run["revertTo"].as_str()) {
                (Some("assign"), Some("None") | None) => Afterwards::Default,
                (Some("assign"), Some(code)) => Afterwards::Named(code.to_owned()),
                _ => Afterwards::Keep,
            },
            early_stay_out: run["excludeIfReached"] == true,
        }
    }

    /// Returns the five students of a recorded run, and their observed conditions.
    fn recorded_observations(run: &Value) -> (Vec<Visitor>, Vec<Observation>) {
        let phases = ["inactive", "enrolling", "enrollmentComplete"];
        let (mut visitors, mut observations) = (Vec::new(), Vec::new());
        for (nth, (student, seen)) in run["seen"].as_object().unwrap().iter().enumerate() {
            let visited: Vec<_> =
                phases.into_iter().zip(Phase::ALL).filter(|(name, _)| seen[name].is_string()).collect();
            let group = run["groups"][student].as_str().unwrap().chars().last();
            visitors.push(Visitor { user: student.clone(), arrives: visited[0].1, group });
            observations.extend(visited.into_iter().map(|(name, phase)| {
                let got = seen[name].as_str().filter(|got| !got.starts_with("default")).map(str::to_owned);
                Observation { phase, visitor: nth, got }
            }));
        }
        observations.sort();
        (visitors, observations)
    }

    fn recorded() -> Vec<Value> {
        let file = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../tests/fixtures/upgrade/behaviour/03-consistency-exclude-if-reached-post-rule.json"
        ));
        let recorded: Value = serde_json::from_str(file).unwrap();
        recorded["runs"].as_array().unwrap().clone()
    }

    #[test]
    fn every_recorded_table_is_as_expected() {
        let runs = recorded();
        assert_eq!(runs.len(), 30);
        for run in &runs {
            let rules = recorded_rules(run);
            let (visitors, observations) = recorded_observations(run);
            assert_eq!(observations.len(), 9);
            for judged in judge(&rules, &visitors, &observations) {
                assert!(judged.fits(), "{rules:?}: {} {judged:?}", visitors[judged.observation.visitor].user);
            }
        }
    }

    #[test]
    fn other_rules_would_be_noticed() {
        let runs = recorded();
        let mut distinguished = 0;
        for run in &runs {
            let (visitors, observations) = recorded_observations(run);
            let fits = |rules: &Rules| judge(rules, &visitors, &observations).iter().all(CheckedObservation::fits);
            distinguished += runs.iter().filter(|other| !fits(&recorded_rules(other))).count();
        }
        // Some runs are alike, since their rules differ in nothing that five students reveal.
        assert!(distinguished > 700, "{distinguished} of {}", 30 * 29);
    }

    #[test]
    fn the_visitors_depend_on_the_first_phase() {
        let count = |by_group, first| visitors(by_group, first, |nth| nth.to_string()).len();
        let counts = |by_group| Phase::ALL.map(|first| count(by_group, first));
        assert_eq!(counts(false), [3, 2, 1]);
        assert_eq!(counts(true), [6, 5, 1]);
    }

    #[test]
    fn a_condition_that_changes_is_noticed() {
        let rules = Rules {
            by_group: false,
            consistency: Consistency::Individual,
            afterwards: Afterwards::Keep,
            early_stay_out: false,
        };
        let visitors = visitors(false, Phase::Running, |nth| nth.to_string());
        let observation =
            |phase, visitor, got: Option<&str>| Observation { phase, visitor, got: got.map(str::to_owned) };
        let seen = [
            observation(Phase::Running, 0, Some("control")),
            observation(Phase::Paused, 0, Some("variant")),
            observation(Phase::Paused, 1, None),
        ];
        let fits: Vec<_> = judge(&rules, &visitors, &seen).iter().map(CheckedObservation::fits).collect();
        assert_eq!(fits, [true, false, true]);
    }
}
