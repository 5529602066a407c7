//! The events of a run with a plan, in the shapes of `tests/fixtures/agent-state/event-vectors.json`.

use countersign_core::clock::Timestamp;
use serde_json::{Map, Value, json};

/// Returns a status update. `progress` is from 0 to 1 and kept as it is; `more` are named values, which win over none
/// of the others' names.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The message is read and the plan is made.
    TaskPreparation,
    /// The steps of the plan are carried out.
    Execution,
}

/// An event of a live run.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamEvent {
    /// The message for people.
    pub message: String,
    /// The node or capability that it comes from.
    pub source: String,
    /// The time.
    pub at: Timestamp,
    /// The number of the step, counted from 1, and the number of steps.
    pub step: Option<(usize, usize)>,
    /// The phase.
    pub phase: Phase,
    /// The error, if the event is about one.
    pub error: Option<String>,
    /// True at the end of the run.
    pub complete: bool,
}

impl StreamEvent {
    /// Returns the event as JSON; values that are absent are left out.
    pub fn to_json(&self) -> Value {
        let mut event = json!({
            "event_type": "status", "message": self.message, "source": self.source, "component": self.source,
            "timestamp": seconds(self.at),
            "phase": match self.phase { Phase::TaskPreparation => "Task Preparation", Phase::Execution => "Execution" },
        });
        if let Some((step, total)) = self.step {
            event["step"] = json!(step);
            event["total_steps"] = json!(total);
        }
        if let Some(error) = &self.error {
            event["error"] = json!(error);
        }
        if self.complete {
            event["complete"] = json!(true);
        }
        event
    }
}

/// Returns Unix seconds.
fn seconds(at: Timestamp) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit into 53 bits")]
    let milliseconds = at.0 as f64;
    milliseconds / 1000.0
}

/// Adds named values to an event.
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

    #[test]
    fn absent_values_are_left_out_of_the_stream() {
        let event = StreamEvent {
            message: "Reading".to_owned(),
            source: "weather".to_owned(),
            at: Timestamp(1_500),
            step: Some((1, 3)),
            phase: Phase::Execution,
            error: None,
            complete: false,
        };
        assert_eq!(
            event.to_json(),
            json!({
                "event_type": "status", "message": "Reading", "source": "weather", "component": "weather",
                "timestamp": 1.5, "phase": "Execution", "step": 1, "total_steps": 3,
            })
        );
    }
}
