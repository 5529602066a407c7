//! What else there is on the platform that a card should mention: namesakes, experiments at the same points, and how many
//! people a change reaches.

use std::sync::Arc;

use countersign_core::reply::{Fact, Text};
use countersign_graph::action::PrepareError;

use crate::{
    access,
    replies::{cautions, reach},
    upgrade::{
        client::UpgradeClient,
        error::Error,
        experiment::{ExperimentId, View},
        participants::Enrollment,
        status::Status,
    },
};

/// Every experiment, seen from the one that is changed.
pub(super) struct Surroundings {
    all: Arc<[View]>,
    own: Option<ExperimentId>,
}

impl Surroundings {
    /// What is round `own`; all of them if it is yet to be made.
    pub(super) fn of(all: Arc<[View]>, own: Option<ExperimentId>) -> Self {
        Self { all, own }
    }

    /// The one that is changed, as the list of all shows it.
    pub(super) fn own(&self) -> Option<&View> {
        self.all.iter().find(|view| Some(view.id) == self.own)
    }

    fn others(&self) -> impl Iterator<Item = &View> {
        self.all.iter().filter(|view| Some(view.id) != self.own)
    }

    /// Others of this name, whatever its case.
    pub(super) fn namesakes(&self, name: &str) -> Option<Text> {
        let same = |view: &&View| view.name.trim().to_lowercase() == name.trim().to_lowercase();
        cautions::name_taken(&self.others().filter(same).collect::<Vec<_>>())
    }

    /// Live experiments of the context at one of these points (each site and target), with the point that they share.
    pub(super) fn sharing<'a>(
        &self,
        context: &str,
        points: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone,
    ) -> Vec<(&View, String)> {
        let live = |view: &&View| matches!(view.state, Status::Enrolling | Status::EnrollmentComplete);
        let here = self.others().filter(live).filter(|view| view.context() == context);
        let shared = here.filter_map(|view| {
            let mut own = view.decision_points.iter();
            let point = own.find(|own| points.clone().any(|(s, t)| own.site == s && own.target.as_deref() == t))?;
            Some((view, point.words()))
        });
        shared.collect()
    }

    /// The same for the points that an experiment has.
    pub(super) fn sharing_with(&self, experiment: &View) -> Vec<(&View, String)> {
        let points = experiment.decision_points.iter().map(|point| (point.site.as_str(), point.target.as_deref()));
        self.sharing(experiment.context(), points)
    }
}

/// Whom a change of an experiment reaches: who is enrolled in it, and what else is live at its points.
pub(super) struct Reach {
    enrolled: Option<Enrollment>,
    surroundings: Result<Surroundings, Error>,
}

impl Reach {
    /// Reads it. What cannot be read is said to be so on the card: a change need not wait for it.
    pub(super) async fn read(client: &UpgradeClient, experiment: &View) -> Self {
        let ids = [experiment.id];
        let (enrolled, all) = tokio::join!(client.enrollment(&ids), client.all());
        Self {
            enrolled: enrolled.ok().and_then(|all| all.into_iter().next()),
            surroundings: all.map(|all| Surroundings::of(all, Some(experiment.id))),
        }
    }

    /// How many people are enrolled, if that could be read.
    pub(super) fn users(&self) -> Option<u64> {
        self.enrolled.as_ref().map(|enrolled| enrolled.users)
    }

    /// What is round it, for a change that cannot be proposed without.
    ///
    /// # Errors
    ///
    /// That the platform cannot be asked.
    pub(super) fn surroundings(&self) -> Result<&Surroundings, PrepareError> {
        self.surroundings.as_ref().map_err(|error| access::unavailable(error.clone()))
    }

    /// How many other live experiments are at its points, as far as that could be read.
    pub(super) fn rivals(&self, experiment: &View) -> usize {
        self.surroundings.as_ref().map_or(0, |others| others.sharing_with(experiment).len())
    }

    /// The lines of a card.
    pub(super) fn facts(&self, experiment: &View) -> Vec<Fact> {
        vec![
            reach::enrolled(self.enrolled.as_ref(), experiment.assignment_unit == "group"),
            reach::same_points(
                self.surroundings.as_ref().ok().map(|others| others.sharing_with(experiment)).as_deref(),
            ),
        ]
    }
}
