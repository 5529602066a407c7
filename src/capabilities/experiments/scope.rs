//! The scope of a change to experiments, for policies and limits.
//!
//! | measure | value |
//! | --- | --- |
//! | `status` | the new status, by its stored name |
//! | `weight` | each new weight, in percent |
//! | `start`, `end` | the scheduled start or end, RFC 3339 |
//! | `users` | the number of simulated users |

use countersign_graph::action::Scope;

use crate::upgrade::experiment::{ExperimentId, View};

/// The measure of the new status.
pub(super) const STATUS: &str = "status";

/// The measure of a weight in percent.
pub(super) const WEIGHT: &str = "weight";

/// The measure of the scheduled start.
pub(super) const START: &str = "start";

/// The measure of the scheduled end.
pub(super) const END: &str = "end";

/// The measure of the number of simulated users.
pub(super) const USERS: &str = "users";

/// Returns the scope of a change to this experiment.
pub(super) fn of(experiment: &View) -> Scope {
    all([experiment])
}

/// Returns the scope of a change to all of these experiments.
pub(super) fn all<'a>(experiments: impl IntoIterator<Item = &'a View>) -> Scope {
    experiments.into_iter().fold(Scope::default(), |mut scope, experiment| {
        scope.targets.push(format!("experiment:{}", experiment.id));
        if !scope.contexts.iter().any(|known| known == experiment.context()) {
            scope.contexts.push(experiment.context().to_owned());
        }
        scope.of_subject(&*experiment.name)
    })
}

/// Returns the scope of a change that affects people in this experiment, but not the experiment
/// itself.
pub(super) fn people_in(experiment: &View) -> Scope {
    Scope { targets: Vec::new(), ..of(experiment) }
}

/// Returns the target of the tests that enroll simulated users in an experiment.
pub(super) fn tests_target(experiment: ExperimentId) -> String {
    format!("tests:{experiment}")
}

/// Returns the scope of a test that enrolls simulated users in this experiment.
pub(super) fn test(experiment: &View, users: u32) -> Scope {
    Scope { targets: vec![tests_target(experiment.id)], ..simulated(experiment, users) }
}

/// Returns the scope of a visit of simulated users in this experiment.
pub(super) fn simulated(experiment: &View, users: u32) -> Scope {
    people_in(experiment).measure(USERS, users)
}
