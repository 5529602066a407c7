//! Calls that change something: a card with every argument, and one call once it is approved.
//!
//! A call may take long, and the server may ask a question in the middle of it. So it runs in a task of its own
//! ([`super::calls`]), and each batch polls its state. If this process ends, the progress of the call is unknown: it is
//! repeated only if the server declares the tool idempotent; otherwise the `read_back` tool is called and a person
//! decides.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_capabilities::parameters::refused;
use countersign_core::{
    ids::UserId,
    reply::{Card, Fact, Reply, Text},
    send_permit::{self, SendPermit},
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Batch, Batches, ErrorKind, Form, Outcome, PrepareError, Probed, Progress,
    Proposal, Reader, Refusal, Scope, WaitEnd,
};
use countersign_mcp_client::{Answer, Answered, Error, ToolDefinition};
use serde_json::{Map, Value, json};

use super::{
    accepted::digest,
    calls::{NewCall, Running, State},
    questions, replies, schema,
    server::{Offered, Server, Unusable, words},
    tools::{NOT_ACCEPTED, nothing},
};

/// The time that a batch waits for news of a call.
const POLL: Duration = Duration::from_millis(1500);

/// The number of lines on a card from which on the parts of an argument have no lines of their own.
const MAX_FACTS: usize = 20;

/// The maximum length of a description on a card, in characters.
const MAX_DESCRIPTION: usize = 300;

/// The action that calls a tool which changes something, or may.
#[derive(Debug)]
pub(crate) struct CallTool {
    pub(crate) server: Arc<Server>,
    /// Its name on the server.
    pub(crate) tool: String,
    /// Its name in the registry.
    pub(crate) registered: &'static str,
}

/// Returns the arguments of a record.
fn given(record: &ActionRecord) -> Map<String, Value> {
    record.parameters.as_object().cloned().unwrap_or_default()
}

#[async_trait]
impl ActionKind for CallTool {
    fn info(&self) -> ActionInfo {
        match self.server.tool(&self.tool) {
            Ok(tool) => ActionInfo {
                irreversible: tool.definition.destroys,
                ..ActionInfo::new(self.registered, tool.description)
            },
            Err(_) => ActionInfo { irreversible: true, ..ActionInfo::new(self.registered, NOT_ACCEPTED) },
        }
    }

    fn name(&self) -> &'static str {
        self.registered
    }

    fn schema(&self) -> Value {
        self.server.tool(&self.tool).map_or_else(|_| nothing(), |tool| schema::for_model(&tool.definition))
    }

    fn is_editable(&self, _: &Value) -> bool {
        self.server.tool(&self.tool).is_ok_and(|tool| has_fields(&tool.definition))
    }

    async fn form(&self, parameters: &Value) -> Option<Form> {
        let definition = &self.server.tool(&self.tool).ok()?.definition;
        let form = schema::form(definition, &schema::read(definition, parameters));
        (!form.fields.is_empty()).then_some(form)
    }

    async fn prepare(&self, parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let server = self.server.name;
        let tool = self.server.tool(&self.tool).map_err(|why| self.not_prepared(&why))?;
        let definition = &tool.definition;
        let arguments = schema::read(definition, parameters);
        let missing = schema::missing(definition, server, &arguments);
        if !missing.is_empty() {
            return Err(Refusal::Missing(missing).into());
        }
        let mistakes = schema::mistakes(definition, &arguments);
        if !mistakes.is_empty() {
            return Err(refused(ErrorKind::Validation, replies::mistaken(&definition.name, mistakes)));
        }
        self.server.check_definition(&tool, false).await.map_err(|why| self.not_prepared(&why))?;
        Ok(Proposal {
            preconditions: json!({ "definition": digest(definition) }),
            scope: Scope::default().in_context(server),
            ..Proposal::new(&arguments, self.card(&tool, &arguments))
        })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let is_as_accepted = async {
            let tool = self.server.tool(&self.tool)?;
            self.server.check_definition(&tool, true).await?;
            Ok(digest(&tool.definition))
        };
        match is_as_accepted.await {
            Ok(digest) => Ok(json!({ "definition": digest })),
            Err(why) => {
                tracing::info!(
                    action.id = %record.id,
                    "The tool differs from its accepted definition, or the server cannot be reached"
                );
                Err(replies::not_called(self.server.name, &self.tool, &why))
            }
        }
    }

    fn batches(&self) -> Option<&dyn Batches> {
        Some(self)
    }

    async fn probe(&self, record: &ActionRecord) -> Probed {
        let found = self.server.read_back(&self.tool, &given(record)).await;
        let evidence = found.unwrap_or_else(|| Text::from("I can't check whether it happened."));
        Probed::CannotTell { evidence }
    }

    fn report(&self, record: &ActionRecord, reply: Reply) -> Reply {
        match &record.outcome {
            Some(Outcome::Done { result, .. }) => replies::with_result(&self.server, &self.tool, result, reply),
            _ => reply,
        }
    }
}

/// Returns true if a tool takes arguments that fit into a form.
fn has_fields(definition: &ToolDefinition) -> bool {
    !schema::form(definition, &Map::new()).fields.is_empty()
}

/// Adds a line for an argument to a card, or a line for each part of it.
fn add_facts(facts: &mut Vec<Fact>, label: String, value: &Value) {
    match value {
        Value::Object(parts) if !parts.is_empty() && facts.len() < MAX_FACTS => {
            parts.iter().for_each(|(name, value)| add_facts(facts, format!("{label}.{}", words(name, 60)), value));
        }
        value => {
            let text = schema::text_of(value);
            // What has several lines has to be read as it is.
            let after = if text.contains('\n') { Text::new().quote(text) } else { Text::new().code(text) };
            facts.push(Fact::new(label, after));
        }
    }
}

impl CallTool {
    /// Returns the error for a tool that cannot be called now.
    fn not_prepared(&self, why: &Unusable) -> PrepareError {
        let (error, reply) = replies::unusable(self.server.name, &self.tool, why);
        match why {
            Unusable::Unreachable(_) => PrepareError::Unavailable { error, reply },
            Unusable::Changed | Unusable::Gone | Unusable::NotAccepted | Unusable::NeedsCard => refused(error, reply),
        }
    }

    fn card(&self, tool: &Offered, arguments: &Map<String, Value>) -> Card {
        let (server, definition) = (self.server.name, &tool.definition);
        let known = schema::arguments(definition);
        let order = |name: &String| known.iter().position(|argument| argument.name == *name).unwrap_or(usize::MAX);
        let mut named: Vec<_> = arguments.iter().collect();
        named.sort_by_key(|(name, _)| order(name));
        let mut facts = Vec::new();
        named.into_iter().for_each(|(name, value)| add_facts(&mut facts, words(name, 60), value));
        if facts.is_empty() {
            facts.push(Fact::new("Arguments", "none"));
        }
        let mut warnings = Vec::new();
        if definition.destroys {
            warnings.push(Text::new().bold(server).plain(" doesn't rule out that this is destructive."));
        }
        if definition.reads {
            let why = match tool.reads {
                true => {
                    " says that this only reads. It was accepted while I was running, so it needs approval until I'm restarted."
                }
                false => " says that this only reads, but the settings require approval.",
            };
            warnings.push(Text::new().bold(server).plain(why));
        }
        let mut notes = Vec::new();
        let says = words(&definition.description, MAX_DESCRIPTION);
        if !says.is_empty() {
            let says = says.trim_end_matches('.');
            notes.push(Text::new().bold(server).plain(" describes it as ").code(says).plain("."));
        }
        let left = known.iter().filter(|one| !arguments.contains_key(&one.name)).map(|one| match &one.shape.default {
            Some(default) if !default.is_null() && one.shape.is_scalar() => {
                format!("{} ({} by default)", words(&one.name, 60), words(&schema::text_of(default), 40))
            }
            _ => words(&one.name, 60),
        });
        let left: Vec<_> = left.collect();
        if !left.is_empty() {
            notes.push(Text::from(format!("Not given: {}.", left.join(", "))));
        }
        let name = &definition.name;
        Card {
            facts,
            warnings,
            notes,
            irreversible: definition.destroys,
            editable: has_fields(definition),
            ..Card::new(format!("Call {name} on {server}?"), "Call tool", format!("Called {name} on {server}."))
        }
    }

    /// Returns true if a call may be repeated after a lost answer.
    fn repeats(&self) -> bool {
        self.server.tool(&self.tool).is_ok_and(|tool| tool.repeats)
    }

    /// Returns true if the time limit of the whole call has not passed yet.
    fn has_time_left(&self, record: &ActionRecord) -> bool {
        record.intent_at.is_none_or(|began| self.server.clock.now() < began + self.server.settings.longest)
    }

    /// Begins the call, with the permit of this batch. A second call needs the permit of a later batch.
    fn begin(&self, record: &ActionRecord) -> Arc<Running> {
        let permit =
            send_permit::current().unwrap_or_else(|| SendPermit::new(self.server.clock.clone(), Duration::ZERO));
        let call = NewCall {
            client: self.server.client.clone(),
            tool: self.tool.clone(),
            arguments: given(record),
            permit,
            longest: self.server.settings.longest,
        };
        self.server.calls.begin(&record.id, call)
    }

    /// Returns the batch for the state of a call: ended, asking a question, or still running.
    async fn poll(&self, record: &ActionRecord, running: &Running, repeated: bool) -> Batch {
        match running.state(POLL).await {
            State::Ended(answer) => self.ended(record, answer, repeated).await,
            State::Asks(nth, question) => questions::ask(&self.server, record, nth, &question),
            State::Sent(progress) => {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut off at zero")]
                let whole = |number: f64| number.max(0.0) as u64;
                let (done, total) = progress
                    .as_ref()
                    .map_or((0, 0), |progress| (whole(progress.done), progress.total.map_or(0, whole)));
                let said = progress.and_then(|progress| progress.message).map(|said| words(&said, 100));
                let note = said.map_or_else(Text::new, |said| Text::new().code(said));
                Batch::Made(Progress { data: json!({ "repeated": repeated }), done, total, note })
            }
        }
    }

    async fn ended(&self, record: &ActionRecord, answer: Result<Answer, Error>, repeated: bool) -> Batch {
        let (server, tool) = (self.server.name, self.tool.as_str());
        Batch::Ended(match answer {
            Ok(answer) => {
                let (is_failure, result) = (answer.failed, self.server.result(answer));
                match is_failure {
                    true => Outcome::Failed { error: ErrorKind::Api, summary: replies::failed(server, tool, &result) },
                    false => Outcome::Done { summary: replies::called(server, tool, &result), result },
                }
            }
            Err(error) if error.had_no_effect() => {
                let said = replies::unreachable(server, &error).words();
                let said = said.lines().next().unwrap_or_default();
                let summary = Text::from("Nothing was done. ").plain(said);
                Outcome::Failed { error: replies::kind(&error), summary }
            }
            Err(_) if self.repeats() && !repeated => {
                self.server.calls.end(&record.id);
                let data = json!({ "again": true });
                return Batch::Made(Progress {
                    data,
                    done: 0,
                    total: 0,
                    note: Text::from("No answer. Calling again."),
                });
            }
            Err(error) => {
                let text = Text::from("The call was sent to ").bold(server).plain(format!(", but {error}."));
                self.unknown(record, text).await
            }
        })
    }

    /// Returns the outcome of a call whose effect is unknown, with the result of reading back if there is one.
    async fn unknown(&self, record: &ActionRecord, text: Text) -> Outcome {
        let found = self.server.read_back(&self.tool, &given(record)).await;
        let text = match found {
            Some(found) => text.plain(" ").join(found),
            None => text,
        };
        Outcome::Unknown { summary: text.plain(" It may or may not have happened. Check before asking again.") }
    }
}

#[async_trait]
impl Batches for CallTool {
    async fn next(&self, record: &ActionRecord, interrupted: bool) -> Batch {
        let end = record.waits.as_ref().and_then(|wait| wait.end.clone());
        let data = record.progress.as_ref().map(|progress| progress.data.clone()).unwrap_or_default();
        let again = data["again"] == true;
        let repeated = again || data["repeated"] == true;
        let running = self.server.calls.get(&record.id);
        let is_over = matches!(&end, Some(WaitEnd::Arrived(body)) if questions::is_over(body));
        match running {
            Some(running) => {
                if let Some(question) = data["question"].as_u64().filter(|_| !is_over) {
                    match end {
                        Some(WaitEnd::Arrived(body)) => running.answer(questions::answered(&body, &data["schema"])),
                        // It was only looked after.
                        Some(WaitEnd::Overdue) if self.has_time_left(record) => {
                            return self.poll(record, &running, repeated).await;
                        }
                        Some(WaitEnd::Overdue) | None => running.answer(Answered::Cancelled),
                    }
                    running.wait_past(question).await;
                }
                self.poll(record, &running, repeated).await
            }
            None if !interrupted && (record.progress.is_none() || again) => {
                let running = self.begin(record);
                self.poll(record, &running, repeated).await
            }
            None if !is_over && let Some(waits) = questions::wait_for_holder(&self.server, record) => waits,
            None if self.repeats() && !repeated && interrupted => {
                let running = self.begin(record);
                self.poll(record, &running, true).await
            }
            None => {
                let server = self.server.name;
                let text = match end {
                    Some(WaitEnd::Arrived(_)) if is_over => Text::from("I was restarted while ")
                        .bold(server)
                        .plain(" was waiting for an answer to its question, so the call ended without one."),
                    Some(WaitEnd::Arrived(_)) if interrupted => {
                        Text::from("I restarted while passing this answer on to ")
                            .bold(server)
                            .plain(", so I don't know whether it arrived.")
                    }
                    Some(WaitEnd::Arrived(_)) => Text::from("I was restarted while ").bold(server).plain(
                        " was waiting for this answer, so it couldn't be passed on, and the call ended without it.",
                    ),
                    _ => Text::from("I restarted during the call to ").bold(server).plain(", so its answer is lost."),
                };
                Batch::Ended(self.unknown(record, text).await)
            }
        }
    }

    fn in_flight(&self) -> Duration {
        self.server.settings.timeout
    }

    fn longest(&self) -> Duration {
        self.server.settings.longest
    }

    fn answer_form(&self, record: &ActionRecord) -> Option<Form> {
        questions::form_of(record)
    }

    fn wrong_answer(&self, record: &ActionRecord, answer: &Value) -> BTreeMap<String, String> {
        questions::wrong(record, answer)
    }

    fn stopped(&self, record: &ActionRecord, by: Option<&UserId>) -> Outcome {
        let text = match by {
            Some(by) => Text::from("Stopped by ").person(by.clone()).plain(". "),
            None => Text::from("Stopped at the time limit in the settings. "),
        };
        let is_held = self.server.calls.get(&record.id).is_some();
        self.server.calls.end(&record.id);
        let text = match is_held {
            true => text.bold(self.server.name).plain(" was told to stop. I don't know what the call did before that"),
            false => text
                .plain("The call's connection is gone, so ")
                .bold(self.server.name)
                .plain(" couldn't be told to stop. I don't know what the call did"),
        };
        Outcome::Unknown { summary: text.plain(": check before asking again.") }
    }
}
