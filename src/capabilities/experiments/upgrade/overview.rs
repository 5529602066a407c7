//! All experiments in short, indexed by name and by the decision points at which they are live.
//!
//! An [`Overview`] has only what a card says about experiments other than its own, so that it can be kept in memory;
//! the questions that a card asks cost the same however many experiments there are.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    sync::Arc,
};

use serde::Deserialize;

use super::{
    experiment::{DecisionPoint, ExperimentId, View, or_default, point_words},
    status::Status,
};

/// An experiment in short.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Received")]
pub struct Outline {
    /// The id.
    pub id: ExperimentId,
    /// The name; not unique.
    pub name: String,
    /// The context.
    pub context: String,
    /// The status.
    pub state: Status,
    /// The decision points, as site and target, in order.
    pub points: Vec<(String, Option<String>)>,
}

/// The fields of an experiment that an outline is made from, as the server sends them.
#[derive(Deserialize)]
struct Received {
    id: ExperimentId,
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    context: Vec<String>,
    state: Status,
    #[serde(default, deserialize_with = "or_default")]
    partitions: Vec<DecisionPoint>,
}

impl From<Received> for Outline {
    fn from(Received { id, name, context, state, mut partitions }: Received) -> Self {
        partitions.sort_by_key(|point| point.order);
        let points = partitions.into_iter().map(|point| (point.site, point.target)).collect();
        Self { id, name, context: context.into_iter().next().unwrap_or_default(), state, points }
    }
}

impl From<&View> for Outline {
    fn from(view: &View) -> Self {
        let points = view.decision_points.iter().map(|point| (point.site.clone(), point.target.clone()));
        Self {
            id: view.id,
            name: view.name.clone(),
            context: view.context().to_owned(),
            state: view.state,
            points: points.collect(),
        }
    }
}

impl Outline {
    /// Returns the places at which it is live.
    fn places(&self) -> impl Iterator<Item = Place> {
        let points: HashSet<_> = self.points.iter().filter(|_| self.state.is_live()).collect();
        points.into_iter().map(|(site, target)| Place {
            context: self.context.clone(),
            site: site.clone(),
            target: target.clone(),
        })
    }
}

/// A decision point in a context.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Place {
    context: String,
    site: String,
    target: Option<String>,
}

/// All experiments in short.
#[derive(Debug, Default)]
pub struct Overview {
    all: HashMap<ExperimentId, Arc<Outline>>,
    by_name: HashMap<String, Vec<ExperimentId>>,
    live_at: HashMap<Place, Vec<ExperimentId>>,
}

impl FromIterator<Outline> for Overview {
    fn from_iter<T: IntoIterator<Item = Outline>>(all: T) -> Self {
        let mut overview = Self::default();
        all.into_iter().for_each(|outline| overview.put(outline));
        overview
    }
}

impl Overview {
    /// Adds an experiment, in place of an earlier one with this id.
    pub fn put(&mut self, outline: Outline) {
        self.remove(outline.id);
        self.by_name.entry(name_key(&outline.name)).or_default().push(outline.id);
        for place in outline.places() {
            self.live_at.entry(place).or_default().push(outline.id);
        }
        self.all.insert(outline.id, Arc::new(outline));
    }

    /// Removes an experiment.
    pub fn remove(&mut self, id: ExperimentId) {
        let Some(outline) = self.all.remove(&id) else { return };
        take_out(&mut self.by_name, &name_key(&outline.name), id);
        for place in outline.places() {
            take_out(&mut self.live_at, &place, id);
        }
    }

    /// Changes the status of an experiment; returns false if it is not known.
    pub fn set_status(&mut self, id: ExperimentId, state: Status) -> bool {
        let outline = self.all.get(&id).map(|known| Outline { state, ..Outline::clone(known) });
        let is_known = outline.is_some();
        outline.into_iter().for_each(|outline| self.put(outline));
        is_known
    }

    /// Returns the experiments other than `own` with this name, ignoring case.
    pub fn namesakes(&self, name: &str, own: Option<ExperimentId>) -> Vec<Arc<Outline>> {
        self.sorted(self.by_name.get(&name_key(name)).into_iter().flatten().copied(), own)
    }

    /// Returns the live experiments other than `own` in the context that have one of these points (site and target),
    /// with the shared point.
    pub fn sharing<'a>(
        &self,
        context: &str,
        points: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone,
        own: Option<ExperimentId>,
    ) -> Vec<(Arc<Outline>, String)> {
        let place = |(site, target): (&str, Option<&str>)| Place {
            context: context.to_owned(),
            site: site.to_owned(),
            target: target.map(str::to_owned),
        };
        let live: HashSet<_> = points.clone().filter_map(|point| self.live_at.get(&place(point))).flatten().collect();
        let shared = self.sorted(live.into_iter().copied(), own).into_iter().filter_map(|outline| {
            let is_shared = |(site, target): &&(String, Option<String>)| {
                points.clone().any(|(s, t)| site == s && target.as_deref() == t)
            };
            let words =
                outline.points.iter().find(is_shared).map(|(site, target)| point_words(site, target.as_deref()));
            words.map(|words| (outline, words))
        });
        shared.collect()
    }

    /// Returns the names of the experiments whose status fits, each once, in order.
    pub fn names_in(&self, fits: impl Fn(Status) -> bool) -> Vec<String> {
        let fitting = self.all.values().filter(|outline| fits(outline.state));
        let mut names: Vec<String> = fitting.map(|outline| outline.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns these experiments without `own`, by name.
    fn sorted(&self, ids: impl Iterator<Item = ExperimentId>, own: Option<ExperimentId>) -> Vec<Arc<Outline>> {
        let others = ids.filter(|id| Some(*id) != own);
        let mut found: Vec<_> = others.filter_map(|id| self.all.get(&id).cloned()).collect();
        found.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        found
    }
}

/// Returns the form of a name in which namesakes are equal.
fn name_key(name: &str) -> String {
    name.trim().to_lowercase()
}

/// Takes an id out of an index.
fn take_out<K: Eq + Hash>(index: &mut HashMap<K, Vec<ExperimentId>>, key: &K, id: ExperimentId) {
    if let Some(ids) = index.get_mut(key) {
        ids.retain(|other| *other != id);
        if ids.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const HERE: [(&str, Option<&str>); 1] = [("chat", Some("tone"))];

    fn outline(id: u128, name: &str, state: Status) -> Outline {
        let points = vec![("quiz".to_owned(), None), ("chat".to_owned(), Some("tone".to_owned()))];
        Outline { id: ExperimentId(Uuid::from_u128(id)), name: name.into(), context: "qa".into(), state, points }
    }

    fn shared(overview: &Overview) -> Vec<(String, String)> {
        let found = overview.sharing("qa", HERE.into_iter(), Some(ExperimentId(Uuid::from_u128(1))));
        found.into_iter().map(|(outline, point)| (outline.name.clone(), point)).collect()
    }

    #[test]
    fn only_live_experiments_share_a_point() {
        let all = [
            outline(1, "Own", Status::Enrolling),
            outline(2, "B", Status::EnrollmentComplete),
            outline(3, "A", Status::Enrolling),
            outline(4, "Idle", Status::Inactive),
        ];
        let mut overview: Overview = all.into_iter().collect();
        let of = |names: &[&str]| names.iter().map(|n| ((*n).to_owned(), "chat / tone".to_owned())).collect::<Vec<_>>();
        assert_eq!(shared(&overview), of(&["A", "B"]), "by name, with the point that is shared");
        assert!(overview.sharing("other", HERE.into_iter(), None).is_empty(), "in another context");

        assert!(overview.set_status(ExperimentId(Uuid::from_u128(4)), Status::Enrolling));
        overview.remove(ExperimentId(Uuid::from_u128(2)));
        assert_eq!(shared(&overview), of(&["A", "Idle"]));
        overview.put(Outline { points: Vec::new(), ..outline(3, "A", Status::Enrolling) });
        assert_eq!(shared(&overview), of(&["Idle"]), "it has left the point");
        assert!(!overview.set_status(ExperimentId(Uuid::from_u128(9)), Status::Enrolling), "it is not known");
    }

    #[test]
    fn names_are_chosen_by_status() {
        let all =
            [outline(1, "B", Status::Inactive), outline(2, "A", Status::Inactive), outline(3, "C", Status::Archived)];
        let overview: Overview = all.into_iter().collect();
        assert_eq!(overview.names_in(|state| state == Status::Inactive), ["A", "B"]);
    }

    #[test]
    fn a_renamed_experiment_is_a_namesake_under_its_new_name_only() {
        let mut overview: Overview = [outline(1, "Math Hints", Status::Draft)].into_iter().collect();
        assert_eq!(overview.namesakes(" math hints", None).len(), 1);
        assert!(overview.namesakes("Math Hints", Some(ExperimentId(Uuid::from_u128(1)))).is_empty(), "it is its own");
        overview.put(outline(1, "Hints", Status::Draft));
        assert!(overview.namesakes("Math Hints", None).is_empty());
        assert_eq!(overview.namesakes("hints", None).len(), 1);
    }

    #[test]
    fn an_experiment_as_received_and_as_read_gives_the_same_outline() {
        let raw = serde_json::json!({
            "id": Uuid::from_u128(1), "name": "Own", "context": ["qa", "other"], "state": "running", "partitions": [
                { "id": "p2", "site": "chat", "target": "tone", "order": 2 }, { "id": "p1", "site": "quiz", "order": 1 },
            ],
        });
        let received: Outline = serde_json::from_value(raw.clone()).unwrap();
        assert_eq!(received, outline(1, "Own", Status::Enrolling));
        assert_eq!(received, Outline::from(&super::super::experiment::Experiment::from_value(&raw).unwrap().view));
    }
}
