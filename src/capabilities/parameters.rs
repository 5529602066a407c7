//! The parameters of actions: their schemas and their parsing.

use countersign_core::reply::{Part, Reply, Text};
use countersign_graph::action::{ErrorKind, MissingParameter, PrepareError, Refusal};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns a refusal with a reply.
pub fn refused(error: ErrorKind, reply: Reply) -> PrepareError {
    Refusal::Refused { error, reply }.into()
}

/// Reads the parameters as a type.
///
/// # Errors
///
/// A refusal that says what is wrong with the parameters.
pub fn parameters<T: DeserializeOwned>(given: &Value) -> Result<T, PrepareError> {
    T::deserialize(given).map_err(|error| refused(ErrorKind::Validation, unreadable(&error.to_string())))
}

/// Returns the JSON schema of parameters, with subschemas inlined, as models prefer them.
pub fn schema<T: schemars::JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.remove("description"); // it describes the Rust type; the action or tool has its own
    schema.to_value()
}

/// Returns a missing parameter with the question that asks for it.
pub fn missing(name: &str, question: impl Into<String>, options: Vec<String>) -> MissingParameter {
    MissingParameter { name: name.to_owned(), question: question.into(), options }
}

/// Asks for one missing parameter.
pub fn incomplete(name: &str, question: impl Into<String>, options: Vec<String>) -> PrepareError {
    Refusal::Missing(vec![missing(name, question, options)]).into()
}

/// Asks for a missing parameter, as the reply of a tool.
pub fn question(missing: MissingParameter) -> Reply {
    let reply = Reply::text(missing.question);
    match missing.options.is_empty() {
        true => reply,
        false => reply.and(Part::List(missing.options.into_iter().map(Text::from).collect())).hint("Name one of them."),
    }
}

/// Returns a person's words without surrounding blanks; `None` if nothing is left.
pub fn non_blank(words: Option<&String>) -> Option<&str> {
    words.map(|words| words.trim()).filter(|words| !words.is_empty())
}

/// Returns the reply for parameters that cannot be read.
pub fn unreadable(why: &str) -> Reply {
    if let Some((unknown, _)) = why.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
        return Reply::text(Text::from("“").bold(unknown).plain("” can't be set here."))
            .hint("Give the value again, for example as it appears on the platform.");
    }
    let Some(number) = no_count(why) else {
        let reply = match needed(why) {
            Some(needed) => Reply::text(format!("A value has the wrong type: expected {needed}.")),
            None => Reply::text("A value has the wrong type, so I couldn't use it."),
        };
        return reply.hint("Give the value again, for example as it appears on the platform.");
    };
    Reply::text(Text::from("This must be a whole number, zero or more; ").bold(number).plain(" isn't."))
        .hint("Give a whole number, such as 5.")
}

/// Returns the expected kind of value in words, if the error of the deserializer names it.
fn needed(why: &str) -> Option<&'static str> {
    const KINDS: &[(&str, &str)] = &[
        ("i64", "a whole number"),
        ("u64", "a whole number"),
        ("u32", "a whole number"),
        ("usize", "a whole number"),
        ("f64", "a number"),
        ("a boolean", "yes or no"),
        ("a string", "words"),
        ("a sequence", "a list"),
    ];
    let (_, expected) = why.split_once("expected ")?;
    KINDS.iter().find(|(kind, _)| expected.starts_with(kind)).map(|(_, words)| *words)
}

/// Returns the number that was given for a count although it is negative or has a fraction.
fn no_count(why: &str) -> Option<&str> {
    let (found, expected) = why.split_once(", expected ")?;
    let counts = ["u64", "u32", "usize", "i64"].iter().any(|kind| expected.starts_with(kind));
    let number = found.split_once(": integer `").or_else(|| found.split_once(": floating point `"))?.1;
    number.strip_suffix('`').filter(|_| counts)
}
