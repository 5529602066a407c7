//! A cache of the names that exist on the platform, which are needed to understand messages.
//!
//! The names of experiments are used for [`NAMES_MAX_AGE`], or until the bot makes a change. The
//! vocabulary of contexts, which only an administrator changes, is used for [`VOCABULARY_MAX_AGE`].
//! One task at a time reads them, within [`READ_TIMEOUT`]. If the platform is not available, the last
//! names are used, and the next attempt is made after [`RETRY_DELAY`]. The cache only tells which
//! words of a message are names: the experiment of a change is always looked up again.
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

use super::upgrade::{client::UpgradeClient, context::Contexts};

/// The time for which the names of experiments are used without reading them again.
const NAMES_MAX_AGE: Duration = Duration::from_secs(30);
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
    names: Arc<Names>,
    /// The time of the last successful read, and the number of changes that the bot had made by then.
    read: Option<(Timestamp, u64)>,
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

    /// Reads the names again if they are out of date. A part that cannot be read keeps its last value.
    pub(super) async fn refresh(&self) {
        if self.is_fresh() {
            return;
        }
        let _turn = self.refreshing.lock().await;
        if self.is_fresh() {
            return; // another task has just read them
        }
        if tokio::time::timeout(READ_TIMEOUT, self.read()).await.is_err() {
            debug!("The names were not read in time");
            self.cache().failed = Some(self.clock.now());
        }
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, CachedNames> {
        self.cache.lock().expect("nothing panics while it is held")
    }

    fn is_fresh(&self) -> bool {
        let now = self.clock.now();
        let cache = self.cache();
        let within = |at: Timestamp, most: Duration| now.since(at) < most;
        let up_to_date =
            cache.read.is_some_and(|(at, changes)| within(at, NAMES_MAX_AGE) && changes == self.client.changes_made());
        up_to_date || cache.failed.is_some_and(|at| within(at, RETRY_DELAY))
    }

    async fn read(&self) {
        let changes = self.client.changes_made();
        let old = |at: Timestamp| self.clock.now().since(at) >= VOCABULARY_MAX_AGE;
        let reads_contexts = self.cache().contexts_read.is_none_or(old);
        let names = self.client.names().await;
        let contexts = match (reads_contexts && names.is_ok()).then_some(()) {
            Some(()) => self.client.context_metadata().await.ok(),
            None => None,
        };
        let now = self.clock.now();
        let mut cache = self.cache();
        if let Some(contexts) = contexts {
            (cache.contexts, cache.contexts_read) = (contexts, Some(now));
        }
        match names {
            Ok(names) => {
                let experiments = names.into_iter().map(|named| Name {
                    id: Some(named.id.to_string()),
                    subject: true,
                    ..name(EXPERIMENT, &named.name)
                });
                let vocabulary = vocabulary(&cache.contexts);
                cache.names = Arc::new(Names::new(experiments.chain(vocabulary)));
                (cache.read, cache.failed) = (Some((now, changes)), None);
            }
            Err(error) => {
                debug!("Cannot read the names: {}", countersign_core::cause::chain(&error));
                cache.failed = Some(now);
            }
        }
    }
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
