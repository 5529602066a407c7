//! The rules for the schemas of strict tools: a subset of JSON Schema, with limits on its
//! complexity.

use serde_json::{Map, Value};

/// The maximum number of strict tools.
const MAX_TOOLS: usize = 20;
/// The maximum number of optional properties in all their schemas.
const MAX_OPTIONAL: usize = 24;
/// The maximum number of values that may have one of several types.
const MAX_UNIONS: usize = 16;
/// The keywords that are not supported in a strict schema.
const UNSUPPORTED: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "not",
    "if",
    "oneOf",
];

/// The totals of all strict tools of a request.
#[derive(Debug, Default)]
struct Sum {
    tools: usize,
    optional: usize,
    unions: usize,
}

/// Checks all strict tools together.
pub(super) fn check(tools: &[Value]) -> Result<(), String> {
    let mut sum = Sum::default();
    for (at, tool) in tools.iter().enumerate() {
        match tool.get("strict") {
            None | Some(Value::Bool(false)) => continue,
            Some(Value::Bool(true)) => sum.tools += 1,
            Some(_) => return Err(format!("tools.{at}.strict: must be a boolean")),
        }
        schema(&tool["input_schema"], &format!("tools.{at}.input_schema"), &mut sum)?;
    }
    let over = |what: &str, is: usize, most: usize| match is > most {
        true => Err(format!("tools: too many {what} in strict schemas: {is}, at most {most}")),
        false => Ok(()),
    };
    over("tools", sum.tools, MAX_TOOLS)?;
    over("optional parameters", sum.optional, MAX_OPTIONAL)?;
    over("unions", sum.unions, MAX_UNIONS)
}

/// Checks the schema of an answer.
pub(super) fn check_format(value: &Value, place: &str) -> Result<(), String> {
    schema(value, place, &mut Sum::default())
}

/// Checks a strict schema of an API in which all properties are required.
pub(super) fn check_required(value: &Value, name: &str) -> Result<(), String> {
    let mut sum = Sum::default();
    let invalid = |what: String| format!("Invalid schema for '{name}': {what}");
    schema(value, name, &mut sum).map_err(invalid)?;
    match sum.optional {
        0 => Ok(()),
        _ => Err(invalid("'required' is required to be supplied and to include every key in properties.".to_owned())),
    }
}

fn schema(value: &Value, place: &str, sum: &mut Sum) -> Result<(), String> {
    let Some(members) = value.as_object() else { return Err(format!("{place}: must be an object")) };
    if let Some(unknown) = members.keys().find(|member| UNSUPPORTED.contains(&member.as_str())) {
        return Err(format!("{place}: property '{unknown}' is not supported in strict schemas"));
    }
    if value["type"].is_array() || members.contains_key("anyOf") {
        sum.unions += 1;
    }
    for (n, alternative) in value["anyOf"].as_array().into_iter().flatten().enumerate() {
        schema(alternative, &format!("{place}.anyOf.{n}"), sum)?;
    }
    if value["minItems"].as_u64().is_some_and(|least| least > 1) {
        return Err(format!("{place}: minItems may be 0 or 1 in strict schemas"));
    }
    if value["type"] == "object" {
        if value["additionalProperties"] != false {
            return Err(format!("{place}: 'additionalProperties' must be set to false for strict tools"));
        }
        let none = Map::new();
        let properties = value["properties"].as_object().unwrap_or(&none);
        let required = value["required"].as_array().map_or(0, Vec::len);
        sum.optional += properties.len().saturating_sub(required);
        for (name, property) in properties {
            schema(property, &format!("{place}.properties.{name}"), sum)?;
        }
    }
    match value.get("items") {
        Some(items) => schema(items, &format!("{place}.items"), sum),
        None => Ok(()),
    }
}
