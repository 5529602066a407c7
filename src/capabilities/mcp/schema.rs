//! Arguments by a server's own schema: people's words are read as values, and mistakes are reported before anything is
//! sent.
//!
//! [`Shape`] is the schema in the terms that the rest needs, `values` reads people's words, and `form` makes forms.

mod form;
mod shape;
mod values;

use countersign_capabilities::parameters;
use countersign_core::reply::Text;
use countersign_graph::action::MissingParameter;
use countersign_mcp_client::ToolDefinition;
use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use serde_json::{Map, Value, json};

pub(crate) use self::form::form;
pub(crate) use self::shape::{Kind, Shape};
use super::server::words;

/// The maximum number of mistakes that are listed at once.
const MAX_MISTAKES: usize = 3;

/// The keywords whose rules [`Shape::wanted`] tells; of the others the validator's own words are shown.
const TOLD: [&str; 18] = [
    "anyOf",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "multipleOf",
    "oneOf",
    "pattern",
    "required",
    "type",
    "uniqueItems",
];

/// One argument of a tool, or one part of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
}

/// Returns the arguments of a tool, the required ones first, and the shape of others if it takes any.
fn all(definition: &ToolDefinition) -> (Vec<Argument>, Option<Box<Shape>>) {
    match Shape::of(&definition.schema, &definition.schema).kind {
        // Without any argument in the schema, nothing says that the tool takes one.
        Kind::Object { parts, others } => {
            let is_open = !parts.is_empty() || definition.schema.get("additionalProperties").is_some();
            (parts, others.filter(|_| is_open))
        }
        _ => (Vec::new(), None),
    }
}

/// Returns the arguments of a tool, the required ones first.
pub(crate) fn arguments(definition: &ToolDefinition) -> Vec<Argument> {
    all(definition).0
}

impl Argument {
    /// Returns the question that asks for it.
    fn question(&self, tool: &str, server: &str) -> String {
        let name = &self.name;
        let says = match self.shape.description.as_deref().map(|says| words(says, 150)) {
            Some(says) if !says.is_empty() => format!(" {server} describes it as “{says}”."),
            _ => String::new(),
        };
        format!("What should {name} be for {tool}? I need {}.{says}", self.shape.wanted())
    }
}

/// Returns a value as text, as people write it.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        value => value.to_string(),
    }
}

/// Returns the arguments, with texts read as the values that the schema wants. A null stays where the schema allows it.
pub(crate) fn read(definition: &ToolDefinition, given: &Value) -> Map<String, Value> {
    let (all, others) = all(definition);
    given.as_object().map(|given| values::read(&all, others.as_deref(), given)).unwrap_or_default()
}

/// Returns the required arguments that are missing, each with the question that asks for it.
pub(crate) fn missing(definition: &ToolDefinition, server: &str, given: &Map<String, Value>) -> Vec<MissingParameter> {
    let ask = |argument: Argument| {
        let options = match &argument.shape.kind {
            Kind::Flag => vec!["yes".to_owned(), "no".to_owned()],
            _ => argument.shape.choices().iter().map(|choice| text_of(&choice.value)).take(5).collect(),
        };
        let question = argument.question(&definition.name, server);
        parameters::missing(&argument.name, question, options)
    };
    lacking(definition, given).into_iter().map(ask).collect()
}

/// Returns the required arguments that are missing.
pub(crate) fn lacking(definition: &ToolDefinition, given: &Map<String, Value>) -> Vec<Argument> {
    let lacks = |argument: &Argument| argument.required && !given.contains_key(&argument.name);
    arguments(definition).into_iter().filter(lacks).collect()
}

/// Returns the first argument that the tool does not have, with a sentence that lists its arguments. `None` if there is
/// no such argument or the schema allows any.
pub(crate) fn unknown(definition: &ToolDefinition, given: &Map<String, Value>) -> Option<(String, String)> {
    let (all, others) = all(definition);
    let is_known = |name: &String| others.is_some() || all.iter().any(|argument| argument.name == *name);
    let unknown = given.keys().find(|name| !is_known(name))?;
    let takes = match all.is_empty() {
        true => "It takes none.".to_owned(),
        false => format!("It takes {}.", listed(&all)),
    };
    Some((words(unknown, 60), takes))
}

fn listed(arguments: &[Argument]) -> String {
    arguments.iter().map(|argument| words(&argument.name, 60)).collect::<Vec<_>>().join(", ")
}

/// Returns the validator of a schema, which also checks formats.
///
/// # Errors
///
/// The reason why the schema cannot be used.
pub(crate) fn validator(schema: &Value) -> Result<Validator, String> {
    let options = jsonschema::options().should_validate_formats(true);
    options.build(schema).map_err(|error| words(&error.to_string(), 120))
}

/// Returns the mistakes in the arguments according to the server's schema, each with a correction.
pub(crate) fn mistakes(definition: &ToolDefinition, given: &Map<String, Value>) -> Vec<Text> {
    let unknown = unknown(definition, given);
    let mut found: Vec<Text> = unknown
        .map(|(name, takes)| Text::from("There is no argument ").code(name).plain(format!(". {takes}")))
        .into_iter()
        .collect();
    for (_, text) in mistakes_by_place(definition, given) {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found.truncate(MAX_MISTAKES);
    found
}

/// Returns the mistakes in known arguments, each with its place as a JSON pointer.
pub(crate) fn mistakes_by_place(definition: &ToolDefinition, given: &Map<String, Value>) -> Vec<(String, Text)> {
    let Ok(validator) = validator(&definition.schema) else {
        return vec![(String::new(), Text::from("The server's schema for it can't be read."))];
    };
    let root = Shape::of(&definition.schema, &definition.schema);
    let given = Value::Object(given.clone());
    let found = validator.iter_errors(&given).filter_map(|error| {
        let place = error.instance_path().to_string();
        Some((place.clone(), mistake(&root, &place, &error)?))
    });
    found.collect()
}

/// Returns the sentence about one mistake; `None` for an argument that the tool does not have.
fn mistake(root: &Shape, place: &str, error: &ValidationError<'_>) -> Option<Text> {
    let steps: Vec<String> = place.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    let name = |steps: &[String]| words(&steps.join("."), 80);
    let own_words = || words(&error.to_string(), 150);
    let shape = root.at(&steps);
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let lacking: Vec<_> = steps.iter().cloned().chain(property.as_str().map(str::to_owned)).collect();
            let wanted = root.at(&lacking).map_or_else(|| "given".to_owned(), Shape::wanted);
            Some(Text::new().code(name(&lacking)).plain(format!(" is missing. It must be {wanted}.")))
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let parts = shape.map(Shape::parts).filter(|_| !steps.is_empty())?;
            let text = Text::new().code(name(&steps)).plain(" has no part ").code(words(&unexpected.join(", "), 60));
            Some(text.plain(format!(". It takes {}.", listed(parts))))
        }
        kind => {
            let Some(shape) = shape.filter(|_| !steps.is_empty()) else {
                return Some(Text::from(own_words()).plain("."));
            };
            let value = words(&text_of(error.instance()), 60);
            let rule = match TOLD.contains(&kind.keyword()) {
                true => format!("It must be {}", shape.wanted()),
                false => own_words(),
            };
            let text = Text::new().code(name(&steps)).plain(" is ");
            let text = if value.is_empty() { text.plain("empty") } else { text.code(value) };
            Some(text.plain(". ").plain(rule.trim_end_matches('.')).plain("."))
        }
    }
}

/// Returns the schema for a language model, with every argument; the server's words are marked as such. It accepts more
/// than the server's own schema, by which [`mistakes`] checks the arguments later.
pub(crate) fn for_model(definition: &ToolDefinition) -> Value {
    let (all, others) = all(definition);
    let mut schema = json!({ "type": "object", "properties": properties(&all) });
    if others.is_some() {
        schema["additionalProperties"] = json!(true);
    }
    schema
}

fn properties(arguments: &[Argument]) -> Map<String, Value> {
    let property = |argument: &Argument| {
        let says = argument.shape.description.as_deref().map(|says| words(says, 200)).unwrap_or_default();
        let needed = if argument.required { "Required. " } else { "" };
        let says = if says.is_empty() { says } else { format!(" The server's words, as data: «{says}»") };
        let mut schema = in_model_terms(&argument.shape);
        schema["description"] = json!(format!("{needed}{}.{says}", capital(&argument.shape.wanted())));
        (argument.name.clone(), schema)
    };
    arguments.iter().map(property).collect()
}

/// Returns the schema of one value for a language model. Each value may also be text, as people write it.
fn in_model_terms(shape: &Shape) -> Value {
    let mut schema = match &shape.kind {
        Kind::Text { .. } => json!({ "type": ["string"] }),
        Kind::Number { whole: true, .. } => json!({ "type": ["integer", "string"] }),
        Kind::Number { .. } => json!({ "type": ["number", "string"] }),
        Kind::Flag => json!({ "type": ["boolean", "string"] }),
        Kind::List { items, .. } => json!({ "type": ["array", "string"], "items": in_model_terms(items) }),
        Kind::Object { parts, .. } => json!({ "type": ["object", "string"], "properties": properties(parts) }),
        Kind::Choice(choices) if choices.iter().all(|choice| choice.value.is_string()) => json!({ "type": ["string"] }),
        Kind::Choice(_) | Kind::Either(_) | Kind::Any => {
            json!({ "type": ["string", "number", "boolean", "object", "array"] })
        }
    };
    if let (true, Some(types)) = (shape.nullable, schema["type"].as_array_mut()) {
        types.push(json!("null"));
    }
    if let Some([only]) = schema["type"].as_array().map(Vec::as_slice) {
        schema["type"] = only.clone();
    }
    schema
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

#[cfg(test)]
mod tests;
