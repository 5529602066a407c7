//! The names of the experiments and an [`Overview`] of them, kept in the memory of this process.
//!
//! A request names an experiment, and its card names the others that are live at the same decision points. If all of
//! them were read for each request, it would cost more the more experiments there are. They are read
//!
//! - by the first request that needs them,
//! - in the background by the first that needs them [`AHEAD_AGE`] after the last read,
//! - by the first that needs them [`MAX_AGE`] after the last read, which waits for them, and
//! - the names also if a look-up in them finds nothing, several experiments, or one that is gone or has another name
//!   now, if a message names nothing that is known (`names`), and for each change that cannot be undone (`access`).
//!
//! The changes of this process are applied to them as soon as they are confirmed (`Effect`), and if the outcome of a
//! change is not known, the next request reads again. Other processes and people also change experiments: that is
//! noticed when the age is reached, or before a change whose card names others. No change relies on what is kept here: the
//! experiment itself is read for its card, and again before the change runs, as are the others that its card names or says
//! do not exist ([`UpgradeClient::live`], [`UpgradeClient::called`]).
//!
//! The time of a read is its beginning. Changes that are confirmed while a read is in progress may be missing in its
//! answer, so they are applied to it as well.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, RwLock},
    time::Duration,
};

use countersign_core::clock::{Clock, Timestamp};
use countersign_services::shared_read::SharedRead;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    calls::As,
    client::UpgradeClient,
    error::Error,
    experiment::{ExperimentId, ExperimentName, View},
    overview::{Outline, Overview},
    status::Status,
};
use crate::lookup::NameIndex;

/// The time for which names and overview are used without reading them again.
pub const MAX_AGE: Duration = Duration::from_secs(30);

/// The age at which names and overview are read ahead, so that nobody waits for them as long as there are requests.
const AHEAD_AGE: Duration = Duration::from_secs(20);

/// The number of experiments on a page of a search. The platform needs as long for a large page as for a small one.
const PAGE: usize = 500;
/// The maximum number of pages of a search.
const MAX_PAGES: usize = 20;

/// What a change affects.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// Users, or inclusion and exclusion lists, which are not kept.
    Unkept,
    /// The design of an experiment, which may be new. The server answers with it.
    Design(Option<ExperimentId>),
    /// The status of an experiment. The server answers with it.
    Status(ExperimentId, Status),
    /// The existence of an experiment.
    Deletion(ExperimentId),
}

/// A change of what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Design(Outline),
    Status(ExperimentId, Status),
    Deleted(ExperimentId),
    /// The platform may have changed in some way.
    Unknown,
}

impl Effect {
    /// Returns the change that an answer confirms; `None` if nothing that is kept has changed.
    fn change(self, answer: &Result<impl Confirms, Error>) -> Option<Change> {
        match (self, answer) {
            (Self::Unkept, _) | (_, Err(Error::SignIn(_) | Error::Unavailable { .. })) => None,
            (_, Err(_)) => Some(Change::Unknown),
            (_, Ok(answer)) => Some(answer.confirmed(self).unwrap_or(Change::Unknown)),
        }
    }
}

/// An answer to a change.
pub(super) trait Confirms {
    /// Returns the change that the answer confirms; `None` unless it is the one with this effect.
    fn confirmed(&self, effect: Effect) -> Option<Change>;
}

/// An answer to a change of anything but the status.
impl Confirms for Value {
    fn confirmed(&self, effect: Effect) -> Option<Change> {
        match effect {
            Effect::Unkept | Effect::Status(..) => None,
            Effect::Design(id) => {
                let is_whole = self["partitions"].is_array() && self["context"].is_array();
                let outline = Outline::deserialize(self).ok().filter(|_| is_whole);
                outline.filter(|outline| id.is_none_or(|id| id == outline.id)).map(Change::Design)
            }
            Effect::Deletion(id) => deletes(self, id).then_some(Change::Deleted(id)),
        }
    }
}

/// An answer to a change of the status.
impl Confirms for View {
    fn confirmed(&self, effect: Effect) -> Option<Change> {
        match effect {
            Effect::Status(id, state) if self.id == id && self.state == state => Some(Change::Status(id, state)),
            _ => None,
        }
    }
}

/// Returns true if the answer to a deletion names the experiment.
pub(super) fn deletes(answer: &Value, id: ExperimentId) -> bool {
    let is_named = |row: &Value| ExperimentId::deserialize(&row["id"]).is_ok_and(|named| named == id);
    answer.as_array().is_some_and(|rows| rows.iter().any(is_named))
}

/// What this process knows of the experiments.
#[derive(Debug)]
pub(super) struct Known {
    clock: Arc<dyn Clock>,
    kept: Mutex<Kept>,
    overview: Arc<RwLock<Overview>>,
    names_read: SharedRead<Result<Arc<NameIndex>, Error>>,
    names_filled: SharedRead<Result<Arc<NameIndex>, Error>>,
    overview_filled: SharedRead<Result<(), Error>>,
}

#[derive(Debug, Default)]
struct Kept {
    names: Arc<NameIndex>,
    /// The time of the last read of the names; `None` if they have to be read again.
    names_at: Option<Timestamp>,
    /// The same for the overview.
    overview_at: Option<Timestamp>,
    /// The number of reads in progress.
    reads: usize,
    /// The changes since the first of these reads began.
    changes: Vec<Change>,
    /// True while names and overview are read ahead.
    reads_ahead: bool,
}

impl Known {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            kept: Mutex::default(),
            overview: Arc::default(),
            names_read: SharedRead::default(),
            names_filled: SharedRead::default(),
            overview_filled: SharedRead::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("nothing panics while it is held")
    }

    /// Begins a change of this process. If it is given up without an answer, its outcome is unknown.
    pub(super) fn sending(&self, effect: Effect) -> Sending<'_> {
        Sending { known: self, effect: Some(effect) }
    }

    /// Applies a change that this process has sent, as far as the answer confirms it.
    fn note(&self, effect: Effect, answer: &Result<impl Confirms, Error>) {
        if let Some(change) = effect.change(answer) {
            self.apply(change);
        }
    }

    fn apply(&self, change: Change) {
        let mut kept = self.kept();
        kept.apply_to_names(&change);
        self.apply_to_overview(&mut kept, &change);
        if kept.reads > 0 {
            kept.changes.push(change);
        }
    }

    fn apply_to_overview(&self, kept: &mut Kept, change: &Change) {
        let mut overview = self.overview.write().expect("nothing panics while it is held");
        match change {
            Change::Design(outline) => overview.put(outline.clone()),
            Change::Deleted(id) => overview.remove(*id),
            Change::Status(id, state) if overview.set_status(*id, *state) => {}
            Change::Status(..) | Change::Unknown => kept.overview_at = None,
        }
    }

    /// Returns true if a read at this time is not out of date. A clock that was set back makes it so.
    fn is_recent(&self, read: Option<Timestamp>) -> bool {
        let now = self.clock.now();
        read.is_some_and(|at| at <= now && now.since(at) < MAX_AGE)
    }

    /// Returns the names if they are not out of date.
    fn names(&self) -> Option<Arc<NameIndex>> {
        let kept = self.kept();
        self.is_recent(kept.names_at).then(|| kept.names.clone())
    }

    /// Begins to read ahead, if what is kept will soon be out of date. Returns which of the names and the overview are to
    /// be read; `None` if neither, or if they are being read ahead already.
    fn begin_ahead(&self) -> Option<[bool; 2]> {
        let mut kept = self.kept();
        let now = self.clock.now();
        let is_due =
            |read: Option<Timestamp>| self.is_recent(read) && read.is_some_and(|at| now.since(at) >= AHEAD_AGE);
        let due = [is_due(kept.names_at), is_due(kept.overview_at)];
        let begins = due.contains(&true) && !kept.reads_ahead;
        kept.reads_ahead |= begins;
        begins.then_some(due)
    }

    fn begin(&self) -> Reading<'_> {
        let at = self.clock.now();
        let mut kept = self.kept();
        kept.reads += 1;
        Reading { known: self, at, earlier: kept.changes.len() }
    }
}

/// A change that is being sent.
pub(super) struct Sending<'a> {
    known: &'a Known,
    /// `None` once the change was answered.
    effect: Option<Effect>,
}

impl Sending<'_> {
    /// Applies the change as far as the answer confirms it.
    pub(super) fn note(mut self, answer: &Result<impl Confirms, Error>) {
        if let Some(effect) = self.effect.take() {
            self.known.note(effect, answer);
        }
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if self.effect.take().is_some_and(|effect| !matches!(effect, Effect::Unkept)) {
            self.known.apply(Change::Unknown);
        }
    }
}

impl Kept {
    fn apply_to_names(&mut self, change: &Change) {
        let changed = match change {
            Change::Design(outline) => self.names.with(ExperimentName { id: outline.id, name: outline.name.clone() }),
            Change::Deleted(id) => self.names.without(*id),
            Change::Status(..) => None,
            Change::Unknown => {
                self.names_at = None;
                None
            }
        };
        if let Some(changed) = changed {
            self.names = Arc::new(changed);
        }
    }
}

/// A read in progress. Dropping it ends the read.
struct Reading<'k> {
    known: &'k Known,
    at: Timestamp,
    /// The number of kept changes that were made before it.
    earlier: usize,
}

impl Reading<'_> {
    /// Keeps names that were read. If they are the same as before, their index stays the same.
    fn keep_names(&self, names: Vec<ExperimentName>) -> Arc<NameIndex> {
        let before = self.known.kept().names.clone();
        let (index, gone) = match before.all() == names {
            true => (before, Vec::new()),
            false => {
                let ids: HashSet<ExperimentId> = names.iter().map(|named| named.id).collect();
                let gone = before.all().iter().map(|named| named.id).filter(|id| !ids.contains(id)).collect();
                (Arc::new(NameIndex::new(names)), gone)
            }
        };
        let mut kept = self.known.kept();
        (kept.names, kept.names_at) = (index, Some(self.at));
        let since = kept.changes[self.earlier..].to_vec();
        // Otherwise the card of an experiment that was made anew elsewhere would name the one that it replaces.
        let is_new =
            |id: &ExperimentId| since.iter().any(|change| matches!(change, Change::Design(new) if new.id == *id));
        for id in gone.into_iter().filter(|id| !is_new(id)) {
            self.known.apply_to_overview(&mut kept, &Change::Deleted(id));
        }
        for change in &since {
            kept.apply_to_names(change);
        }
        kept.names.clone()
    }

    /// Keeps an overview that was read.
    fn keep_overview(&self, overview: Overview) {
        let mut kept = self.known.kept();
        let old = {
            let mut current = self.known.overview.write().expect("nothing panics while it is held");
            std::mem::replace(&mut *current, overview)
        };
        kept.overview_at = Some(self.at);
        let since = kept.changes[self.earlier..].to_vec();
        for change in since {
            self.known.apply_to_overview(&mut kept, &change);
        }
        drop(kept);
        drop(old); // takes a while, so nobody waits for it
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut kept = self.known.kept();
        kept.reads -= 1;
        if kept.reads == 0 {
            kept.changes.clear();
        }
    }
}

/// Reading ahead. Dropping it ends it.
struct ReadingAhead<'k>(&'k Known);

impl Drop for ReadingAhead<'_> {
    fn drop(&mut self) {
        self.0.kept().reads_ahead = false;
    }
}

impl UpgradeClient {
    /// Reads the names of all experiments.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn names(&self) -> Result<Arc<NameIndex>, Error> {
        let read = async || {
            let reading = self.known.begin();
            let mut names: Vec<ExperimentName> = self.read(Method::GET, "/experiments/names", As::Admin, None).await?;
            names.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
            Ok(reading.keep_names(names))
        };
        self.known.names_read.get(read).await
    }

    /// Reads names and overview in the background, if they will soon be out of date.
    pub fn read_ahead(self: &Arc<Self>) {
        let Some([names, overview]) = self.known.begin_ahead() else { return };
        let client = Arc::clone(self);
        tokio::spawn(async move {
            let _ends = ReadingAhead(&client.known);
            // If one cannot be read, the next request that needs it reports that.
            if names {
                let _ = client.names().await;
            }
            if overview {
                let _ = client.read_overview().await;
            }
        });
    }

    async fn read_overview(&self) -> Result<(), Error> {
        let reading = self.known.begin();
        let all: Vec<Outline> = self.read(Method::GET, "/experiments", As::Admin, None).await?;
        reading.keep_overview(all.into_iter().collect());
        Ok(())
    }

    /// Returns the names of all experiments from memory, if they are not out of date there.
    pub fn names_in_memory(&self) -> Option<Arc<NameIndex>> {
        self.known.names()
    }

    /// Returns the names of all experiments from memory, if they were read after `since`.
    pub fn names_since(&self, since: Timestamp) -> Option<Arc<NameIndex>> {
        let kept = self.known.kept();
        kept.names_at.is_some_and(|at| at > since).then(|| kept.names.clone())
    }

    /// Returns the names of all experiments, from memory if they are not out of date there.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn known_names(&self) -> Result<Arc<NameIndex>, Error> {
        if let Some(names) = self.known.names() {
            return Ok(names);
        }
        let fill = async || match self.known.names() {
            Some(names) => Ok(names),
            None => self.names().await,
        };
        self.known.names_filled.get(fill).await
    }

    /// Reads the experiments that assign conditions, in short. The answer does not grow with the number of the others.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn live(&self) -> Result<Vec<Outline>, Error> {
        let [running, paused] = [Status::Enrolling, Status::EnrollmentComplete].map(Status::stored);
        let (running, paused) = tokio::try_join!(self.matching("status", running), self.matching("status", paused))?;
        Ok([running, paused].concat())
    }

    /// Reads the experiments whose names contain this one, in short.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn called(&self, name: &str) -> Result<Vec<Outline>, Error> {
        self.matching("name", name.trim()).await
    }

    /// Reads the experiments that match a search.
    async fn matching(&self, key: &str, text: &str) -> Result<Vec<Outline>, Error> {
        #[derive(Deserialize)]
        struct Page {
            nodes: Vec<Outline>,
        }
        let mut all = Vec::new();
        for page in 0..MAX_PAGES {
            let search = json!({ "skip": page * PAGE, "take": PAGE, "searchParams": { "key": key, "string": text } });
            let page: Page = self.read(Method::POST, "/experiments/paginated", As::Admin, Some(&search)).await?;
            let is_last = page.nodes.len() < PAGE;
            all.extend(page.nodes);
            if is_last {
                return Ok(all);
            }
        }
        Err(Error::Decode { reason: "a search has too many pages".to_owned() })
    }

    /// Marks the overview as out of date, after another look at the platform contradicted it.
    pub fn forget_overview(&self) {
        self.known.kept().overview_at = None;
    }

    /// Returns the time since the overview was read.
    pub fn overview_age(&self) -> Duration {
        let read = self.known.kept().overview_at;
        read.map_or(Duration::ZERO, |at| self.known.clock.now().since(at))
    }

    /// Returns the overview of all experiments, which is read if it is out of date. It stays up to date with the
    /// changes of this process.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn overview(&self) -> Result<Arc<RwLock<Overview>>, Error> {
        let is_recent = || self.known.is_recent(self.known.kept().overview_at);
        let fill = async || {
            if is_recent() {
                return Ok(());
            }
            self.read_overview().await
        };
        if !is_recent() {
            self.known.overview_filled.get(fill).await?;
        }
        Ok(self.known.overview.clone())
    }
}

#[cfg(test)]
mod tests {
    use countersign_core::clock::ManualClock;
    use uuid::Uuid;

    use super::*;

    const CHAT: [(&str, Option<&str>); 1] = [("chat", Some("tone"))];

    const STARTED: Effect = Effect::Status(id(1), Status::Enrolling);

    const fn id(number: u128) -> ExperimentId {
        ExperimentId(Uuid::from_u128(number))
    }

    fn sent(number: u128, name: &str, state: &str) -> Value {
        let points = json!([{ "id": "p1", "site": "chat", "target": "tone" }]);
        json!({ "id": id(number), "name": name, "context": ["qa"], "state": state, "partitions": points })
    }

    /// Returns the answer to a change of the status.
    fn changed(number: u128, state: &str) -> View {
        View::deserialize(sent(number, "A", state)).unwrap()
    }

    fn known() -> (Known, ManualClock) {
        let clock = ManualClock::default();
        (Known::new(Arc::new(clock.clone())), clock)
    }

    /// Reads the platform while `meanwhile` happens.
    fn reads(known: &Known, platform: &[Value], meanwhile: impl FnOnce(&Known)) {
        let reading = known.begin();
        meanwhile(known);
        reading.keep_names(platform.iter().map(|one| serde_json::from_value(one.clone()).unwrap()).collect());
        reading.keep_overview(platform.iter().map(|one| Outline::deserialize(one).unwrap()).collect());
    }

    /// The names, and the experiments that are live at the point; `None` for what has to be read again.
    fn shown(known: &Known) -> (Option<String>, Option<String>) {
        let joined = |names: Vec<String>| names.join(", ");
        let names = known.names().map(|names| joined(names.all().iter().map(|named| named.name.clone()).collect()));
        let is_recent = known.is_recent(known.kept().overview_at);
        let live = known.overview.read().unwrap().sharing("qa", CHAT.into_iter(), None);
        (names, is_recent.then(|| joined(live.into_iter().map(|(outline, _)| outline.name.clone()).collect())))
    }

    fn shows(names: &str, live: &str) -> (Option<String>, Option<String>) {
        (Some(names.to_owned()), Some(live.to_owned()))
    }

    #[test]
    fn our_own_changes_are_applied_at_once() {
        let (known, _) = known();
        assert_eq!(shown(&known), (None, None), "nothing was read yet");
        reads(&known, &[sent(1, "A", "inactive"), sent(2, "B", "enrolling")], |_| {});
        assert_eq!(shown(&known), shows("A, B", "B"));
        known.note(STARTED, &Ok(changed(1, "enrolling")));
        assert_eq!(shown(&known), shows("A, B", "A, B"));
        known.note(Effect::Design(None), &Ok(sent(3, "C", "inactive")));
        known.note(Effect::Design(Some(id(2))), &Ok(sent(2, "Z", "enrolling")));
        assert_eq!(shown(&known), shows("A, C, Z", "A, Z"));
        known.note(Effect::Deletion(id(1)), &Ok(json!([{ "id": id(1) }])));
        assert_eq!(shown(&known), shows("C, Z", "Z"));
    }

    #[test]
    fn a_change_during_a_read_is_not_lost() {
        let (known, _) = known();
        let before = [sent(1, "A", "inactive"), sent(2, "B", "enrolling")];
        reads(&known, &before, |known| {
            known.note(STARTED, &Ok(changed(1, "enrolling")));
            known.note(Effect::Deletion(id(2)), &Ok(json!([{ "id": id(2) }])));
        });
        assert_eq!(shown(&known), shows("A", "A"));
        reads(&known, &before, |_| {});
        assert_eq!(shown(&known), shows("A, B", "B"), "a later read is not affected by them");
        reads(&known, &before, |known| {
            known.note(STARTED, &Err::<Value, _>(Error::NoAnswer { reason: "late".into() }))
        });
        assert_eq!(shown(&known), (None, None), "it may have changed after it was read");
    }

    #[test]
    fn what_is_no_longer_among_the_names_is_in_no_overview() {
        let (known, _) = known();
        reads(&known, &[sent(1, "A", "enrolling"), sent(2, "B", "enrolling")], |_| {});
        let reading = known.begin();
        known.note(Effect::Design(None), &Ok(sent(4, "D", "enrolling")));
        let made_anew = [sent(3, "A", "inactive"), sent(2, "B", "enrolling")];
        reading.keep_names(made_anew.into_iter().map(|one| serde_json::from_value(one).unwrap()).collect());
        drop(reading);
        assert_eq!(shown(&known), shows("A, B, D", "B, D"));
    }

    #[test]
    fn an_uncertain_change_and_age_make_it_read_again() {
        let (known, clock) = known();
        let fill = || reads(&known, &[sent(1, "A", "enrolling")], |_| {});
        let forgets = |effect: Effect, answer: Result<Value, Error>| {
            fill();
            known.note(effect, &answer);
            shown(&known) == (None, None)
        };
        assert!(forgets(STARTED, Err(Error::NoAnswer { reason: "late".into() })));
        assert!(forgets(STARTED, Err(Error::Unclear { reason: "not the status".into() })));
        assert!(forgets(Effect::Design(Some(id(2))), Ok(sent(1, "A", "enrolling"))));
        assert!(
            forgets(Effect::Design(None), Ok(json!({ "id": id(1), "name": "A", "state": "enrolling" }))),
            "not the points"
        );
        assert!(forgets(Effect::Deletion(id(1)), Ok(json!([]))));
        assert!(!forgets(STARTED, Err(Error::Unavailable { reason: "refused".into() })), "nothing was sent");
        assert!(!forgets(Effect::Unkept, Err(Error::NoAnswer { reason: "late".into() })), "nothing of it is kept");

        for (answer, why) in
            [(changed(2, "enrolling"), "another experiment"), (changed(1, "inactive"), "another status")]
        {
            fill();
            known.note(STARTED, &Ok(answer));
            assert_eq!(shown(&known), (None, None), "{why}");
        }

        fill();
        clock.advance(MAX_AGE / 2);
        assert_eq!(shown(&known), shows("A", "A"));
        clock.advance(MAX_AGE / 2);
        assert_eq!(shown(&known), (None, None));
    }

    #[test]
    fn what_will_soon_be_out_of_date_is_read_ahead_once() {
        let (known, clock) = known();
        assert_eq!(known.begin_ahead(), None, "nothing was read yet: the first request waits");
        known.begin().keep_names(Vec::new());
        clock.advance(AHEAD_AGE / 2);
        known.begin().keep_overview(Overview::default());
        assert_eq!(known.begin_ahead(), None);
        clock.advance(AHEAD_AGE / 2);
        assert_eq!(known.begin_ahead(), Some([true, false]));
        assert_eq!(known.begin_ahead(), None, "it is in progress");
        drop(ReadingAhead(&known));
        clock.advance(MAX_AGE - AHEAD_AGE);
        assert_eq!(known.begin_ahead(), Some([false, true]), "the names are out of date: the next request waits");
    }

    #[test]
    fn the_index_of_unchanged_names_stays_the_same() {
        let (known, _) = known();
        let fill = || reads(&known, &[sent(1, "A", "enrolling")], |_| {});
        fill();
        let first = known.names().unwrap();
        fill();
        known.note(STARTED, &Ok(changed(1, "enrolling")));
        known.note(Effect::Design(None), &Ok(sent(1, "A", "inactive")));
        assert!(Arc::ptr_eq(&first, &known.names().unwrap()));
    }

    #[test]
    fn after_a_change_that_was_given_up_the_overview_is_read_again() {
        let (known, _) = known();
        let is_recent = |known: &Known| {
            let read_at = known.kept().overview_at;
            known.is_recent(read_at)
        };
        known.kept().overview_at = Some(known.clock.now());
        drop(known.sending(Effect::Unkept));
        known.sending(Effect::Unkept).note(&Ok(json!({})));
        assert!(is_recent(&known));
        drop(known.sending(STARTED));
        assert!(!is_recent(&known), "it may have arrived");
    }

    #[test]
    fn changes_are_only_remembered_for_reads_in_progress() {
        let (known, _) = known();
        let reading = known.begin();
        known.note(STARTED, &Ok(changed(1, "enrolling")));
        assert_eq!(known.kept().changes.len(), 1);
        drop(reading); // given up
        assert!(known.kept().changes.is_empty());
        known.note(STARTED, &Ok(changed(1, "enrolling")));
        assert!(known.kept().changes.is_empty());
    }
}
