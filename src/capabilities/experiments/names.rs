//! The names that exist on the platform, indexed to be found in messages.
//!
//! The names of experiments are those that the client keeps in memory (`upgrade::known`), and the vocabulary of
//! contexts, which only an administrator changes, is read again after [`VOCABULARY_MAX_AGE`]. The index is built again
//! only if one of them has changed, and messages share it. One task at a time reads, within [`READ_TIMEOUT`]. If the
//! platform is not available, the last names are used, and the next attempt is made after [`RETRY_DELAY`]. The index
//! only tells which words of a message are names: the experiment of a change is always looked up again.
//!
//! Tags are left out, since only the list of all experiments with all their data contains them, and
//! it is too large to be read this often. Sites and targets that are also ordinary words, such as
//! `chat`, are left out, so that the word in a message is not taken for the name.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use countersign_core::clock::{Clock, Timestamp};
use countersign_understanding::lexicon::{Name, Names};
use tracing::debug;

use super::{
    lookup::NameIndex,
    upgrade::{client::UpgradeClient, context::Contexts},
};

/// The time for which the vocabulary of contexts is used without reading it again.
const VOCABULARY_MAX_AGE: Duration = Duration::from_secs(600);
/// The pause after a failed read.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// The maximum time that a message waits for names.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// The kind of an experiment.
pub(crate) const EXPERIMENT: &str = "experiment";
/// The kind of a context, which is a client application.
pub(crate) const CONTEXT: &str = "context";
/// The kind of a condition that a context suggests.
pub(crate) const CONDITION: &str = "condition";
/// The kind of a group type, such as `classId`.
pub(crate) const GROUP_TYPE: &str = "group type";

/// The kind of a site.
pub(crate) const SITE: &str = "site";
/// The kind of a target.
pub(crate) const TARGET: &str = "target";

/// The names on one platform.
#[derive(Debug)]
pub(super) struct KnownNames {
    client: Arc<UpgradeClient>,
    clock: Arc<dyn Clock>,
    cache: Mutex<CachedNames>,
    refreshing: tokio::sync::Mutex<()>,
}

/// The names that were read last, and the times of the reads.
#[derive(Debug, Default)]
struct CachedNames {
    /// The names of the experiments and the vocabulary, indexed.
    names: Arc<Names>,
    /// The names of the experiments in it.
    experiments: Arc<NameIndex>,
    contexts: Contexts,
    contexts_read: Option<Timestamp>,
    failed: Option<Timestamp>,
}

impl KnownNames {
    /// Creates an empty cache.
    pub(super) fn new(client: Arc<UpgradeClient>, clock: Arc<dyn Clock>) -> Self {
        Self { client, clock, cache: Mutex::default(), refreshing: tokio::sync::Mutex::default() }
    }

    /// Returns the names that were read last.
    pub(super) fn snapshot(&self) -> Arc<Names> {
        self.cache().names.clone()
    }

    /// Reads the names again if they are out of date, or those of experiments were read before `since`. A part that cannot
    /// be read keeps its last value.
    pub(super) async fn refresh(&self, since: Option<Timestamp>) {
        self.client.read_ahead();
        if self.is_fresh(since) {
            return;
        }
        let _turn = self.refreshing.lock().await;
        if self.is_fresh(since) {
            return; // another task has just read them
        }
        if tokio::time::timeout(READ_TIMEOUT, self.read(since)).await.is_err() {
            debug!("The names were not read in time");
            self.cache().failed = Some(self.clock.now());
        }
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, CachedNames> {
        self.cache.lock().expect("nothing panics while it is held")
    }

    fn is_fresh(&self, since: Option<Timestamp>) -> bool {
        let known = self.client.names_in_memory();
        let cache = self.cache();
        let has = |experiments: Arc<NameIndex>| Arc::ptr_eq(&experiments, &cache.experiments);
        let up_to_date = known.is_some_and(has)
            && since.is_none_or(|since| self.client.names_since(since).is_some())
            && self.is_within(cache.contexts_read, VOCABULARY_MAX_AGE);
        up_to_date || self.is_within(cache.failed, RETRY_DELAY)
    }

    fn is_within(&self, at: Option<Timestamp>, most: Duration) -> bool {
        at.is_some_and(|at| self.clock.now().since(at) < most)
    }

    async fn read(&self, since: Option<Timestamp>) {
        let known = match since.is_some_and(|since| self.client.names_since(since).is_none()) {
            true => self.client.names().await,
            false => self.client.known_names().await,
        };
        let (mut contexts, contexts_read, before) = {
            let cache = self.cache();
            (cache.contexts.clone(), cache.contexts_read, cache.experiments.clone())
        };
        let mut error = known.as_ref().err().cloned();
        let reads_contexts = error.is_none() && !self.is_within(contexts_read, VOCABULARY_MAX_AGE);
        if reads_contexts {
            match self.client.context_metadata().await {
                Ok(read) => contexts = read,
                Err(failed) => error = Some(failed),
            }
        }
        let changed = known.as_ref().ok().filter(|known| reads_contexts || !Arc::ptr_eq(known, &before));
        let names = changed.map(|known| Arc::new(indexed(known, &contexts)));
        let now = self.clock.now();
        let mut cache = self.cache();
        if let (Ok(known), Some(names)) = (known, names) {
            (cache.experiments, cache.names) = (known, names);
        }
        if reads_contexts && error.is_none() {
            (cache.contexts, cache.contexts_read) = (contexts, Some(now));
        }
        if let Some(error) = &error {
            debug!("Cannot read the names: {}", countersign_core::cause::chain(error));
        }
        cache.failed = error.map(|_| now);
    }
}

/// Indexes the names of the experiments and the vocabulary.
fn indexed(experiments: &NameIndex, contexts: &Contexts) -> Names {
    let experiments = experiments.all().iter().map(|named| Name {
        id: Some(named.id.to_string()),
        subject: true,
        ..name(EXPERIMENT, &named.name)
    });
    Names::new(experiments.chain(vocabulary(contexts)))
}

fn name(kind: &str, name: &str) -> Name {
    Name { kind: kind.to_owned(), name: name.to_owned(), id: None, owner: super::NAME.to_owned(), subject: false }
}

/// Returns the names of the contexts and of the words in their vocabularies.
fn vocabulary(contexts: &Contexts) -> Vec<Name> {
    let mut all = Vec::new();
    for (context, metadata) in contexts {
        all.push(name(CONTEXT, context));
        all.extend(metadata.conditions.iter().map(|condition| name(CONDITION, condition)));
        all.extend(metadata.group_types.iter().map(|kind| name(GROUP_TYPE, kind)));
        all.extend(metadata.sites.iter().filter(|site| is_distinctive(site)).map(|site| name(SITE, site)));
        all.extend(metadata.targets.iter().filter(|target| is_distinctive(target)).map(|target| name(TARGET, target)));
    }
    all.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    all.dedup();
    all
}

/// Returns true for a name that is not an ordinary word: it has a capital letter, a digit or another
/// character that is not a lower-case letter after its first one.
fn is_distinctive(name: &str) -> bool {
    name.chars().skip(1).any(|letter| !letter.is_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upgrade::context::ContextMetadata;

    #[test]
    fn sites_and_targets_that_are_ordinary_words_are_left_out() {
        let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let sites = of(&["SelectSection", "chat"]);
        let metadata = ContextMetadata { sites, targets: of(&["area_model"]), ..ContextMetadata::default() };
        let names = Names::new(vocabulary(&[("livehint-ai".to_owned(), metadata)].into()));
        let found = |said: &str| {
            let found = names.find(said).into_iter().map(|mention| (mention.kind, mention.name, mention.subject));
            found.collect::<Vec<_>>()
        };
        let value = |kind: &str, name: &str| (kind.to_owned(), name.to_owned(), false);
        assert_eq!(found("let's chat about it"), []);
        let both = [value(SITE, "SelectSection"), value(TARGET, "area_model")];
        assert_eq!(found("what runs at SelectSection, and at area_model?"), both);
    }
}
