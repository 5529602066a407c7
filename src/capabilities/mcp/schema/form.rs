//! Forms: a field for each argument, and for each part of an object.

use countersign_graph::action::{Field, Form, Input, Pick};
use countersign_mcp_client::ToolDefinition;
use serde_json::{Map, Value};

use super::{
    Argument, arguments,
    shape::{Choice, Kind, Shape},
    text_of,
};
use crate::server::words;

/// The depth to which the parts of objects are fields of their own; deeper ones are JSON.
const MAX_DEPTH: usize = 3;

/// The maximum number of fields. Slack shows at most 100 blocks in a window.
const MAX_FIELDS: usize = 60;

/// The names of texts that usually have several lines.
const LONG: [&str; 4] = ["body", "code", "content", "markdown"];

/// Returns a form with every argument.
pub(crate) fn form(definition: &ToolDefinition, given: &Map<String, Value>) -> Form {
    let mut fields = Vec::new();
    for argument in arguments(definition) {
        let place = Place { pointer: String::new(), label: String::new(), required: true, depth: 0 };
        add(&mut fields, &argument, given.get(&argument.name), &place);
    }
    fields.truncate(MAX_FIELDS);
    Form { fields }
}

/// The object whose parts are added.
struct Place {
    pointer: String,
    label: String,
    required: bool,
    depth: usize,
}

/// Adds the fields of an argument or of a part of one.
fn add(fields: &mut Vec<Field>, argument: &Argument, value: Option<&Value>, within: &Place) {
    let shape = &argument.shape;
    let value = value.or(shape.default.as_ref());
    let title = shape.title.as_deref().map(|title| words(title, 40)).filter(|title| !title.is_empty());
    let own = title.unwrap_or_else(|| words(&argument.name, 40));
    let place = Place {
        pointer: format!("{}/{}", within.pointer, argument.name.replace('~', "~0").replace('/', "~1")),
        label: if within.label.is_empty() { own } else { format!("{}: {own}", within.label) },
        required: within.required && argument.required && !shape.nullable,
        depth: within.depth + 1,
    };
    if let Kind::Object { parts, others: None } = &shape.kind
        && !parts.is_empty()
        && place.depth < MAX_DEPTH
    {
        for part in parts {
            add(fields, part, value.and_then(|value| value.get(&part.name)), &place);
        }
        return;
    }
    let says = shape.description.as_deref().map(|says| words(says, 140)).unwrap_or_default();
    let says = match &shape.kind {
        Kind::List { items, .. } if !items.choices().is_empty() => {
            let choices: Vec<_> = items.choices().iter().map(|choice| words(&text_of(&choice.value), 40)).collect();
            format!("One per line: {}. {says}", choices.join(", ")).trim_end().to_owned()
        }
        _ => says,
    };
    let input = input(&argument.name, shape, value.filter(|value| !value.is_null()));
    let is_json = matches!(input, Input::Prose(_)) && !matches!(shape.kind, Kind::Text { .. });
    let hint = match (is_json, says.is_empty()) {
        (true, true) => format!("As JSON: {}.", shape.wanted()),
        (true, false) => format!("As JSON: {}. {says}", shape.wanted()),
        (false, _) => says,
    };
    let mut field = Field::new(place.pointer, place.label, input);
    if !hint.is_empty() {
        field = field.hint(words(&hint, 200));
    }
    fields.push(if place.required { field.required() } else { field });
}

/// Returns the kind of field for a shape, with its initial value.
fn input(name: &str, shape: &Shape, value: Option<&Value>) -> Input {
    let text = || value.map(text_of).unwrap_or_default();
    match &shape.kind {
        Kind::Choice(choices) => {
            let pick = |choice: &Choice| Pick { value: text_of(&choice.value), label: choice.title.clone() };
            Input::One { picks: choices.iter().map(pick).collect(), value: value.map(text_of) }
        }
        Kind::Number { whole, limits, .. } => Input::Number {
            value: value.and_then(Value::as_f64),
            least: limits.least,
            most: limits.most,
            fraction: !whole,
        },
        Kind::Flag => Input::Flag(value.and_then(Value::as_bool)),
        Kind::List { items, .. } if items.is_scalar() => {
            Input::Lines(value.and_then(Value::as_array).into_iter().flatten().map(text_of).collect())
        }
        Kind::Text { length, .. } => {
            let is_long = length.most.map_or(LONG.contains(&name), |most| most > 500);
            if is_long || text().contains('\n') { Input::Prose(text()) } else { Input::Line(text()) }
        }
        _ if shape.is_scalar() => Input::Line(text()),
        Kind::List { .. } | Kind::Object { .. } | Kind::Either(_) | Kind::Any => Input::Prose(text()),
    }
}
