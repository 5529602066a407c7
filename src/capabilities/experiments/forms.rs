//! The forms in which people fill in or change the parameters of an action.
//!
//! A parameter has a field if its value can be shown as text. All other parameters keep their values
//! ([`Form::fill`]).

use countersign_core::clock::Timestamp;
use countersign_graph::action::{Field, Form, Input, Pick};
use serde_json::Value;

use super::actions::choices;
use crate::upgrade::{client::UpgradeClient, context::Contexts, status::Status};

/// Returns the form for a new experiment.
pub(super) async fn creation(client: &UpgradeClient, given: &Value) -> Form {
    let contexts = client.context_metadata().await.unwrap_or_default();
    let mut fields = vec![
        line(given, "/name", "Name").required(),
        one(given, "/context", "Context", contexts.keys().map(Pick::of).collect()).required(),
    ];
    fields.extend(points(given, &contexts).map(Field::required));
    fields.extend(conditions(given));
    fields.push(prose(given, "/description", "Description"));
    fields.extend(design(given));
    fields.push(moment(given, "/start_on", "Start automatically at").hint("Leave empty to start it manually."));
    fields.push(moment(given, "/end_on", "Ends at"));
    Form { fields }
}

/// Returns the form for a change to a design. An empty field leaves the experiment unchanged.
pub(super) async fn update(client: &UpgradeClient, given: &Value) -> Form {
    let contexts = client.context_metadata().await.unwrap_or_default();
    let mut fields = vec![line(given, "/new_name", "New name"), prose(given, "/description", "Description")];
    fields.extend(match given.pointer("/conditions") {
        Some(_) => conditions(given),
        None => vec![
            Field::new("/conditions", CONDITIONS, Input::Lines(Vec::new()))
                .hint("To add or remove conditions, list all of them, such as control: 50%. Leave empty to keep them."),
            weights(given),
        ],
    });
    fields.extend(points(given, &contexts));
    fields.extend(design(given));
    fields.push(moment(given, "/end_on", "Ends at"));
    // The subject of the request comes first.
    fields.sort_by_key(|field| given.pointer(&field.place).is_none());
    Form { fields }
}

/// Returns the form for a change of status.
pub(super) fn status(given: &Value) -> Form {
    let pick = |status: Status| Pick { value: status.stored().to_owned(), label: status.display().to_owned() };
    Form {
        fields: vec![
            one(given, "/status", "Status", Status::REQUESTED.map(pick).into()).required(),
            moment(given, "/start_on", "Start automatically at").hint("Only with the status Scheduled."),
            moment(given, "/end_on", "Ends at").hint("Only when starting."),
        ],
    }
}

/// Returns the form for a test with at most `most` simulated users.
pub(super) fn users(given: &Value, most: u32) -> Form {
    Form { fields: vec![number(given, "/users", "Simulated users", (1.0, f64::from(most))).required()] }
}

/// Returns the form for an action on one user: the user's id, and a line for each of `more`, which
/// are pairs of a place and a label.
pub(super) fn user(given: &Value, more: &[(&str, &str)]) -> Form {
    let user = std::iter::once(line(given, "/user", "User ID").required());
    Form { fields: user.chain(more.iter().map(|(place, label)| line(given, place, label))).collect() }
}

/// Returns the field for the decision points, one on each line; `None` if a point has more parts
/// than fit on a line.
fn points(given: &Value, contexts: &Contexts) -> Option<Field> {
    let lines = match given.pointer("/decision_points") {
        None => Vec::new(),
        Some(Value::Array(points)) => points.iter().map(point).collect::<Option<_>>()?,
        Some(_) => return None,
    };
    let example = contexts.values().find_map(|context| Some((context.sites.first()?, context.targets.first()?)));
    let field = Field::new("/decision_points", "Decision points, one per line", Input::Lines(lines));
    Some(match example {
        Some((site, target)) => field.hint(format!("Site / target, such as {site} / {target}")),
        None => field.hint("Site / target"),
    })
}

fn point(point: &Value) -> Option<String> {
    match point {
        Value::String(words) => Some(words.clone()),
        _ if point["exclude_if_reached"] == true => None,
        _ => Some(format!("{} / {}", point["site"].as_str()?, point["target"].as_str()?)),
    }
}

/// The label of the field for conditions with their weights.
const CONDITIONS: &str = "Conditions and weights, one per line";

/// Returns a condition as a line of the form: `control: 50%`; `None` if it is renamed, which a line cannot show.
fn condition_line(condition: &Value) -> Option<String> {
    if let Value::String(words) = condition {
        return Some(words.clone());
    }
    let code = condition["code"].as_str().filter(|_| condition.get("was").is_none())?;
    Some(condition["weight"].as_f64().map_or_else(|| code.to_owned(), |weight| format!("{code}: {weight}%")))
}

/// Returns one field for the conditions with their weights if the weights are known, otherwise one for each.
fn conditions(given: &Value) -> Vec<Field> {
    match given.pointer("/conditions") {
        Some(Value::Array(codes)) if !codes.is_empty() && codes.iter().all(Value::is_string) => vec![
            Field::new("/conditions", "Conditions, one per line", Input::Lines(lines_of(given, "/conditions"))),
            weights(given),
        ],
        Some(Value::Array(conditions)) if !conditions.is_empty() => {
            let lines: Option<Vec<String>> = conditions.iter().map(condition_line).collect();
            let field = |lines| {
                Field::new("/conditions", CONDITIONS, Input::Lines(lines))
                    .hint("Code: weight in %, such as control: 50%. Add or delete a line to add or remove a condition.")
                    .required()
            };
            lines.map(field).into_iter().collect()
        }
        Some(_) => Vec::new(),
        None => vec![
            Field::new("/conditions", "Conditions, one per line", Input::Lines(Vec::new())).hint(
                "Code: weight in %, such as control: 50. Leave empty to use the context's first two conditions at 50% each.",
            ),
            weights(given),
        ],
    }
}

/// Returns the field for all weights together.
fn weights(given: &Value) -> Field {
    let written = match given.pointer("/weights") {
        Some(Value::Object(by_code)) => {
            let all: Vec<String> = by_code.iter().map(|(code, weight)| format!("{code} {weight}%")).collect();
            all.join(", ")
        }
        Some(Value::Array(weights)) => weights.iter().map(Value::to_string).collect::<Vec<_>>().join("/"),
        _ => text(given, "/weights"),
    };
    Field::new("/weights", "Weights, in %", Input::Line(written))
        .hint("In the order of the conditions, such as 70/30, or by name: control 70%, variant 30%.")
}

/// Returns the fields that new and changed designs have in common.
fn design(given: &Value) -> Vec<Field> {
    let picks = |values: &[&str]| values.iter().map(|value| Pick::of(*value)).collect();
    vec![
        one(given, "/unit", "Assignment", picks(&choices::UNITS))
            .hint("Individual, by group, or within subjects (each user gets several conditions in turn)."),
        line(given, "/group", "Group type").hint("Only for assignment by group, such as classId."),
        one(given, "/consistency", "Consistency", picks(&["individual", "group", "experiment"])),
        line(given, "/post_rule", "After enrollment ends")
            .hint("When enrollment is complete: continue, assign <condition code>, or assign default."),
        one(
            given,
            "/filter_mode",
            "Users on no list",
            vec![
                Pick { value: "includeAll".to_owned(), label: "included".to_owned() },
                Pick { value: "excludeAll".to_owned(), label: "excluded".to_owned() },
            ],
        ),
        Field::new("/tags", "Tags, one per line", Input::Lines(lines_of(given, "/tags"))),
        number(given, "/ends_after_users", "End after this many users", (0.0, 10_000_000.0)),
    ]
}

fn line(given: &Value, place: &str, label: &str) -> Field {
    Field::new(place, label, Input::Line(text(given, place)))
}

/// Returns a field for a moment. One that is given in words stays a line.
fn moment(given: &Value, place: &str, label: &str) -> Field {
    match text(given, place).as_str() {
        "" => Field::new(place, label, Input::Moment(None)),
        written => match written.parse::<jiff::Timestamp>() {
            Ok(at) => Field::new(place, label, Input::Moment(Some(Timestamp(at.as_millisecond())))),
            Err(_) => line(given, place, label),
        },
    }
}

fn prose(given: &Value, place: &str, label: &str) -> Field {
    Field::new(place, label, Input::Prose(text(given, place)))
}

fn one(given: &Value, place: &str, label: &str, picks: Vec<Pick>) -> Field {
    let value = Some(text(given, place)).filter(|value| !value.is_empty());
    Field::new(place, label, Input::One { picks, value })
}

fn number(given: &Value, place: &str, label: &str, (least, most): (f64, f64)) -> Field {
    let value = given.pointer(place).and_then(Value::as_f64);
    Field::new(place, label, Input::Number { value, least: Some(least), most: Some(most), fraction: false })
}

fn text(given: &Value, place: &str) -> String {
    given.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn lines_of(given: &Value, place: &str) -> Vec<String> {
    let lines = given.pointer(place).and_then(Value::as_array).into_iter().flatten();
    lines.filter_map(Value::as_str).map(str::to_owned).collect()
}
