//! Shorter schemas for language models, with the same names and meanings.
//!
//! An action accepts its parameters in many forms, as people phrase them in many ways. A model needs only the simplest
//! form of each. The result is small enough to be sent with each request, and simple enough for most providers to
//! enforce it in strict mode.

use serde_json::{Map, Value, json};

/// The maximum number of optional members in all strict schemas of one request.
const MAX_OPTIONAL_MEMBERS: usize = 24;
/// The maximum number of strict tools in one request.
const MAX_STRICT_TOOLS: usize = 20;

/// Returns the brief schema of the arguments of a tool.
pub(super) fn brief(schema: &Value) -> Value {
    if ["$defs", "definitions"].iter().any(|shared| schema.get(shared).is_some()) {
        return schema.clone(); // its parts refer to each other
    }
    let mut brief = shortened(schema);
    if let Some(members) = brief.as_object_mut() {
        members.remove("description"); // the tool's own description says more
        members.insert("type".to_owned(), "object".into());
        members.entry("properties").or_insert_with(|| json!({}));
        members.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    brief
}

fn shortened(schema: &Value) -> Value {
    let Some(members) = schema.as_object() else { return schema.clone() };
    if ["$ref", "oneOf", "allOf"].iter().any(|other| members.contains_key(*other)) {
        return schema.clone();
    }
    let description = members.get("description").and_then(Value::as_str).map(in_one_line);
    if members.contains_key("anyOf") {
        let mut brief = simplest(schema).map_or_else(|| json!({}), shortened);
        if let (Some(description), Some(brief)) = (description, brief.as_object_mut())
            && (!brief.contains_key("description") || brief["type"] != "string")
        {
            brief.insert("description".to_owned(), description.into());
        }
        return brief;
    }
    let mut brief = Map::new();
    if let Some(description) = description {
        brief.insert("description".to_owned(), description.into());
    }
    let kind = match &members.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().find(|kind| *kind != "null").cloned(),
        Some(kind) => Some((*kind).clone()),
        None => None,
    };
    brief.extend(kind.clone().map(|kind| ("type".to_owned(), kind)));
    for same in ["enum", "const", "required"] {
        brief.extend(members.get(same).map(|value| (same.to_owned(), value.clone())));
    }
    if let Some(items) = members.get("items") {
        brief.insert("items".to_owned(), shortened(items));
    }
    if let Some(Value::Object(properties)) = members.get("properties") {
        let properties: Map<_, _> = properties.iter().map(|(name, value)| (name.clone(), shortened(value))).collect();
        brief.insert("properties".to_owned(), properties.into());
        brief.insert("additionalProperties".to_owned(), false.into());
    }
    match members.get("additionalProperties") {
        Some(any @ Value::Object(_)) => brief.insert("additionalProperties".to_owned(), shortened(any)),
        Some(Value::Bool(true)) => brief.insert("additionalProperties".to_owned(), true.into()),
        _ => None,
    };
    brief.into()
}

/// Returns the simplest of several forms: a list, otherwise a text, otherwise the first.
fn simplest(schema: &Value) -> Option<&Value> {
    let forms = forms(schema);
    let of = |kind: &str| forms.iter().find(|form| form["type"] == kind).copied();
    of("array").or_else(|| of("string")).or_else(|| forms.first().copied())
}

/// Returns the forms that a value may have, nested ones included, without null.
fn forms(schema: &Value) -> Vec<&Value> {
    match schema["anyOf"].as_array() {
        Some(forms_of) => forms_of.iter().flat_map(forms).filter(|form| form["type"] != "null").collect(),
        None => vec![schema],
    }
}

fn in_one_line(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The strict tools and optional members that one request has left.
#[derive(Debug)]
pub(super) struct Strictness {
    tools: usize,
    optional: usize,
}

impl Strictness {
    /// Returns the limits of a whole request.
    pub(super) fn new() -> Self {
        Self { tools: MAX_STRICT_TOOLS, optional: MAX_OPTIONAL_MEMBERS }
    }

    /// Returns true, and counts the schema, if it can be strict in addition to those before it.
    pub(super) fn admit(&mut self, schema: &Value) -> bool {
        let Some(optional) = optional_members(schema) else { return false };
        let fits = self.tools > 0 && optional <= self.optional;
        if fits {
            self.tools -= 1;
            self.optional -= optional;
        }
        fits
    }
}

/// Returns the number of optional members; `None` if the schema cannot be strict.
fn optional_members(schema: &Value) -> Option<usize> {
    const PLAIN: &[&str] =
        &["type", "description", "enum", "const", "properties", "required", "items", "additionalProperties"];
    let members = schema.as_object()?;
    if !members.keys().all(|member| PLAIN.contains(&member.as_str())) || !members.get("type")?.is_string() {
        return None;
    }
    let mut optional = 0;
    if schema["type"] == "object" {
        let properties = schema["properties"].as_object().filter(|_| schema["additionalProperties"] == false)?;
        optional += properties.len() - schema["required"].as_array().map_or(0, Vec::len);
        for property in properties.values() {
            optional += optional_members(property)?;
        }
    }
    match members.get("items") {
        Some(items) => Some(optional + optional_members(items)?),
        None => Some(optional),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_of_each_is_left() {
        let schema = json!({
            "description": "Parameters.",
            "type": "object",
            "properties": {
                "conditions": {
                    "description": "The\nconditions.",
                    "default": null,
                    "anyOf": [
                        { "anyOf": [
                            { "type": "array", "description": "Several.", "items": { "anyOf": [
                                { "type": "string", "description": "Such as `control: 50`." },
                                { "type": "object", "properties": { "code": { "type": "string" } } },
                            ] } },
                            { "type": "string", "description": "One." },
                        ] },
                        { "type": "null" },
                    ],
                },
                "users": { "type": ["integer", "null"], "format": "int64", "minimum": 1 },
                "groups": { "type": "object", "additionalProperties": { "type": "string" } },
            },
        });
        assert_eq!(
            brief(&schema),
            json!({
                "type": "object",
                "properties": {
                    "conditions": {
                        "description": "The conditions.",
                        "type": "array",
                        "items": { "type": "string", "description": "Such as `control: 50`." },
                    },
                    "users": { "type": "integer" },
                    "groups": { "type": "object", "additionalProperties": { "type": "string" } },
                },
                "additionalProperties": false,
            })
        );
        assert_eq!(brief(&json!({ "type": "object" }))["additionalProperties"], false);
    }

    #[test]
    fn a_request_is_strict_only_as_far_as_providers_are() {
        let closed =
            |properties: Value| json!({ "type": "object", "properties": properties, "additionalProperties": false });
        let mut strictness = Strictness::new();
        assert!(strictness.admit(&closed(json!({ "a": { "type": "string" } }))));
        assert!(!strictness.admit(&closed(json!({ "a": {} }))), "of any kind");
        assert!(!strictness.admit(&closed(json!({ "a": { "type": "object" } }))), "open");
        let many: Map<String, Value> = (0..24).map(|n| (format!("p{n}"), json!({ "type": "string" }))).collect();
        assert!(!strictness.admit(&closed(many.into())), "too many may be left out");
    }
}
