//! The experiment that a question or a change is about, which “it” refers to, and the requests that
//! are offered next.

use countersign_core::reply::Choice;
use countersign_graph::action::{ActionRecord, ErrorKind, Outcome, Status};
use serde_json::Value;

/// The button that lists all experiments: label and request.
pub(super) const LIST: (&str, &str) = ("List experiments", "list experiments");

/// Returns the name of the experiment that a change is about. The name in the result takes
/// precedence, since the experiment may have been renamed.
pub(super) fn of_change(parameters: &Value, result: &Value) -> Option<String> {
    let places = [
        result.get("name"),
        parameters.get("experiment_name"),
        parameters.get("name"),
        parameters.get("experiment"),
        parameters.get("experiment_id"),
    ];
    places.into_iter().flatten().find_map(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Returns the name of the experiment that was read: the one in the answer, or else the requested one.
pub(super) fn of_answer(arguments: &Value, answer: &Value) -> Option<String> {
    let asked = ["experiment", "experiment_id"].into_iter().find_map(|key| arguments.get(key)?.as_str());
    let asked = asked.filter(|asked| !asked.is_empty())?;
    Some(answer["name"].as_str().unwrap_or(asked).to_owned())
}

/// Returns the requests to offer after a change has ended. Undoing and retrying it are offered on its
/// card.
pub(super) fn next_steps(record: &ActionRecord) -> Vec<Choice> {
    let result = match &record.outcome {
        Some(Outcome::Done { result, .. }) => result,
        _ => &Value::Null,
    };
    let Some(name) = of_change(&record.parameters, result) else { return Vec::new() };
    let details = Choice::new("Show details", format!("show “{name}”"));
    match record.status {
        Status::Done if record.name.starts_with("delete") => vec![Choice::new(LIST.0, LIST.1)],
        Status::Done if record.name.starts_with("create") => {
            vec![Choice::new("Start experiment", format!("start “{name}”")), details]
        }
        Status::Done | Status::Unknown => vec![details],
        Status::Failed => match &record.outcome {
            Some(Outcome::Failed { error: ErrorKind::NotFound, .. }) => vec![Choice::new(LIST.0, LIST.1)],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
