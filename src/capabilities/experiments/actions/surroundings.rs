//! The context of a change: experiments with the same name or at the same points, and the number of
//! people that it affects.
//!
//! What a card says about other experiments is kept with its preconditions, in the words of the card ([`Claims`]). Before
//! the change is made, it is read again from the platform, and a difference is told like any other.

use std::{
    sync::{Arc, RwLock},
    time::Duration,
};

use countersign_core::reply::{Fact, Text};
use countersign_graph::action::{ActionRecord, Outcome, PrepareError};
use serde_json::{Map, Value, json};

use super::read_failed;
use crate::{
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

/// The key of what a card says about other experiments, in the preconditions.
pub(crate) const SURROUNDINGS: &str = "surroundings";

/// The label of the experiments at the new decision points of a change.
const AT_NEW_POINTS: &str = "Overlapping experiments at the new decision points";
/// The label of the experiments with the same name.
const NAMESAKES: &str = "Experiments with this name";

/// The label of the people who are included, if the card says that there are none.
const INCLUDED: &str = "Users who are included";

/// All experiments in short, and which of them is changed.
pub(crate) struct Surroundings {
    all: Arc<RwLock<Overview>>,
    own: Option<ExperimentId>,
    /// The time since they were read.
    age: Duration,
}

impl Surroundings {
    /// Reads the surroundings, which may be up to [`crate::upgrade::known::MAX_AGE`] old. `own` is the changed experiment;
    /// `None` if it does not exist yet.
    ///
    /// # Errors
    ///
    /// An error from the platform.
    pub(super) async fn read(client: &UpgradeClient, own: Option<ExperimentId>) -> Result<Self, Error> {
        let all = client.overview().await?;
        Ok(Self { all, own, age: client.overview_age() })
    }

    /// Creates the surroundings from experiments that were just read.
    pub(crate) fn of(all: impl IntoIterator<Item = Outline>, own: Option<ExperimentId>) -> Self {
        Self { all: Arc::new(RwLock::new(all.into_iter().collect())), own, age: Duration::ZERO }
    }

    fn all(&self) -> std::sync::RwLockReadGuard<'_, Overview> {
        self.all.read().expect("nothing panics while it is held")
    }

    /// Returns a note on their age; `None` if they were just read.
    pub(super) fn age(&self) -> Option<Text> {
        reach::read_before(self.age)
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
        self.sharing(experiment.context(), places(experiment))
    }
}

/// Returns the decision points, each as site and target.
fn places(experiment: &View) -> impl Iterator<Item = (&str, Option<&str>)> + Clone {
    experiment.decision_points.iter().map(|point| (point.site.as_str(), point.target.as_deref()))
}

/// A decision point: its site and, if it has one, its target.
type Place<'a> = (&'a str, Option<&'a str>);

/// The subjects of what a card says about other experiments.
pub(crate) struct Claims<'a> {
    own: ExperimentId,
    /// The changed experiment; `None` if it is new.
    experiment: Option<&'a View>,
    context: &'a str,
    points: Vec<(&'static str, Vec<Place<'a>>)>,
    name: Option<&'a str>,
}

impl<'a> Claims<'a> {
    /// Returns the claims about the other experiments at the decision points of this one.
    pub(crate) fn about(experiment: &'a View) -> Self {
        let points = vec![(reach::OVERLAPPING, places(experiment).collect())];
        Self { own: experiment.id, experiment: Some(experiment), context: experiment.context(), points, name: None }
    }

    /// Returns the claims about the other experiments at the decision points, and with the name, of a new one.
    pub(super) fn about_new(
        own: ExperimentId,
        context: &'a str,
        points: impl Iterator<Item = (&'a str, &'a str)>,
        name: &'a str,
    ) -> Self {
        let points = points.map(|(site, target)| (site, Some(target))).collect();
        Self { own, experiment: None, context, points: vec![(reach::OVERLAPPING, points)], name: Some(name) }
    }

    /// Adds the claims about new decision points.
    pub(super) fn at_new_points(mut self, points: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        self.points.push((AT_NEW_POINTS, points.map(|(site, target)| (site, Some(target))).collect()));
        self
    }

    /// Adds the claims about a new name.
    pub(super) fn with_name(self, name: Option<&'a str>) -> Self {
        Self { name, ..self }
    }

    /// Adds the claims to the preconditions.
    pub(crate) fn note(&self, others: &Surroundings, preconditions: &mut Value) {
        let words = |(label, points): &(&str, Vec<(&str, Option<&str>)>)| {
            let sharing = others.sharing(self.context, points.iter().copied());
            ((*label).to_owned(), json!(reach::same_points(Some(&sharing)).after.words()))
        };
        let mut said: Map<_, _> = self.points.iter().map(words).collect();
        if let Some(name) = self.name {
            let namesakes = others.all().namesakes(name, Some(self.own));
            said.insert(NAMESAKES.to_owned(), json!(cautions::namesakes_in_words(&namesakes)));
        }
        preconditions[SURROUNDINGS] = Value::Object(said);
    }

    /// Returns the preconditions with what would be said now, if the card of `record` says anything about other
    /// experiments.
    ///
    /// # Errors
    ///
    /// The outcome if it cannot be read.
    pub(crate) async fn note_now(
        &self,
        client: &UpgradeClient,
        record: &ActionRecord,
        mut preconditions: Value,
    ) -> Result<Value, Outcome> {
        let Some(said) = record.preconditions.get(SURROUNDINGS) else { return Ok(preconditions) };
        let live = async {
            match self.points.iter().all(|(_, points)| points.is_empty()) {
                true => Ok(Vec::new()),
                false => client.live().await,
            }
        };
        let called = async {
            match self.name {
                Some(name) => client.called(name).await,
                None => Ok(Vec::new()),
            }
        };
        let (live, called) = tokio::try_join!(live, called).map_err(|error| read_failed(&error))?;
        self.note(&Surroundings::of(live.into_iter().chain(called), Some(self.own)), &mut preconditions);
        if let (Some(experiment), true) = (self.experiment, said.get(INCLUDED).is_some()) {
            let nobody = takes_nobody(client, experiment).await.map_err(|error| read_failed(&error))?;
            note_included(nobody, &mut preconditions);
        }
        if preconditions[SURROUNDINGS] != *said {
            client.forget_overview(); // the next card shows how it is now
        }
        Ok(preconditions)
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
        let (enrolled, surroundings) =
            tokio::join!(client.enrollment(&ids), Surroundings::read(client, Some(experiment.id)));
        Self { enrolled: enrolled.ok().and_then(|all| all.into_iter().next()), surroundings }
    }

    /// Returns the warnings before the experiment is started.
    pub(super) async fn start_warnings(
        &self,
        client: &UpgradeClient,
        experiment: &View,
    ) -> Result<Vec<Text>, PrepareError> {
        let shared = cautions::shared_points(&self.surroundings()?.sharing_with(experiment));
        let nobody = takes_nobody(client, experiment).await?;
        Ok(shared.into_iter().chain(nobody.then(cautions::nobody_takes_part)).collect())
    }

    /// Adds what the card says about other experiments to the preconditions.
    pub(crate) fn note(&self, claims: &Claims<'_>, preconditions: &mut Value) {
        if let Ok(others) = &self.surroundings {
            claims.note(others, preconditions);
        }
    }

    /// Returns a note on the age of what the card says about other experiments; `None` if it was just read.
    pub(super) fn age(&self) -> Option<Text> {
        self.surroundings.as_ref().ok().and_then(Surroundings::age)
    }

    /// Returns the number of enrolled users without those of tests, if it could be read.
    pub(crate) fn users(&self) -> Option<u64> {
        self.enrolled.as_ref().map(|enrolled| enrolled.users)
    }

    /// Returns the number of users whom tests of this bot enrolled, if it could be read.
    pub(super) fn test_users(&self) -> Option<u64> {
        self.enrolled.as_ref().map(|enrolled| enrolled.test_users)
    }

    /// Returns the surroundings, for a change that cannot be proposed without them.
    ///
    /// # Errors
    ///
    /// An error from the platform.
    pub(super) fn surroundings(&self) -> Result<&Surroundings, PrepareError> {
        self.surroundings.as_ref().map_err(|error| error.clone().into())
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

/// Adds to the preconditions that nobody is included, if the card warns of that.
pub(super) fn note_warnings(warnings: &[Text], preconditions: &mut Value) {
    if warnings.contains(&cautions::nobody_takes_part()) {
        note_included(true, preconditions);
    }
}

fn note_included(nobody: bool, preconditions: &mut Value) {
    preconditions[SURROUNDINGS][INCLUDED] = json!(if nobody { "nobody" } else { "some" });
}

/// Returns true if only people on the inclusion list take part, and it is empty.
///
/// # Errors
///
/// An error from the platform.
async fn takes_nobody(client: &UpgradeClient, experiment: &View) -> Result<bool, Error> {
    let nobody = experiment.filter_mode == "excludeAll" && experiment.inclusion.iter().all(MemberList::is_empty);
    if !nobody {
        return Ok(false);
    }
    // The list of all experiments has all inclusion lists; a single experiment lacks some.
    let all = client.all().await?;
    let own = all.iter().find(|view| view.id == experiment.id);
    Ok(own.is_none_or(|own| own.inclusion.iter().all(MemberList::is_empty)))
}
