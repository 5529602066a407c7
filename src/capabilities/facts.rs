//! Facts without any model: what slash commands and the Home tab ask of the platforms.
//!
//! Nobody waits longer than [`PATIENCE`]. A call goes on after that and leaves its answer for whoever asks next; until
//! then the last answer stands in, and its age is said. Nothing is remembered across a restart.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use countersign_core::{
    clock::{Clock, Timestamp, ago},
    reply::{Reply, Text},
};
use countersign_graph::action::{ErrorKind, Reader};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::{Registry, Service, ToolError};

/// How long somebody waits for a platform.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// How long somebody waits where an older answer can be shown instead.
pub const PATIENCE_WITH_AN_OLDER_ANSWER: Duration = Duration::from_millis(800);

/// How many answers are remembered; the oldest makes room.
const REMEMBERED: usize = 64;

/// Answers from the tools that read, and nothing else.
#[derive(Clone, Debug)]
pub struct Facts {
    registry: Registry,
    clock: Arc<dyn Clock>,
    remembered: Arc<Remembered>,
}

/// What was read of a platform, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The answer of the tool.
    pub answer: Value,
    /// When it was read.
    pub at: Timestamp,
    /// Whether it was read for this question; if not, the platform does not answer now.
    pub fresh: bool,
}

/// How an outside system is.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// Which.
    pub service: Service,
    /// What it said of itself, `name` and `version`; `None`: nothing, ever.
    pub fact: Option<Fact>,
}

/// The last answers, by tool and arguments.
#[derive(Debug, Default)]
struct Remembered(Mutex<HashMap<String, (Value, Timestamp)>>);

impl Remembered {
    fn get(&self, key: &str) -> Option<(Value, Timestamp)> {
        self.0.lock().ok()?.get(key).cloned()
    }

    fn put(&self, key: String, answer: Value, at: Timestamp) {
        let Ok(mut answers) = self.0.lock() else { return };
        if answers.len() >= REMEMBERED
            && !answers.contains_key(&key)
            && let Some(oldest) = answers.iter().min_by_key(|(_, (_, at))| *at).map(|(key, _)| key.clone())
        {
            answers.remove(&oldest);
        }
        answers.insert(key, (answer, at));
    }
}

impl Facts {
    /// From the tools of these capabilities.
    pub fn new(registry: Registry, clock: Arc<dyn Clock>) -> Self {
        Self { registry, clock, remembered: Arc::default() }
    }

    /// The capabilities that are asked.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// How each outside system is.
    pub async fn health(&self) -> Vec<Health> {
        let services = self.registry.capabilities.iter().filter_map(|capability| capability.service());
        let asked = services.map(|service| async move {
            let fact = self.read(service.name, service.health, json!({}), deadline()).await.ok();
            Health { service, fact }
        });
        futures_util::future::join_all(asked).await
    }

    /// What sections of Home the capabilities have.
    pub async fn home(&self) -> Vec<Reply> {
        let sections = self.registry.capabilities.iter().map(|capability| capability.home(self));
        futures_util::future::join_all(sections).await.into_iter().flatten().collect()
    }

    /// What a tool says, for somebody who may read what they ask for; with the patience of a command.
    ///
    /// # Errors
    ///
    /// What to say instead; nothing if it did not answer in time.
    pub async fn read_for(&self, tool: &str, arguments: &Value, reader: &Reader) -> Result<Value, Option<Reply>> {
        let Some(tool) = self.registry.tools.get(tool) else { return Err(None) };
        match timeout_at(deadline(), tool.call_for(arguments, reader)).await {
            Ok(answer) => answer.map_err(|error| Some(error.reply)),
            Err(_) => Err(None),
        }
    }

    /// Says how old what was read of `service` is.
    pub fn aged(&self, reply: Reply, fact: &Fact, service: &str) -> Reply {
        let age = self.age(fact);
        match fact.fresh {
            true => reply.hint(format!("Read from {service} {age}.")),
            false => {
                let said = Text::from(format!("{service} does not answer at the moment. This is from "));
                reply.hint(said.bold(age).plain("."))
            }
        }
    }

    /// How old it is, in words.
    pub fn age(&self, fact: &Fact) -> String {
        ago(self.clock.now(), fact.at)
    }

    /// Asks a tool that reads of `service`, but for no longer than until then; or else says what it answered last.
    ///
    /// # Errors
    ///
    /// What to say if nothing is known.
    pub async fn read(
        &self,
        service: &str,
        tool: &'static str,
        arguments: Value,
        until: Instant,
    ) -> Result<Fact, Reply> {
        let key = key(tool, &arguments);
        let older = self.remembered.get(&key);
        let until = match older {
            Some(_) => until.min(Instant::now() + PATIENCE_WITH_AN_OLDER_ANSWER),
            None => until,
        };
        let Some(kind) = self.registry.tools.get(tool).cloned() else { return Err(too_slow(service)) };
        let facts = self.clone();
        let asked = tokio::spawn(async move {
            let answer = kind.call(&arguments).await?;
            let at = facts.clock.now();
            facts.remembered.put(key, answer.clone(), at);
            Ok::<_, ToolError>(Fact { answer, at, fresh: true })
        });
        let failed = match timeout_at(until, asked).await {
            Ok(Ok(Ok(fact))) => return Ok(fact),
            Ok(Ok(Err(error))) if error.kind != ErrorKind::Network => return Err(error.reply),
            Ok(Ok(Err(error))) => error.reply,
            Ok(Err(_)) | Err(_) => too_slow(service),
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

/// Until when somebody who asks now waits.
pub fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// The platform did not answer in time, and never answered this before.
fn too_slow(service: &str) -> Reply {
    Reply::text(format!("{service} has not answered within {} s, so I could not look that up.", PATIENCE.as_secs()))
        .hint("Ask again in a minute, or tell whoever runs it.")
}
