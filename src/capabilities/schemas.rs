//! The schemas of tools and actions, generated and compiled once.
//!
//! A schema is derived from a Rust type or from what a server offers, and compiling it costs far more than checking a
//! call. It is kept from its first use until a capability says that it has changed ([`super::ChangingOffer::generation`]).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use jsonschema::Validator;
use serde_json::Value;

/// The maximum number of mistakes that are reported.
const MAX_MISTAKES: usize = 3;

/// The schema of the parameters of a tool or an action.
#[derive(Debug)]
pub struct ParameterSchema {
    schema: Value,
    /// The compiled schema, or the reason why there is none; empty before its first use.
    validator: OnceLock<Result<Validator, String>>,
}

impl ParameterSchema {
    /// Creates a schema, which is compiled when it is first used.
    pub fn new(schema: Value) -> Self {
        Self { schema, validator: OnceLock::new() }
    }

    fn validator(&self) -> Result<&Validator, &str> {
        let compile = || jsonschema::validator_for(&self.schema).map_err(|error| error.to_string());
        self.validator.get_or_init(compile).as_ref().map_err(String::as_str)
    }

    /// Returns the reason why the schema cannot be used, if it cannot.
    pub fn fault(&self) -> Option<&str> {
        self.validator().err()
    }

    /// Returns the schema of one parameter; null if it is not described.
    pub fn parameter(&self, name: &str) -> &Value {
        &self.schema["properties"][name]
    }

    /// Returns true if there may be a parameter of this name.
    pub fn may_have(&self, name: &str) -> bool {
        self.schema["properties"].as_object().is_none_or(|known| known.contains_key(name))
    }

    /// Checks the arguments of a call.
    ///
    /// # Errors
    ///
    /// Fails with the first mistakes, in words for a model.
    pub fn check(&self, arguments: &Value) -> Result<(), String> {
        let validator = self.validator().map_err(|fault| format!("the tool is broken: {fault}"))?;
        let mistakes = validator.iter_errors(arguments).take(MAX_MISTAKES);
        let mistakes: Vec<String> = mistakes
            .map(|mistake| match mistake.instance_path().as_str() {
                "" => mistake.to_string(),
                place => format!("{place}: {mistake}"),
            })
            .collect();
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes.join("; ")) }
    }
}

/// The schemas of all tools and actions, by name.
#[derive(Default)]
pub(crate) struct Schemas(Mutex<Compiled>);

#[derive(Default)]
struct Compiled {
    /// The sum of the capabilities' generations.
    generation: u64,
    by_name: HashMap<&'static str, Arc<ParameterSchema>>,
}

impl Schemas {
    /// Returns a schema of this generation, which is generated unless it is known.
    pub(crate) fn get(
        &self,
        generation: u64,
        name: &'static str,
        schema: impl FnOnce() -> Value,
    ) -> Arc<ParameterSchema> {
        if let Some(known) = self.of(generation).by_name.get(name) {
            return Arc::clone(known);
        }
        let new = Arc::new(ParameterSchema::new(schema()));
        self.of(generation).by_name.insert(name, Arc::clone(&new));
        new
    }

    fn of(&self, generation: u64) -> MutexGuard<'_, Compiled> {
        let mut compiled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.generation != generation {
            *compiled = Compiled { generation, by_name: HashMap::new() };
        }
        compiled
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_compiled_again_only_after_a_change() {
        let schemas = Schemas::default();
        let takes = |generation: u64, offered: &'static str| {
            let schema = || json!({ "properties": { offered: {} } });
            let found = schemas.get(generation, "call", schema);
            ["text", "colour"].into_iter().filter(|name| found.may_have(name)).collect::<String>()
        };
        assert_eq!(takes(0, "text"), "text");
        assert_eq!(takes(0, "colour"), "text", "nothing changed");
        assert_eq!(takes(1, "colour"), "colour");
    }

    #[test]
    fn a_schema_that_cannot_be_used_fits_nothing() {
        let broken = ParameterSchema::new(json!({ "type": "nothing" }));
        assert!(broken.fault().is_some());
        assert!(broken.check(&json!({})).unwrap_err().starts_with("the tool is broken: "));
        let open = ParameterSchema::new(json!({ "type": "object" }));
        assert!(open.fault().is_none() && open.may_have("anything") && open.parameter("anything").is_null());
    }
}
