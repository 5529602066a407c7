//! What else there is on the platform that a card should mention: namesakes, and experiments at the same points.

use crate::{
    capabilities::experiments::replies::cautions,
    reply::Text,
    services::upgrade::{
        experiment::{Experiment, ExperimentId, View},
        status::Status,
    },
};

/// Every experiment but the one that is changed.
pub(super) struct Surroundings(Vec<View>);

impl Surroundings {
    /// All of them but `own`.
    pub(super) fn of(all: Vec<Experiment>, own: Option<ExperimentId>) -> Self {
        Self(all.into_iter().map(|experiment| experiment.view).filter(|view| Some(view.id) != own).collect())
    }

    /// Others of this name, whatever its case.
    pub(super) fn namesakes(&self, name: &str) -> Option<Text> {
        let same = |view: &&View| view.name.trim().to_lowercase() == name.trim().to_lowercase();
        cautions::name_taken(&self.0.iter().filter(same).collect::<Vec<_>>())
    }

    /// Live experiments of the context at one of these points, each site and target.
    pub(super) fn at_points<'a>(
        &self,
        context: &str,
        points: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone,
    ) -> Option<Text> {
        let live = |view: &&View| matches!(view.state, Status::Enrolling | Status::EnrollmentComplete);
        let here = self.0.iter().filter(live).filter(|view| view.context() == context);
        let shared = here.filter_map(|view| {
            let mut own = view.decision_points.iter();
            let point = own.find(|own| points.clone().any(|(s, t)| own.site == s && own.target.as_deref() == t))?;
            Some((view, point.words()))
        });
        cautions::shared_points(&shared.collect::<Vec<_>>())
    }
}
