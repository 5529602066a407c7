//! The users that the bot itself enrolled in tests, so that they can be shown apart from the others.
//!
//! The platform counts them like all others. Who they are is known from the records of the tests, which cover all
//! processes and survive restarts. A batch that is being sent counts once its end is recorded.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, OnceLock},
};

use countersign_capabilities::History;
use countersign_core::clock::Timestamp;
use countersign_graph::action::{ActionRecord, Outcome};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    balance::{self, Tally},
    consistency::{self, Step, TestProgress},
    expected::Phase,
    simulated::VisitTarget,
};
use crate::{
    scope,
    upgrade::{
        experiment::{ExperimentId, View},
        participants::{Enrollment, EnrollmentDetail},
    },
};

/// The maximum number of tests of one experiment that are read.
const MAX_TESTS: usize = 500;

/// The users that one test enrolled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRun {
    /// The time of its beginning.
    pub at: Timestamp,
    /// The place that they visited.
    pub place: (String, String),
    /// The numbers of users and groups by condition code.
    pub enrolled: BTreeMap<String, (u64, u64)>,
}

impl TestRun {
    /// Returns the number of users.
    pub fn users(&self) -> u64 {
        self.enrolled.values().map(|(users, _)| users).sum()
    }

    fn groups(&self) -> u64 {
        self.enrolled.values().map(|(_, groups)| groups).sum()
    }

    fn of(record: &ActionRecord) -> Option<Self> {
        let place: VisitTarget = read(&record.parameters["place"])?;
        let enrolled = match record.name.as_str() {
            balance::NAME => of_balance(record, place.group.is_some()),
            consistency::NAME => of_consistency(record)?,
            _ => return None,
        };
        Some(Self { at: record.intent_at?, place: (place.site, place.target), enrolled })
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

/// Returns what a test got to: the result if it was done or stopped, its last progress otherwise.
pub(super) fn reached<T: DeserializeOwned + Default>(record: &ActionRecord, key: &str) -> T {
    let done = match &record.outcome {
        Some(Outcome::Done { result, .. }) => read(&result[key]),
        _ => None,
    };
    done.or_else(|| read(&record.progress.as_ref()?.data)).unwrap_or_default()
}

fn of_balance(record: &ActionRecord, by_group: bool) -> BTreeMap<String, (u64, u64)> {
    let tally: Tally = reached(record, "tally");
    let users = if by_group { &tally.users } else { &tally.draws };
    let mut enrolled: BTreeMap<String, (u64, u64)> =
        users.iter().map(|(code, users)| (code.clone(), (*users, 0))).collect();
    for (code, groups) in tally.draws.iter().filter(|_| by_group) {
        enrolled.entry(code.clone()).or_default().1 = *groups;
    }
    enrolled
}

/// The visitors who got a condition while the experiment was running and whose visit was marked.
fn of_consistency(record: &ActionRecord) -> Option<BTreeMap<String, (u64, u64)>> {
    let test: consistency::Test = read(&record.parameters)?;
    let progress: TestProgress = reached(record, "course");
    let marked = test.steps().iter().position(|step| *step == Step::Mark(Phase::Running))?;
    let mut enrolled = BTreeMap::<String, (u64, u64)>::new();
    let mut groups = BTreeSet::new();
    let seen = progress.observations.iter().filter(|seen| seen.phase == Phase::Running && progress.next > marked);
    for (visitor, code) in seen.filter_map(|seen| Some((test.visitors.get(seen.visitor)?, seen.got.as_ref()?))) {
        let count = enrolled.entry(code.clone()).or_default();
        count.0 += 1;
        count.1 += u64::from(test.place.group.is_some() && visitor.group.is_some_and(|group| groups.insert(group)));
    }
    Some(enrolled)
}

/// The reader of the tests of the bot.
#[derive(Default)]
pub struct OwnTests(OnceLock<Arc<dyn History>>);

impl fmt::Debug for OwnTests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnTests").finish_non_exhaustive()
    }
}

impl OwnTests {
    /// Sets the reader of past changes.
    pub fn remember_by(&self, history: Arc<dyn History>) {
        let _ = self.0.set(history); // set only once
    }

    /// Reads the tests that enrolled users in an experiment.
    pub async fn of(&self, experiment: ExperimentId) -> Vec<TestRun> {
        let Some(history) = self.0.get() else { return Vec::new() };
        let records = history.of(&scope::tests_target(experiment), MAX_TESTS).await;
        records.iter().filter_map(TestRun::of).filter(|run| run.users() > 0).collect()
    }
}

/// Moves the users of tests out of the numbers of an experiment.
pub fn set_apart(counted: &mut Enrollment, tests: &[TestRun]) {
    let (users, groups) = totals(tests);
    counted.test_users = users.min(counted.users);
    counted.users -= counted.test_users;
    counted.groups = counted.groups.saturating_sub(groups);
}

/// Moves the users of tests out of the numbers by condition.
pub fn set_apart_in_detail(counted: &mut EnrollmentDetail, view: &View, tests: &[TestRun]) {
    let (users, groups) = totals(tests);
    counted.test_users = users.min(counted.users);
    counted.users -= counted.test_users;
    counted.groups = counted.groups.saturating_sub(groups);
    for (test, code, (users, groups)) in
        tests.iter().flat_map(|test| test.enrolled.iter().map(move |(code, counts)| (test, code, counts)))
    {
        let Some(condition) = view.conditions.iter().find(|condition| condition.condition_code == *code) else {
            continue; // it was removed, with its enrollments
        };
        let is_here = |id: &str| {
            let mut points = view.decision_points.iter().filter(|point| point.id == id);
            points.any(|point| (point.site.as_str(), point.target.as_deref()) == (&test.place.0, Some(&test.place.1)))
        };
        for row in counted.conditions.iter_mut().filter(|row| row.id == condition.id) {
            row.users = row.users.saturating_sub(*users);
            row.groups = row.groups.saturating_sub(*groups);
            for point in row.points.iter_mut().filter(|point| is_here(&point.id)) {
                point.users = point.users.saturating_sub(*users);
                point.groups = point.groups.saturating_sub(*groups);
            }
        }
    }
}

fn totals(tests: &[TestRun]) -> (u64, u64) {
    tests.iter().fold((0, 0), |(users, groups), test| (users + test.users(), groups + test.groups()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::upgrade::experiment::Experiment;

    #[test]
    fn test_users_are_no_longer_among_the_others() {
        let raw = json!({
            "id": "6d1f3f3e-8c54-4a1c-9f5e-2f7a1a3b0c77", "name": "Math Hints", "state": "enrolling",
            "conditions": [
                { "id": "a", "conditionCode": "control", "assignmentWeight": 50, "order": 1 },
                { "id": "b", "conditionCode": "variant", "assignmentWeight": 50, "order": 2 },
            ],
            "partitions": [{ "id": "p", "site": "S", "target": "t", "order": 1 }, { "id": "q", "site": "S", "target": "u", "order": 2 }],
        });
        let view = Experiment::from_value(&raw).unwrap().view;
        let point = |id: &str, users: u64| json!({ "id": id, "users": users, "groups": 0 });
        let row = |id: &str, users: u64, here: u64, there: u64| json!({ "id": id, "users": users, "groups": 0, "partitions": [point("p", here), point("q", there)] });
        let mut counted: EnrollmentDetail = serde_json::from_value(json!({
            "id": view.id, "users": 1024, "groups": 0, "usersExcluded": 0, "groupsExcluded": 0,
            "conditions": [row("a", 512, 510, 4), row("b", 512, 500, 12)],
        }))
        .unwrap();
        let run = TestRun {
            at: Timestamp(0),
            place: ("S".to_owned(), "t".to_owned()),
            enrolled: BTreeMap::from([("control".to_owned(), (498, 0)), ("variant".to_owned(), (502, 0))]),
        };
        set_apart_in_detail(&mut counted, &view, &[run]);
        assert_eq!((counted.users, counted.test_users), (24, 1000));
        let rows: Vec<_> =
            counted.conditions.iter().map(|row| (row.users, row.points[0].users, row.points[1].users)).collect();
        assert_eq!(rows, [(14, 12, 4), (10, 0, 12)]);
    }
}
