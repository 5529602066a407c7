//! Questions that a server asks during a call: shown on the card, with a form derived from the server's
//! schema.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_capabilities::EventSource;
use countersign_core::{
    clock::Timestamp,
    ids::ActionId,
    reply::{Asked, Text},
};
use countersign_graph::action::{ActionRecord, Awaited, Batch, Form, Progress};
use countersign_mcp_client::{Answered, Question, ToolDefinition};
use serde_json::{Map, Value, json};

use super::{
    schema,
    server::{Server, words},
};

/// The maximum length of a question on a card, in characters.
const MAX_QUESTION: usize = 500;

/// The time after which a question is looked after, to find that the process which holds its call has ended.
const LOOK_AFTER: Duration = Duration::from_secs(60);

/// Returns a batch that asks a question in the thread and waits for the answer. `server` holds the call in which it is
/// asked.
pub(crate) fn ask(server: &Server, record: &ActionRecord, nth: u64, question: &Question) -> Batch {
    let text = Text::new().bold(server.name).plain(" asks, in the middle of the call: ");
    let text = text.code(words(&question.message, MAX_QUESTION));
    let has_fields = !form(&question.schema).fields.is_empty();
    let asked = Asked { text, answer: if has_fields { "Answer…" } else { "Yes" }.to_owned() };
    let data = json!({ "question": nth, "schema": question.schema, "holder": server.holder });
    let progress = Progress { data, done: nth, total: 0, note: Text::new() };
    let awaited =
        Awaited { source: server.capability.to_owned(), key: format!("{}/{nth}", record.id), within: LOOK_AFTER };
    Batch::Asks(progress, awaited, asked)
}

/// The open questions of a server: the end of a question other than by an answer is an event.
pub(crate) struct OpenQuestions(pub(crate) Arc<Server>);

/// Returns the event of a question that is no longer open, although nobody answered it.
fn over() -> Value {
    json!({ "action": "over" })
}

/// Returns true for the event of a question that is no longer open, although nobody answered it.
pub(crate) fn is_over(body: &Value) -> bool {
    *body == over()
}

#[async_trait]
impl EventSource for OpenQuestions {
    fn source(&self) -> &'static str {
        self.0.capability
    }

    /// Waits until the question is no longer open in the call that this process holds. If the call is not here, and no
    /// other process uses the store, it has ended with the process that held it.
    async fn follow(&self, key: &str, alone: bool) -> Option<Value> {
        let (action, nth) = key.rsplit_once('/')?;
        let (action, nth) = (ActionId::from(action), nth.parse().ok()?);
        match self.0.calls.get(&action) {
            Some(running) => running.past(nth).await,
            None if alone => {}
            None => return None,
        }
        Some(over())
    }
}

/// The time for which the process that holds a call is waited for, before its end is taken for granted: long enough for a
/// process that is busy or stands still for a moment.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Returns a batch that waits for the process that holds the call of this question, if that is not this one; `None` if it
/// was waited for in vain, which means that it has ended.
pub(crate) fn wait_for_holder(server: &Server, record: &ActionRecord) -> Option<Batch> {
    let progress = record.progress.as_ref()?;
    let holder = progress.data["holder"].as_str().filter(|holder| *holder != server.holder)?;
    let now = server.clock.now();
    let since = progress.data["waiting_since"].as_i64().map_or(now, Timestamp);
    if since + MAX_WAIT <= now {
        return None;
    }
    tracing::debug!(action.id = %record.id, holder, "The call of a question is held by another process");
    let mut data = progress.data.clone();
    data["waiting_since"] = json!(since.millis());
    Some(Batch::Elsewhere(Progress { data, ..progress.clone() }))
}

/// Returns the definition of a tool whose arguments are the answer to a question with this schema.
fn definition(question_schema: &Value) -> ToolDefinition {
    ToolDefinition {
        name: "answer".to_owned(),
        description: String::new(),
        schema: question_schema.clone(),
        reads: true,
        destroys: false,
        idempotent: true,
        needs_task: false,
    }
}

fn form(question_schema: &Value) -> Form {
    schema::form(&definition(question_schema), &Map::new())
}

/// Returns the form for the question that this action asked, or `None` if the answer has no fields.
pub(crate) fn form_of(record: &ActionRecord) -> Option<Form> {
    let form = form(&record.progress.as_ref()?.data["schema"]);
    (!form.fields.is_empty()).then_some(form)
}

/// Validates an answer against the server's schema. Returns the first mistake in each field, by JSON pointer.
pub(crate) fn wrong(record: &ActionRecord, answer: &Value) -> BTreeMap<String, String> {
    let Some(progress) = &record.progress else { return BTreeMap::new() };
    let definition = definition(&progress.data["schema"]);
    let fields = schema::form(&definition, &Map::new()).fields;
    let mut wrong = BTreeMap::new();
    for (place, text) in schema::mistakes_by_place(&definition, &schema::read(&definition, answer)) {
        let holds = |field: &str| place == field || place.starts_with(&format!("{field}/"));
        if let Some(field) = fields.iter().find(|field| holds(&field.place)) {
            wrong.entry(field.place.clone()).or_insert_with(|| text.words());
        }
    }
    wrong
}

/// Parses a person's answer.
pub(crate) fn answered(body: &Value, question_schema: &Value) -> Answered {
    match body["action"].as_str() {
        Some("accept") => {
            Answered::Accepted(Value::Object(schema::read(&definition(question_schema), &body["content"])))
        }
        Some("decline") => Answered::Declined,
        _ => Answered::Cancelled,
    }
}
