//! The node that runs the tools. All of them only read; one that fails does not stop the others.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::clock::Timestamp;
use countersign_graph::node::{Context, Node, NodeError, Step};
use jiff::civil::Date;
use serde_json::{Value, json};

use super::{
    super::{
        deps::Deps,
        rules::{Tool, cut},
        state::MailState,
    },
    TOO_LONG,
    generate::Generate,
    millis, note_step,
};

/// The maximum duration of a tool.
const MAX_DURATION: Duration = Duration::from_secs(10);

/// The number of days for which free times are read, if no other number is known.
const DAYS: u32 = 7;

/// The maximum number of days for which free times are read.
const MAX_DAYS: u32 = 14;

/// The maximum number of free times that are kept.
const MAX_SLOTS: usize = 12;

/// The maximum length of a failure, in characters.
const MAX_ERROR_CHARS: usize = 500;

/// The node that runs the tools.
pub(in super::super) struct ExecuteTools(Arc<Deps>);

impl ExecuteTools {
    /// The name of the node.
    pub(in super::super) const NAME: &'static str = "execute_tools";

    /// Creates the node.
    pub(in super::super) fn new(deps: Arc<Deps>) -> Self {
        Self(deps)
    }

    /// Runs a tool. Returns its result; a contact that it finds is noted in the state.
    async fn result(&self, state: &mut MailState, name: &str, now: Timestamp) -> Result<Value, String> {
        let tool = Tool::parse(name).ok_or("there is no such tool")?;
        if !state.class().tools(true).contains(&tool) {
            return Err(format!("not allowed for the class {}", state.class()));
        }
        let left = self.0.time_left(state.turn.began).ok_or(TOO_LONG)?.min(MAX_DURATION);
        match tool {
            Tool::GetContact => {
                let sender = state.email.as_ref().and_then(|mail| mail.sender()).ok_or("the email has no sender")?;
                let contact = tokio::time::timeout(left, self.0.lookup.contact(sender)).await;
                let contact = contact.map_err(|_| "the contacts took too long")?.map_err(|error| error.to_string())?;
                let line = contact.as_ref().map(|contact| contact.line.clone());
                if contact.is_some() {
                    state.know_contact(contact);
                }
                Ok(json!({ "contact": line }))
            }
            Tool::CheckCalendar => {
                let hints = state.tool_params.get(name).unwrap_or(&Value::Null);
                let (from, days) = self.period(hints, now);
                let slots = tokio::time::timeout(left, self.0.lookup.free_slots(from, days)).await;
                let mut slots = slots.map_err(|_| "the calendar took too long")?.map_err(|error| error.to_string())?;
                slots.truncate(MAX_SLOTS);
                Ok(json!({ "free_slots": slots }))
            }
            // There is no text yet; the draft is made when the answer is sent.
            Tool::CreateDraft => Ok(json!({ "deferred": true })),
            Tool::SendEmail | Tool::CreateEvent | Tool::UpdateContact => {
                Err("changes are made only after a decision".to_owned())
            }
        }
    }

    /// Returns the period that a model named, from now on at the earliest.
    fn period(&self, hints: &Value, now: Timestamp) -> (Timestamp, u32) {
        let day = hints["start"].as_str().and_then(|day| day.parse::<Date>().ok());
        let start = day.and_then(|day| day.to_zoned(self.0.time_zone.clone()).ok());
        let start = start.map(|start| Timestamp(start.timestamp().as_millisecond()));
        let days = hints["days"].as_u64().and_then(|days| u32::try_from(days).ok()).filter(|days| *days > 0);
        (start.filter(|start| *start > now).unwrap_or(now), days.unwrap_or(DAYS).min(MAX_DAYS))
    }
}

#[async_trait]
impl Node<MailState> for ExecuteTools {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn targets(&self) -> &'static [&'static str] {
        &[Generate::NAME]
    }

    async fn run(&self, mut state: MailState, context: &Context) -> Result<Step<MailState>, NodeError> {
        let mut tools = Vec::new();
        for name in state.selected_tools.clone() {
            let began = self.0.clock.now();
            let result = self.result(&mut state, &name, context.now).await;
            let mut entry = json!({
                "tool": name, "success": result.is_ok(), "latency_ms": millis(self.0.clock.now().since(began)),
            });
            let outcome = if result.is_ok() { "success" } else { "failure" };
            metrics::counter!("countersign_mail_tools_total", "tool" => name.clone(), "outcome" => outcome)
                .increment(1);
            let value = result.unwrap_or_else(|error| {
                let error = cut(&error, MAX_ERROR_CHARS);
                entry["error"] = json!(error);
                json!({ "error": error })
            });
            state.tool_results.insert(name, value);
            tools.push(entry);
        }
        let failures = tools.iter().filter_map(|tool| tool["error"].as_str()).collect::<Vec<_>>().join("; ");
        if !failures.is_empty() {
            state.note_error(Self::NAME, &failures);
        }
        note_step(&mut state, &self.0, context, "execute", json!({ "tools": tools }));
        Ok(Step::go(state, Generate::NAME))
    }
}
