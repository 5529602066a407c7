//! The events of a run with a plan, in the shapes of `tests/fixtures/agent-state/event-vectors.json`.
//!
//! A [`StreamEvent`] is stored with the step that caused it, which makes it permanent. [`lists`] returns the events of
//! a thread in the three shapes that programs read.

use countersign_core::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Returns a status update. `progress` is from 0 to 1 and is not changed; `more` are additional values, which replace
/// none of the others.
pub fn status(message: &str, progress: f64, complete: bool, more: Map<String, Value>, now: Timestamp) -> Value {
    with(more, json!({ "message": message, "progress": progress, "complete": complete, "timestamp": seconds(now) }))
}

/// Returns a progress event. Its `progress` is `current / total`, or 0 if the total is not positive.
pub fn progress(current: i64, total: i64, operation: &str, more: Map<String, Value>, now: Timestamp) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "counts of steps")]
    let progress = if total > 0 { current as f64 / total as f64 } else { 0.0 };
    let event = json!({
        "current": current, "total": total, "operation": operation, "progress": progress, "timestamp": seconds(now),
    });
    with(more, event)
}

/// The phase of a live run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The message is read and the plan is made.
    #[serde(rename = "Task Preparation")]
    TaskPreparation,
    /// The steps of the plan are carried out.
    #[default]
    Execution,
}

/// An event of a live run, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamEvent {
    /// The message for people.
    pub text: String,
    /// The node or capability that it comes from.
    pub source: String,
    /// The phase.
    pub phase: Phase,
    /// The number of the step within its phase, counted from 1.
    pub step: usize,
    /// The number of steps of the phase.
    pub total_steps: usize,
    /// The number of steps of the plan that are done.
    pub done: usize,
    /// The error, if the event is about one. It is stored as `reason`, so that it is deleted with
    /// other texts at the end of their retention.
    #[serde(rename = "reason", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True if [`Self::error`] is a person's decision, such as a stop, and no failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decided: bool,
    /// True at the end of the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub complete: bool,
}

/// The reason why a plan ends before its last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndsEarly<'a> {
    /// A person decided so, or set the condition that does not hold. Nothing failed.
    ByDecision(&'a str),
    /// A step failed, or a limit is reached.
    ByFailure(&'a str),
}

impl<'a> EndsEarly<'a> {
    /// Returns the reason in words.
    pub fn words(self) -> &'a str {
        match self {
            Self::ByDecision(words) | Self::ByFailure(words) => words,
        }
    }

    /// Returns true if nothing failed.
    pub fn is_decision(self) -> bool {
        matches!(self, Self::ByDecision(_))
    }
}

impl StreamEvent {
    /// Returns the event as JSON; values that are absent are left out.
    pub fn to_json(&self, at: Timestamp) -> Value {
        let mut event = json!({
            "event_type": "status", "message": self.text, "source": self.source, "component": self.source,
            "timestamp": seconds(at), "phase": self.phase, "step": self.step, "total_steps": self.total_steps,
        });
        if let Some(error) = &self.error {
            event["error"] = json!(error);
        }
        if self.decided {
            event["decided"] = json!(true);
        }
        if self.complete {
            event["complete"] = json!(true);
        }
        event
    }
}

/// Returns events with their times in three shapes: `stream` contains all, `status_updates` and `progress_events`
/// contain those of the execution.
pub fn lists(events: &[(Timestamp, StreamEvent)]) -> Value {
    let source = |event: &StreamEvent| Map::from_iter([("source".to_owned(), json!(event.source))]);
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let carried_out: Vec<_> = events.iter().filter(|(_, event)| event.phase == Phase::Execution).collect();
    let progress: Vec<Value> = carried_out
        .iter()
        .map(|(at, event)| progress(count(event.done), count(event.total_steps), &event.text, source(event), *at))
        .collect();
    let updates: Vec<Value> = carried_out
        .iter()
        .zip(&progress)
        .map(|((at, event), progress)| {
            let share = progress["progress"].as_f64().unwrap_or_default();
            status(&event.text, share, event.complete, source(event), *at)
        })
        .collect();
    let stream: Vec<Value> = events.iter().map(|(at, event)| event.to_json(*at)).collect();
    json!({ "stream": stream, "status_updates": updates, "progress_events": progress })
}

/// Returns the time in Unix seconds.
fn seconds(at: Timestamp) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit into 53 bits")]
    let milliseconds = at.0 as f64;
    milliseconds / 1000.0
}

/// Adds values to an event, without replacing any.
fn with(more: Map<String, Value>, mut event: Value) -> Value {
    if let Some(members) = event.as_object_mut() {
        for (name, value) in more {
            members.entry(name).or_insert(value);
        }
    }
    event
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Vector {
        kind: String,
        args: Value,
        result: Value,
    }

    #[test]
    fn events_have_the_shapes_of_the_vectors() {
        let vectors: Vec<Vector> =
            serde_json::from_str(include_str!("../../tests/fixtures/agent-state/event-vectors.json")).unwrap();
        assert_eq!(vectors.len(), 11);
        for Vector { kind, args, result } in vectors {
            let more = args["metadata"].as_object().unwrap().clone();
            let text = |name: &str| args[name].as_str().unwrap_or_default().to_owned();
            let count = |name: &str| args[name].as_i64().unwrap_or_default();
            let (list, mut event) = match kind.as_str() {
                "status" => {
                    let (share, complete) = (args["progress"].as_f64().unwrap(), args["complete"] == true);
                    ("status_updates", status(&text("message"), share, complete, more, Timestamp(0)))
                }
                _ => {
                    let made = progress(count("current"), count("total"), &text("operation"), more, Timestamp(0));
                    ("progress_events", made)
                }
            };
            assert_eq!(event["timestamp"], 0.0);
            event["timestamp"] = json!("<unix seconds, float>");
            assert_eq!(result, json!({ list: [event] }));
        }
    }

    fn reading() -> StreamEvent {
        StreamEvent {
            text: "Reading".into(),
            source: "weather".into(),
            step: 1,
            total_steps: 3,
            ..StreamEvent::default()
        }
    }

    #[test]
    fn absent_values_are_left_out_of_the_stream() {
        assert_eq!(
            reading().to_json(Timestamp(1_500)),
            json!({
                "event_type": "status", "message": "Reading", "source": "weather", "component": "weather",
                "timestamp": 1.5, "phase": "Execution", "step": 1, "total_steps": 3,
            })
        );
    }

    #[test]
    fn a_decision_is_told_from_a_failure() {
        let ended = |why: EndsEarly<'_>| {
            let error = Some(why.words().to_owned());
            StreamEvent { error, decided: why.is_decision(), complete: true, ..reading() }.to_json(Timestamp(0))
        };
        let stopped = ended(EndsEarly::ByDecision("a person said stop"));
        assert_eq!((&stopped["error"], &stopped["decided"]), (&json!("a person said stop"), &json!(true)));
        assert_eq!(ended(EndsEarly::ByFailure("not found")).get("decided"), None);
    }

    #[test]
    fn events_are_listed_in_three_shapes() {
        let made = StreamEvent { phase: Phase::TaskPreparation, step: 3, ..reading() };
        let ended = StreamEvent { step: 3, done: 3, complete: true, ..reading() };
        let all = lists(&[(Timestamp(0), made), (Timestamp(1_000), reading()), (Timestamp(2_000), ended)]);
        assert_eq!(all["stream"].as_array().map(Vec::len), Some(3));
        assert_eq!(all["stream"][0]["phase"], "Task Preparation");
        let ended =
            json!({ "message": "Reading", "progress": 1.0, "complete": true, "timestamp": 2.0, "source": "weather" });
        assert_eq!(all["status_updates"][1], ended);
        let begun = json!({
            "current": 0, "total": 3, "operation": "Reading", "progress": 0.0, "timestamp": 1.0, "source": "weather",
        });
        assert_eq!(all["progress_events"][0], begun);
    }
}
