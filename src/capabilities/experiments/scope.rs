//! What a change of experiments is about, for policies and limits.
//!
//! | measure | what it holds |
//! | --- | --- |
//! | `status` | the status that it is to have, by its stored name |
//! | `weight` | each weight from now on, in percent |
//! | `start`, `end` | when it is to start or end by itself, RFC 3339 |
//! | `users` | how many simulated users there will be |

use countersign_graph::action::Scope;

use crate::upgrade::experiment::View;

/// The status that it is to have.
pub(super) const STATUS: &str = "status";

/// A weight in percent.
pub(super) const WEIGHT: &str = "weight";

/// When it is to start by itself.
pub(super) const START: &str = "start";

/// When it is to end by itself.
pub(super) const END: &str = "end";

/// How many simulated users there will be.
pub(super) const USERS: &str = "users";

/// A change of this experiment.
pub(super) fn of(experiment: &View) -> Scope {
    all([experiment])
}

/// A change of all of these.
pub(super) fn all<'a>(experiments: impl IntoIterator<Item = &'a View>) -> Scope {
    experiments.into_iter().fold(Scope::default(), |mut scope, experiment| {
        scope.targets.push(format!("experiment:{}", experiment.id));
        if !scope.contexts.iter().any(|known| known == experiment.context()) {
            scope.contexts.push(experiment.context().to_owned());
        }
        scope.of_subject(&*experiment.name)
    })
}

/// People in this experiment: it stays as it is.
pub(super) fn people_in(experiment: &View) -> Scope {
    Scope { targets: Vec::new(), ..of(experiment) }
}

/// Simulated users in this experiment.
pub(super) fn simulated(experiment: &View, users: u32) -> Scope {
    people_in(experiment).measure(USERS, users)
}
