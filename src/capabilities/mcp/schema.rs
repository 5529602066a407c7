//! Arguments by a server's own schema: people's words are parsed into values, and mistakes are reported before anything
//! is sent.

use countersign_capabilities::parameters;
use countersign_core::reply::Text;
use countersign_graph::action::{Field, Form, Input, MissingParameter, Pick};
use countersign_mcp_client::ToolDefinition;
use serde_json::{Map, Value, json};

use super::server::words;

/// The maximum number of mistakes that are listed at once.
const MAX_MISTAKES: usize = 3;

/// One argument of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument<'a> {
    pub(crate) name: &'a str,
    pub(crate) schema: &'a Value,
    pub(crate) required: bool,
}

/// Returns the arguments of a tool, the required ones first.
pub(crate) fn arguments(definition: &ToolDefinition) -> Vec<Argument<'_>> {
    let required: Vec<&str> =
        definition.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let all = definition.schema["properties"].as_object().into_iter().flatten();
    let mut all: Vec<_> =
        all.map(|(name, schema)| Argument { name, schema, required: required.contains(&name.as_str()) }).collect();
    all.sort_by_key(|argument| required.iter().position(|name| *name == argument.name).unwrap_or(usize::MAX));
    all
}

impl<'a> Argument<'a> {
    /// Returns the type of its values, such as `number`: the first type that is not null.
    fn kind(&self) -> &'a str {
        match &self.schema["type"] {
            Value::String(kind) => kind,
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or(""),
            _ => "",
        }
    }

    /// Returns its possible values, if the schema lists them, with their titles.
    fn choices(&self) -> Vec<(Value, String)> {
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if let Some(values) = self.schema["enum"].as_array() {
            let titles = self.schema["enumNames"].as_array();
            let title = |nth: usize| titles.and_then(|titles| titles.get(nth)?.as_str()).map(|title| words(title, 70));
            let with = |(nth, value): (usize, &Value)| (value.clone(), title(nth).unwrap_or_else(|| plain(value)));
            return values.iter().enumerate().map(with).collect();
        }
        let titled = self.schema["oneOf"].as_array().into_iter().flatten();
        let choice = |one: &Value| Some((one.get("const")?.clone(), words(one["title"].as_str()?, 70)));
        titled.filter_map(choice).collect()
    }

    /// Returns its type and bounds in words: `a whole number from 1 to 5`.
    pub(crate) fn wanted(&self) -> String {
        let choices = self.choices();
        if !choices.is_empty() {
            let listed: Vec<_> = choices.into_iter().map(|(value, _)| text_of(&value)).collect();
            return format!("one of {}", listed.join(", "));
        }
        let bound = |key: &str| self.schema[key].as_f64();
        let bounds = match (bound("minimum"), bound("maximum")) {
            (Some(least), Some(most)) => format!(" from {least} to {most}"),
            (Some(least), None) => format!(" of at least {least}"),
            (None, Some(most)) => format!(" of at most {most}"),
            (None, None) => String::new(),
        };
        match self.kind() {
            "integer" => format!("a whole number{bounds}"),
            "number" => format!("a number{bounds}"),
            "boolean" => "yes or no".to_owned(),
            "array" => "a list".to_owned(),
            "object" => "an object as JSON".to_owned(),
            _ => "text".to_owned(),
        }
    }

    /// Returns the question that asks for it.
    fn question(&self, tool: &str, server: &str) -> String {
        let name = self.name;
        let says = match self.schema["description"].as_str().map(|says| words(says, 150)) {
            Some(says) if !says.is_empty() => format!(" {server} describes it as “{says}”."),
            _ => String::new(),
        };
        format!("What should {name} be for {tool}? I need {}.{says}", self.wanted())
    }

    /// Parses a value that may be given as text.
    fn read(&self, given: &Value) -> Value {
        let Some(text) = given.as_str().map(str::trim) else { return given.clone() };
        if let Some((value, _)) = self
            .choices()
            .into_iter()
            .find(|(value, title)| text_of(value).eq_ignore_ascii_case(text) || title.eq_ignore_ascii_case(text))
        {
            return value;
        }
        let number = || text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<f64>().map(Value::from)).ok();
        let read = match self.kind() {
            "integer" | "number" => number(),
            "boolean" => match text.to_lowercase().as_str() {
                "yes" | "true" | "on" | "y" => Some(Value::Bool(true)),
                "no" | "false" | "off" | "n" => Some(Value::Bool(false)),
                _ => None,
            },
            "object" => serde_json::from_str::<Value>(text).ok().filter(Value::is_object),
            "array" => serde_json::from_str::<Value>(text).ok().filter(Value::is_array).or_else(|| {
                let item = Argument { name: self.name, schema: &self.schema["items"], required: false };
                Some(text.split(',').map(|one| item.read(&Value::from(one.trim()))).collect())
            }),
            _ => None,
        };
        read.unwrap_or_else(|| given.clone())
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

/// Returns the arguments, with texts parsed into the types of the schema and without nulls.
pub(crate) fn read(definition: &ToolDefinition, given: &Value) -> Map<String, Value> {
    let all = arguments(definition);
    let given = given.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let read = |(name, value): (&String, &Value)| {
        let known = all.iter().find(|argument| argument.name == name);
        (name.clone(), known.map_or_else(|| value.clone(), |argument| argument.read(value)))
    };
    given.map(read).collect()
}

/// Returns the required arguments that are missing, each with the question that asks for it.
pub(crate) fn missing(definition: &ToolDefinition, server: &str, given: &Map<String, Value>) -> Vec<MissingParameter> {
    let lacks = |argument: &Argument<'_>| argument.required && !given.contains_key(argument.name);
    let ask = |argument: Argument<'_>| {
        let options = match argument.kind() {
            "boolean" => vec!["yes".to_owned(), "no".to_owned()],
            _ => argument.choices().into_iter().map(|(value, _)| text_of(&value)).take(5).collect(),
        };
        parameters::missing(argument.name, argument.question(&definition.name, server), options)
    };
    arguments(definition).into_iter().filter(lacks).map(ask).collect()
}

/// Returns the first argument that the tool does not have, with a sentence that lists its arguments. `None` if there is
/// no such argument or the schema allows any.
pub(crate) fn unknown(definition: &ToolDefinition, given: &Map<String, Value>) -> Option<(String, String)> {
    let all = arguments(definition);
    let is_open = definition.schema.get("additionalProperties").is_some_and(|more| *more != false)
        || definition.schema.get("patternProperties").is_some();
    let unknown = given.keys().find(|name| !is_open && !all.iter().any(|argument| argument.name == *name))?;
    let takes = match all.is_empty() {
        true => "It takes none.".to_owned(),
        false => format!("It takes {}.", all.iter().map(|argument| argument.name).collect::<Vec<_>>().join(", ")),
    };
    Some((words(unknown, 60), takes))
}

/// Returns the mistakes in the arguments according to the server's schema, each with a correction.
pub(crate) fn mistakes(definition: &ToolDefinition, given: &Map<String, Value>) -> Vec<Text> {
    let all = arguments(definition);
    let unknown = unknown(definition, given);
    let mut found: Vec<Text> = unknown
        .map(|(name, takes)| Text::from("There is no argument ").code(name).plain(format!(". {takes}")))
        .into_iter()
        .collect();
    match jsonschema::validator_for(&definition.schema) {
        Ok(validator) => {
            let given = Value::Object(given.clone());
            for mistake in validator.iter_errors(&given) {
                let place = mistake.instance_path().to_string();
                let name = place.trim_start_matches('/').split('/').next().unwrap_or_default().to_owned();
                let text = match all.iter().find(|argument| argument.name == name) {
                    Some(argument) => {
                        let value = words(&text_of(&given[name.as_str()]), 60);
                        let text = Text::new().code(&name).plain(" is ").code(value);
                        let exactly = argument.schema.get("maxLength").or(argument.schema.get("pattern"));
                        let rule = match exactly {
                            Some(_) if given[name.as_str()].is_string() => words(&mistake.to_string(), 150),
                            _ => format!("It must be {}", argument.wanted()),
                        };
                        text.plain(". ").plain(rule).plain(".")
                    }
                    None if found.is_empty() => Text::from(words(&mistake.to_string(), 150)).plain("."),
                    None => continue,
                };
                if !found.contains(&text) {
                    found.push(text);
                }
            }
        }
        Err(_) => found.push(Text::from("The server's schema for it can't be read.")),
    }
    found.truncate(MAX_MISTAKES);
    found
}

/// Returns the schema for a language model, with every argument; the server's words are marked as such. It accepts more
/// than the server's own schema, by which [`mistakes`] checks the arguments later.
pub(crate) fn for_model(definition: &ToolDefinition) -> Value {
    let properties: Map<String, Value> = arguments(definition)
        .into_iter()
        .map(|argument| {
            let says = argument.schema["description"].as_str().map(|says| words(says, 200)).unwrap_or_default();
            let needed = if argument.required { "Required. " } else { "" };
            let says = if says.is_empty() { says } else { format!(" The server's words, as data: «{says}»") };
            let mut schema = json!({ "description": format!("{needed}{}.{says}", capital(&argument.wanted())) });
            schema["type"] = match argument.kind() {
                "" => json!(["string", "number", "boolean", "object", "array"]),
                "string" => json!("string"),
                kind => json!([kind, "string"]),
            };
            (argument.name.to_owned(), schema)
        })
        .collect();
    json!({ "type": "object", "properties": properties })
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// Returns a form with every argument for which there is a kind of field.
pub(crate) fn form(definition: &ToolDefinition, given: &Map<String, Value>) -> Form {
    let field = |argument: &Argument<'_>| {
        let value = given.get(argument.name).or_else(|| argument.schema.get("default"));
        let text = || value.map(text_of).unwrap_or_default();
        let choices = argument.choices();
        let input = match argument.kind() {
            _ if !choices.is_empty() && choices.iter().all(|(value, _)| value.is_string()) => {
                let pick = |(value, label): (Value, String)| Pick { value: text_of(&value), label };
                Input::One { picks: choices.into_iter().map(pick).collect(), value: value.map(text_of) }
            }
            kind @ ("integer" | "number") => {
                let bound = |key: &str| argument.schema[key].as_f64();
                let (least, most) = (bound("minimum"), bound("maximum"));
                Input::Number { value: value.and_then(Value::as_f64), least, most, fraction: kind == "number" }
            }
            "boolean" => Input::Flag(value.and_then(Value::as_bool)),
            "array" if argument.schema["items"]["type"] == "string" => {
                let texts = value.and_then(Value::as_array).into_iter().flatten();
                Input::Lines(texts.map(text_of).collect())
            }
            "string" => Input::Line(text()),
            _ => return None,
        };
        let place = format!("/{}", argument.name.replace('~', "~0").replace('/', "~1"));
        let title = argument.schema["title"].as_str().map(|title| words(title, 40)).filter(|title| !title.is_empty());
        let mut field = Field::new(place, title.unwrap_or_else(|| argument.name.to_owned()), input);
        if let Some(says) = argument.schema["description"].as_str() {
            field = field.hint(words(says, 140));
        }
        Some(if argument.required { field.required() } else { field })
    };
    Form { fields: arguments(definition).iter().filter_map(field).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note() -> ToolDefinition {
        ToolDefinition {
            name: "add-note".to_owned(),
            description: String::new(),
            schema: json!({
                "type": "object",
                "properties": {
                    "copies": { "type": "integer", "minimum": 1, "maximum": 5 },
                    "text": { "type": "string", "maxLength": 5, "description": "The «text»\nof it" },
                    "color": { "type": "string", "enum": ["yellow", "blue"] },
                    "pinned": { "type": "boolean" },
                    "tags": { "type": "array", "items": { "type": "string" } },
                },
                "required": ["text", "color"],
            }),
            reads: false,
            destroys: true,
            idempotent: false,
        }
    }

    #[test]
    fn texts_become_the_values_that_the_schema_wants() {
        let given = json!({ "text": "7", "copies": "2", "pinned": "yes", "color": "Blue", "tags": "a, b", "x": null });
        let read = read(&note(), &given);
        let wanted = json!({ "text": "7", "copies": 2, "pinned": true, "color": "blue", "tags": ["a", "b"] });
        assert_eq!(Value::Object(read.clone()), wanted);
        assert_eq!(mistakes(&note(), &read), []);
    }

    #[test]
    fn what_is_missing_is_asked_for_in_the_servers_order() {
        let missing = missing(&note(), "notes", &Map::new());
        assert_eq!(missing[0].name, "text");
        assert_eq!(
            missing[0].question,
            "What should text be for add-note? I need text. notes describes it as “The text of it”."
        );
        assert_eq!(missing[1].options, ["yellow", "blue"]);
    }

    #[test]
    fn every_mistake_says_what_would_be_right() {
        let given = json!({ "text": "much too long", "color": "red", "copies": "nine", "typo": 1 });
        let found: Vec<String> = mistakes(&note(), &read(&note(), &given)).iter().map(Text::words).collect();
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0], "There is no argument typo. It takes text, color, copies, pinned, tags.");
        assert!(found.iter().any(|text| text == "color is red. It must be one of yellow, blue."), "{found:?}");
    }

    #[test]
    fn a_model_is_shown_the_servers_words_as_data() {
        let schema = for_model(&note());
        let text = &schema["properties"]["text"];
        assert_eq!(text["description"], "Required. Text. The server's words, as data: «The text of it»");
        assert!(schema.get("required").is_none(), "what is missing is asked for");
    }

    #[test]
    fn a_form_has_a_field_for_each_argument() {
        let form = form(&note(), &read(&note(), &json!({ "text": "x", "copies": 2 })));
        let labels: Vec<_> = form.fields.iter().map(|field| (field.place.as_str(), field.required)).collect();
        let wanted = [("/text", true), ("/color", true), ("/copies", false), ("/pinned", false), ("/tags", false)];
        assert_eq!(labels, wanted);
    }
}
