//! Facts, read without a model: the data of the platforms in the answers to slash commands and on the Home tab.
//!
//! A reader waits at most [`READ_TIMEOUT`]. A call continues after that, and its answer is cached for the next reader;
//! until then the previous answer is shown with its age. The cache does not survive a restart.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use countersign_core::{
    clock::{Clock, Timestamp, ago},
    ids::{ChannelId, UserId},
    reply::{Reply, Text},
};
use countersign_graph::action::{ErrorKind, Reader};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;

use super::{Registry, Service, ToolError};

/// The maximum wait for a platform.
pub const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum wait if an older answer can be shown instead.
pub const READ_TIMEOUT_WITH_CACHE: Duration = Duration::from_millis(800);

/// The maximum number of cached answers; the oldest is removed.
const MAX_CACHED: usize = 64;

/// A reader of facts, which calls the tools and caches their answers.
#[derive(Clone, Debug)]
pub struct Facts {
    registry: Registry,
    clock: Arc<dyn Clock>,
    cache: Arc<AnswerCache>,
}

/// An answer of a platform, with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The answer of the tool.
    pub answer: Value,
    /// The moment it was read.
    pub at: Timestamp,
    /// True if it was read just now; false if it is from the cache because the platform did not answer.
    pub fresh: bool,
}

/// The health of an outside system.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// The outside system.
    pub service: Service,
    /// The answer with its `name` and `version`; `None` if there is none, not even in the cache.
    pub fact: Option<Fact>,
}

/// The last answers, by tool and arguments.
#[derive(Debug, Default)]
struct AnswerCache(Mutex<HashMap<String, (Value, Timestamp)>>);

impl AnswerCache {
    fn get(&self, key: &str) -> Option<(Value, Timestamp)> {
        self.0.lock().ok()?.get(key).cloned()
    }

    fn insert(&self, key: String, answer: Value, at: Timestamp) {
        let Ok(mut answers) = self.0.lock() else { return };
        if answers.len() >= MAX_CACHED
            && !answers.contains_key(&key)
            && let Some(oldest) = answers.iter().min_by_key(|(_, (_, at))| *at).map(|(key, _)| key.clone())
        {
            answers.remove(&oldest);
        }
        answers.insert(key, (answer, at));
    }
}

impl Facts {
    /// Creates a reader that calls the tools of these capabilities.
    pub fn new(registry: Registry, clock: Arc<dyn Clock>) -> Self {
        Self { registry, clock, cache: Arc::default() }
    }

    /// Returns the capabilities whose tools are called.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the health of each outside system.
    pub async fn health(&self) -> Vec<Health> {
        let services = self.registry.capabilities.iter().filter_map(|capability| capability.info().service);
        let asked = services.map(|service| async move {
            let fact = self.read(service.name, service.health, json!({}), deadline()).await.ok();
            Health { service, fact }
        });
        futures_util::future::join_all(asked).await
    }

    /// Returns the channels whose members may see more in [`Self::home_of`].
    pub fn home_channels(&self) -> Vec<ChannelId> {
        self.registry.capabilities.iter().filter_map(|capability| capability.info().home_channel).collect()
    }

    /// Returns the sections of the Home tab for this person, who is known to be a member of `channels`.
    pub async fn home_of(&self, person: &UserId, channels: &BTreeSet<ChannelId>) -> Vec<Reply> {
        let sections = self.registry.capabilities.iter().map(|capability| capability.home_of(person, channels));
        futures_util::future::join_all(sections).await.into_iter().flatten().collect()
    }

    /// Returns the capabilities' sections of the Home tab for everyone.
    pub async fn home(&self) -> Vec<Reply> {
        let sections = self.registry.capabilities.iter().map(|capability| capability.home(self));
        futures_util::future::join_all(sections).await.into_iter().flatten().collect()
    }

    /// Returns the answer of a tool, limited to the data this reader may see; waits at most [`READ_TIMEOUT`].
    ///
    /// # Errors
    ///
    /// The reply to show instead; `None` if the tool did not answer in time or does not exist.
    pub async fn read_for(&self, tool: &str, arguments: &Value, reader: &Reader) -> Result<Value, Option<Reply>> {
        let Some(tool) = self.registry.tools.get(tool) else { return Err(None) };
        match timeout_at(deadline(), tool.call(arguments, Some(reader))).await {
            Ok(answer) => answer.map_err(|error| Some(error.reply)),
            Err(_) => Err(None),
        }
    }

    /// Adds to `reply` the age of a fact read from `service`.
    pub fn with_age(&self, reply: Reply, fact: &Fact, service: &str) -> Reply {
        let age = self.age(fact);
        match fact.fresh {
            true => reply.hint(format!("Fetched from {service} {age}.")),
            false => {
                let said = Text::from(format!("{service} isn't answering. This is from "));
                reply.hint(said.bold(age).plain("."))
            }
        }
    }

    /// Returns the age of a fact in words.
    pub fn age(&self, fact: &Fact) -> String {
        ago(self.clock.now(), fact.at)
    }

    /// Calls a tool of `service`, waiting at most until `until`; returns the previous answer if there is no new one.
    ///
    /// # Errors
    ///
    /// The reply to show if no answer is known.
    pub async fn read(
        &self,
        service: &str,
        tool: &'static str,
        arguments: Value,
        until: Instant,
    ) -> Result<Fact, Reply> {
        let key = key(tool, &arguments);
        let older = self.cache.get(&key);
        let until = match older {
            Some(_) => until.min(Instant::now() + READ_TIMEOUT_WITH_CACHE),
            None => until,
        };
        let Some(kind) = self.registry.tools.get(tool).cloned() else { return Err(timed_out(service)) };
        let facts = self.clone();
        let ask = async move {
            let answer = kind.call(&arguments, None).await?;
            let at = facts.clock.now();
            facts.cache.insert(key, answer.clone(), at);
            Ok::<_, ToolError>(Fact { answer, at, fresh: true })
        };
        let asked = tokio::spawn(ask.in_current_span());
        let failed = match timeout_at(until, asked).await {
            Ok(Ok(Ok(fact))) => return Ok(fact),
            Ok(Ok(Err(error))) if error.kind != ErrorKind::Network => return Err(error.reply),
            Ok(Ok(Err(error))) => error.reply,
            Ok(Err(_)) | Err(_) => timed_out(service),
        };
        match older {
            Some((answer, at)) => Ok(Fact { answer, at, fresh: false }),
            None => Err(failed),
        }
    }
}

fn key(tool: &str, arguments: &Value) -> String {
    format!("{tool} {arguments}")
}

/// Returns the end of the wait for a call that starts now.
pub fn deadline() -> Instant {
    Instant::now() + READ_TIMEOUT
}

/// Returns the reply for a platform that did not answer in time and has no cached answer.
fn timed_out(service: &str) -> Reply {
    Reply::text(format!("{service} didn't answer within {} s, so I couldn't look that up.", READ_TIMEOUT.as_secs()))
        .hint("Try again in a minute. If it keeps failing, contact your administrator.")
}
