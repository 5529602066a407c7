//! The JSON schemas that providers enforce: each supports a subset and refuses the others.

use serde_json::Value;

use crate::AnswerSchema;

/// The keywords that all providers enforce.
const KEYWORDS: &[&str] = &[
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
];

/// Returns true if a schema can be enforced: it has no other keywords, and its objects have no other properties. With
/// `all_required`, none of the properties may be optional.
pub(crate) fn can_be_enforced(schema: &Value, all_required: bool) -> bool {
    let Some(members) = schema.as_object() else { return false };
    if members.keys().any(|keyword| !KEYWORDS.contains(&keyword.as_str())) {
        return false;
    }
    let properties = schema["properties"].as_object();
    if schema["type"] == "object" {
        let required = schema["required"].as_array();
        let is_required = |name: &String| required.is_some_and(|required| required.iter().any(|other| other == name));
        let are_required = properties.is_none_or(|properties| properties.keys().all(is_required));
        if schema["additionalProperties"] != false || all_required && !are_required {
            return false;
        }
    }
    let alternatives = schema["anyOf"].as_array().into_iter().flatten();
    let inner = properties.into_iter().flat_map(|properties| properties.values()).chain(alternatives);
    inner.chain(schema.get("items")).all(|schema| can_be_enforced(schema, all_required))
}

/// Returns the schema of an answer with its name as the title, unless it has one.
pub(crate) fn titled(AnswerSchema { name, schema }: &AnswerSchema) -> Value {
    let mut schema = schema.clone();
    if let Some(members) = schema.as_object_mut() {
        members.entry("title").or_insert_with(|| name.as_str().into());
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_closed_schemas_of_known_keywords_can_be_enforced() {
        let with = |property: Value, required: Value| {
            let schema = json!({ "type": "object", "properties": { "at": property }, "required": required, "additionalProperties": false });
            [false, true].map(|all_required| can_be_enforced(&schema, all_required))
        };
        assert_eq!(with(json!({ "type": "string", "enum": ["a"] }), json!(["at"])), [true, true]);
        assert_eq!(with(json!({ "type": "string" }), json!([])), [true, false]);
        assert_eq!(with(json!({ "type": "number", "minimum": 0 }), json!(["at"])), [false, false]);
        assert_eq!(with(json!({ "type": "array", "items": { "type": "object" } }), json!(["at"])), [false, false]);
        assert_eq!(with(json!({ "anyOf": [{ "type": "null" }, { "pattern": "a" }] }), json!(["at"])), [false, false]);
        assert!(!can_be_enforced(&json!(true), false));
    }
}
