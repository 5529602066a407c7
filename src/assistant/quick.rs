//! Quick answers without any model: what slash commands and the Home tab ask of the platform.
//!
//! Nobody waits longer than [`PATIENCE`]. A call goes on after that and leaves its answer for whoever asks next; until
//! then the last answer stands in, and its age is said. Nothing is remembered across a restart.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::replies;
use crate::{
    capabilities::{
        Registry, ToolError,
        experiments::{
            listing::{Form, Which},
            replies::{answers, contexts, details, lists},
            rules,
        },
        standing,
    },
    clock::{Clock, Timestamp, ago},
    graph::action::{ErrorKind, Reader},
    model::watched::Pulse,
    reply::{Part, Reply, Text},
};

/// How long somebody waits for the platform.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// How long somebody waits where an older answer can be shown instead.
pub const PATIENCE_WITH_AN_OLDER_ANSWER: Duration = Duration::from_millis(800);

/// How many answers are remembered; the oldest makes room.
const REMEMBERED: usize = 64;

/// Answers from the tools that read, and nothing else.
#[derive(Clone, Debug)]
pub struct QuickAnswers {
    registry: Registry,
    clock: Arc<dyn Clock>,
    remembered: Arc<Remembered>,
    model: Option<(String, Pulse)>,
}

/// How the language model is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelHealth {
    /// Its name at its provider.
    pub name: String,
    /// When it was asked last, and whether it answered.
    pub last: Option<(Timestamp, bool)>,
}

/// What was read of the platform, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The answer of the tool.
    pub answer: Value,
    /// When it was read.
    pub at: Timestamp,
    /// Whether it was read for this question; if not, the platform does not answer now.
    pub fresh: bool,
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

impl QuickAnswers {
    /// With these tools, and the name and pulse of the language model if there is one.
    pub fn new(registry: Registry, clock: Arc<dyn Clock>, model: Option<(String, Pulse)>) -> Self {
        Self { registry, clock, remembered: Arc::default(), model }
    }

    /// How the language model is; `None`: there is none.
    pub fn model(&self) -> Option<ModelHealth> {
        self.model.as_ref().map(|(name, pulse)| ModelHealth { name: name.clone(), last: pulse.last() })
    }

    /// Whether the experiment platform answers, and which version it is.
    pub async fn health(&self) -> Reply {
        match self.health_fact().await {
            Ok(fact) if fact.fresh => self.aged(answers::health_reply(&fact.answer), &fact),
            Ok(fact) => answers::health_before(&fact.answer, &ago(self.clock.now(), fact.at)),
            Err(reply) => reply,
        }
    }

    /// The same as data: `name` and `version`.
    ///
    /// # Errors
    ///
    /// What to say if nothing is known.
    pub async fn health_fact(&self) -> Result<Fact, Reply> {
        self.read("check_upgrade_health", json!({}), deadline()).await
    }

    /// The experiments: all, or those of a status or a context.
    pub async fn list(&self, filter: &str) -> Reply {
        let until = deadline();
        let which = match rules::status_meant(filter) {
            _ if filter.is_empty() => Which::default(),
            Some(status) => Which { status: Some(status.stored().to_owned()), ..Which::default() },
            None => match self.read("get_context_metadata", json!({}), until).await {
                Ok(contexts) if contexts.answer.get(filter).is_none() => {
                    if let Some(status) = rules::status_nearly_meant(filter) {
                        return replies::not_a_list(filter, status);
                    }
                    let reply = contexts::contexts_reply(&contexts.answer, Some(filter));
                    return self.aged(reply, &contexts);
                }
                Ok(_) => Which { context: Some(filter.to_owned()), ..Which::default() },
                Err(reply) => return reply,
            },
        };
        match self.read("get_all_experiments", json!(which), until).await {
            Ok(fact) => self.aged(lists::list_reply(&fact.answer, &which), &fact),
            Err(reply) => reply,
        }
    }

    /// One experiment, by its name.
    pub async fn show(&self, name: &str) -> Reply {
        match self.read("get_experiment_details", json!({ "experiment_id": name }), deadline()).await {
            Ok(fact) => self.aged(details::details_reply(&fact.answer, Form::Normal), &fact),
            Err(reply) => listed(reply),
        }
    }

    /// What may be done without asking each time, as far as somebody may be told.
    pub async fn standing(&self, reader: &Reader) -> Reply {
        let nothing = json!({});
        let Some(tool) = self.registry.tools.get(standing::list::NAME) else {
            return standing::replies::list_alone(&nothing);
        };
        match timeout_at(deadline(), tool.call_for(&nothing, reader)).await {
            Ok(Ok(answer)) => standing::replies::list_alone(&answer),
            Ok(Err(error)) => error.reply,
            Err(_) => standing::replies::not_now(),
        }
    }

    /// Says how old it is.
    fn aged(&self, reply: Reply, fact: &Fact) -> Reply {
        let age = ago(self.clock.now(), fact.at);
        match fact.fresh {
            true => reply.hint(format!("Read from UpGrade {age}.")),
            false => {
                reply.hint(Text::from("UpGrade does not answer at the moment. This is from ").bold(age).plain("."))
            }
        }
    }

    /// Asks the platform, but for no longer than until then; or else says what it answered last.
    async fn read(&self, tool: &'static str, arguments: Value, until: Instant) -> Result<Fact, Reply> {
        let key = key(tool, &arguments);
        let older = self.remembered.get(&key);
        let until = match older {
            Some(_) => until.min(Instant::now() + PATIENCE_WITH_AN_OLDER_ANSWER),
            None => until,
        };
        let quick = self.clone();
        let asked = tokio::spawn(async move {
            let tool = quick.registry.tools.get(tool).expect("the experiments capability is always registered");
            let answer = tool.call(&arguments).await?;
            let at = quick.clock.now();
            quick.remembered.put(key, answer.clone(), at);
            Ok::<_, ToolError>(Fact { answer, at, fresh: true })
        });
        let failed = match timeout_at(until, asked).await {
            Ok(Ok(Ok(fact))) => return Ok(fact),
            Ok(Ok(Err(error))) if error.kind != ErrorKind::Network => return Err(error.reply),
            Ok(Ok(Err(error))) => error.reply,
            Ok(Err(_)) | Err(_) => too_slow(),
        };
        match older {
            Some((answer, at)) => Ok(Fact { answer, at, fresh: false }),
            None => Err(failed),
        }
    }
}

/// With what can be chosen as words: a private answer has no buttons.
fn listed(mut reply: Reply) -> Reply {
    let ids = reply.choices.len() > 1 && reply.choices.iter().all(|choice| choice.label.contains(", id "));
    let labels = std::mem::take(&mut reply.choices).into_iter().map(|choice| choice.label.into()).collect();
    match ids {
        true => reply.and(Part::List(labels)).hint("Ask for one by its id, such as /upgrade show 1a2b3c4d."),
        false => reply,
    }
}

fn key(tool: &str, arguments: &Value) -> String {
    format!("{tool} {arguments}")
}

fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// The platform did not answer in time, and never answered this before.
fn too_slow() -> Reply {
    Reply::text(format!("UpGrade has not answered within {} s, so I could not look that up.", PATIENCE.as_secs()))
        .hint("Ask again in a minute, or tell whoever runs it.")
}
