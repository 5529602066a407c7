//! The context of a change: experiments with the same name or at the same points, and the number of
//! people that it affects.

use std::sync::{Arc, RwLock};

use countersign_core::reply::{Fact, Text};
use countersign_graph::action::PrepareError;

use crate::{
    access,
    replies::{cautions, reach},
    upgrade::{
        client::UpgradeClient,
        error::Error,
        experiment::{ExperimentId, View},
        lists::MemberList,
        overview::{Outline, Overview},
        participants::Enrollment,
    },
};

/// All experiments in short, and which of them is changed.
pub(super) struct Surroundings {
    all: Arc<RwLock<Overview>>,
    own: Option<ExperimentId>,
}

impl Surroundings {
    /// Creates the surroundings from all experiments. `own` is the changed one; `None` if it does not
    /// exist yet.
    pub(super) fn of(all: Arc<RwLock<Overview>>, own: Option<ExperimentId>) -> Self {
        Self { all, own }
    }

    fn all(&self) -> std::sync::RwLockReadGuard<'_, Overview> {
        self.all.read().expect("nothing panics while it is held")
    }

    /// Returns a warning about other experiments with this name, ignoring case.
    pub(super) fn namesakes(&self, name: &str) -> Option<Text> {
        cautions::name_taken(&self.all().namesakes(name, self.own))
    }

    /// Returns the other live experiments in the context that have one of these points (site and
    /// target), with the shared point.
    pub(super) fn sharing<'a>(
        &self,
        context: &str,
        points: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone,
    ) -> Vec<(Arc<Outline>, String)> {
        self.all().sharing(context, points, self.own)
    }

    /// Returns the other live experiments that share a point with this experiment.
    pub(super) fn sharing_with(&self, experiment: &View) -> Vec<(Arc<Outline>, String)> {
        let points = experiment.decision_points.iter().map(|point| (point.site.as_str(), point.target.as_deref()));
        self.sharing(experiment.context(), points)
    }
}

/// The people that a change to an experiment affects: its enrolled users, and the other live experiments
/// at its points.
pub(crate) struct Reach {
    enrolled: Option<Enrollment>,
    surroundings: Result<Surroundings, Error>,
}

impl Reach {
    /// Reads the enrolment and the other experiments. If one of them cannot be read, the card says so,
    /// and the change can still be proposed.
    pub(crate) async fn read(client: &UpgradeClient, experiment: &View) -> Self {
        let ids = [experiment.id];
        let (enrolled, all) = tokio::join!(client.enrollment(&ids), client.overview());
        Self {
            enrolled: enrolled.ok().and_then(|all| all.into_iter().next()),
            surroundings: all.map(|all| Surroundings::of(all, Some(experiment.id))),
        }
    }

    /// Returns the warnings before the experiment is started.
    pub(super) async fn start_warnings(
        &self,
        client: &UpgradeClient,
        experiment: &View,
    ) -> Result<Vec<Text>, PrepareError> {
        let shared = cautions::shared_points(&self.surroundings()?.sharing_with(experiment));
        let mut nobody =
            experiment.filter_mode == "excludeAll" && experiment.inclusion.iter().all(MemberList::is_empty);
        if nobody {
            // The list of all experiments has all inclusion lists; a single experiment lacks some.
            let all = client.all().await.map_err(access::unavailable)?;
            let own = all.iter().find(|view| view.id == experiment.id);
            nobody = own.is_none_or(|own| own.inclusion.iter().all(MemberList::is_empty));
        }
        Ok(shared.into_iter().chain(nobody.then(cautions::nobody_takes_part)).collect())
    }

    /// Returns the number of enrolled users, if it could be read.
    pub(crate) fn users(&self) -> Option<u64> {
        self.enrolled.as_ref().map(|enrolled| enrolled.users)
    }

    /// Returns the surroundings, for a change that cannot be proposed without them.
    ///
    /// # Errors
    ///
    /// An error from the platform.
    pub(super) fn surroundings(&self) -> Result<&Surroundings, PrepareError> {
        self.surroundings.as_ref().map_err(|error| access::unavailable(error.clone()))
    }

    /// Returns the names of the other live experiments at its points; empty if they couldn't be read.
    pub(crate) fn rival_names(&self, experiment: &View) -> Vec<String> {
        let others = self.surroundings.as_ref().map(|others| others.sharing_with(experiment)).unwrap_or_default();
        others.into_iter().map(|(other, _)| other.name.clone()).collect()
    }

    /// Returns the number of other live experiments at its points; 0 if they couldn't be read.
    pub(super) fn rivals(&self, experiment: &View) -> usize {
        self.surroundings.as_ref().map_or(0, |others| others.sharing_with(experiment).len())
    }

    /// Returns the lines of a card.
    pub(super) fn facts(&self, experiment: &View) -> Vec<Fact> {
        vec![
            reach::enrolled(self.enrolled.as_ref(), experiment.assignment_unit == "group"),
            reach::same_points(
                self.surroundings.as_ref().ok().map(|others| others.sharing_with(experiment)).as_deref(),
            ),
        ]
    }
}
