//! Tests of the schemas of tools: words, forms and the values that come of them.

use countersign_graph::action::{Entered, Form, Input};
use proptest::prelude::*;

use super::*;

fn tool(schema: Value) -> ToolDefinition {
    ToolDefinition {
        name: "add-note".to_owned(),
        description: String::new(),
        schema,
        reads: false,
        destroys: true,
        idempotent: false,
        needs_task: false,
    }
}

fn note() -> ToolDefinition {
    tool(json!({
        "type": "object",
        "properties": {
            "copies": { "type": "integer", "minimum": 1, "maximum": 5 },
            "text": { "type": "string", "maxLength": 5, "description": "The «text»\nof it" },
            "color": { "type": "string", "enum": ["yellow", "blue"] },
            "pinned": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["text", "color"],
    }))
}

/// The tools of a server written with the Python SDK, as it lists them.
fn visits(name: &str) -> ToolDefinition {
    let all: Value = serde_json::from_str(include_str!("../../../sandbox/mcp/visits.json")).unwrap();
    let found = all.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
    tool(found["inputSchema"].clone())
}

fn told(definition: &ToolDefinition, given: Value) -> Vec<String> {
    mistakes(definition, &read(definition, &given)).iter().map(Text::words).collect()
}

#[test]
fn texts_become_the_values_that_the_schema_wants() {
    let given = json!({ "text": "7", "pinned": "yes", "color": "Blue", "tags": "a, b", "copies": null });
    let read = read(&note(), &given);
    assert_eq!(
        Value::Object(read.clone()),
        json!({ "text": "7", "pinned": true, "color": "blue", "tags": ["a", "b"] })
    );
    assert_eq!(mistakes(&note(), &read), []);
    let copies = super::read(&note(), &json!({ "copies": "2" }));
    assert_eq!(Value::Object(copies), json!({ "copies": 2 }));
}

#[test]
fn what_is_missing_is_asked_for_in_the_servers_order() {
    let missing = missing(&note(), "notes", &Map::new());
    assert_eq!(missing[0].name, "text");
    let wanted = "What should text be for add-note? I need text of at most 5 characters. notes describes it as “The text of it”.";
    assert_eq!(missing[0].question, wanted);
    assert_eq!(missing[1].options, ["yellow", "blue"]);
}

#[test]
fn every_mistake_says_what_would_be_right() {
    let found = told(&note(), json!({ "text": "much too long", "color": "red", "copies": "nine", "typo": 1 }));
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[0], "There is no argument typo. It takes text, color, copies, pinned, tags.");
    assert!(found.contains(&"color is red. It must be one of yellow, blue.".to_owned()), "{found:?}");
    let long = told(&note(), json!({ "text": "much too long", "color": "blue" }));
    assert_eq!(long, ["text is much too long. It must be text of at most 5 characters."]);
}

#[test]
fn arguments_of_the_python_sdk_are_read_from_words() {
    let search = visits("search");
    let given = json!({ "query": "x", "limit": "1", "level": "2", "tags": "a, b" });
    let read_as = read(&search, &given);
    assert_eq!(Value::Object(read_as.clone()), json!({ "query": "x", "limit": 1, "level": 2, "tags": ["a", "b"] }));
    assert_eq!(mistakes(&search, &read_as), []);
    let nulls = read(&search, &json!({ "query": "x", "limit": null, "level": null, "tags": null }));
    assert_eq!(Value::Object(nulls), json!({ "query": "x", "limit": null }), "null differs from the default of 10");
    assert_eq!(
        told(&search, json!({ "query": "x", "limit": "many" })),
        ["limit is many. It must be a whole number, or null."]
    );
    assert_eq!(told(&search, json!({ "query": "x", "level": "7" })), ["level is 7. It must be one of 1, 2, 3."]);

    let plan = visits("plan_visit");
    let given = json!({
        "visitor.name": "Ada", "visitor.age": "36", "visitor.home.city": "Berlin", "day": "2027-03-15", "notes": null,
        "options": "chairs=3, tables: 1", "scale": "2.5", "extra": "{\"a\": 1}",
    });
    let read_as = read(&plan, &given);
    let wanted = json!({
        "visitor": { "name": "Ada", "age": 36, "home": { "city": "Berlin" } }, "day": "2027-03-15",
        "options": { "chairs": 3, "tables": 1 }, "scale": 2.5, "extra": { "a": 1 },
    });
    assert_eq!(Value::Object(read_as.clone()), wanted);
    assert_eq!(mistakes(&plan, &read_as), []);
    assert_eq!(read(&plan, &Value::Object(read_as.clone())), read_as, "what was read stays as it is");
    let whole = read(&plan, &json!({ "visitor": "{\"name\": \"Ada\"}", "visitor.age": "36" }));
    assert_eq!(whole["visitor"], json!({ "name": "Ada", "age": 36 }));

    let wrong = json!({ "visitor.age": "200", "day": "soon", "options": "chairs=three" });
    let found = told(&plan, wrong);
    let wanted = [
        "day is soon. It must be a date such as 2026-03-15.",
        "visitor.age is 200. It must be a whole number from 0 to 130, or null.",
        "visitor.name is missing. It must be text.",
    ];
    assert!(
        wanted.iter().all(|wanted| found.contains(&(*wanted).to_owned()) || found.len() == MAX_MISTAKES),
        "{found:?}"
    );
    let asked = missing(&plan, "visits", &Map::new());
    assert!(
        asked[0].question.contains("I need an object with name and, if wanted, age, home."),
        "{}",
        asked[0].question
    );
}

#[test]
fn a_form_has_a_field_for_each_argument_and_each_part() {
    let form = form(&note(), &read(&note(), &json!({ "text": "x", "copies": 2 })));
    let labels: Vec<_> = form.fields.iter().map(|field| (field.place.as_str(), field.required)).collect();
    let wanted = [("/text", true), ("/color", true), ("/copies", false), ("/pinned", false), ("/tags", false)];
    assert_eq!(labels, wanted);

    let form = super::form(&visits("plan_visit"), &Map::new());
    let fields: Vec<_> =
        form.fields.iter().map(|field| (field.place.as_str(), field.label.as_str(), field.required)).collect();
    let wanted = [
        ("/visitor/name", "visitor: Name", true),
        ("/visitor/age", "visitor: Age", false),
        ("/visitor/home/city", "visitor: home: City", false),
        ("/visitor/home/zip", "visitor: home: Zip", false),
        ("/day", "Day", true),
        ("/extra", "Extra", false),
        ("/kind", "Kind", false),
        ("/notes", "Notes", false),
        ("/options", "Options", false),
        ("/scale", "Scale", false),
    ];
    assert_eq!(fields, wanted);
    let level = super::form(&visits("search"), &Map::new());
    let level = level.fields.iter().find(|field| field.place == "/level").unwrap();
    assert!(
        matches!(&level.input, Input::One { picks, value } if picks.len() == 3 && value.as_deref() == Some("1")),
        "{level:?}"
    );
}

#[test]
fn a_list_of_choices_has_them_in_its_hint() {
    let tool = tool(json!({
        "type": "object",
        "properties": {
            "fish": {
                "type": "array",
                "items": { "type": "string", "enum": ["Tuna", "Salmon"] },
                "description": "Your fish",
            },
            "tags": { "type": "array", "items": { "type": "string" } },
        },
    }));
    let hints: Vec<_> = form(&tool, &Map::new()).fields.into_iter().map(|field| field.hint).collect();
    assert_eq!(hints, [Some("One per line: Tuna, Salmon. Your fish".to_owned()), None]);
}

#[test]
fn a_model_is_shown_the_servers_words_as_data() {
    let schema = for_model(&note());
    let text = &schema["properties"]["text"];
    let says = "Required. Text of at most 5 characters. The server's words, as data: «The text of it»";
    assert_eq!(text["description"], says);
    assert!(schema.get("required").is_none(), "what is missing is asked for");
    let visitor = &for_model(&visits("plan_visit"))["properties"]["visitor"];
    assert_eq!(visitor["properties"]["age"]["type"], json!(["integer", "string", "null"]));
    assert_eq!(
        visitor["properties"]["home"]["properties"]["city"]["description"],
        "Required. Text. The server's words, as data: «The city»"
    );
}

#[test]
fn schemas_that_refer_to_themselves_or_say_nothing_are_usable() {
    let tree = tool(json!({
        "type": "object",
        "properties": { "node": { "$ref": "#/$defs/Node" }, "any": {}, "odd": true, "gone": { "$ref": "#/$defs/None" } },
        "$defs": { "Node": { "type": "object", "properties": { "name": { "type": "string" }, "next": { "$ref": "#/$defs/Node" } } } },
    }));
    assert_eq!(arguments(&tree).len(), 4);
    assert!(!form(&tree, &Map::new()).fields.is_empty());
    assert!(for_model(&tree)["properties"]["node"].is_object());
    let read_as = read(&tree, &json!({ "node.next.name": "b", "any": "007", "odd": "[1, 2]" }));
    assert_eq!(Value::Object(read_as), json!({ "node": { "next": { "name": "b" } }, "any": "007", "odd": [1, 2] }));
    assert!(arguments(&tool(json!(true))).is_empty());
    let closed = tool(json!({ "type": "object" }));
    assert!(unknown(&closed, &read(&closed, &json!({ "x": "1" }))).is_some());
}

/// A schema, a value of it, and the value as people write it.
#[derive(Clone, Debug)]
struct Given {
    schema: Value,
    value: Value,
    text: String,
}

fn scalar() -> impl Strategy<Value = Given> {
    prop_oneof![
        "[b-m]{3,8}".prop_map(|text| Given { schema: json!({ "type": "string" }), value: json!(text), text }),
        any::<i32>().prop_map(|n| Given { schema: json!({ "type": "integer" }), value: json!(n), text: n.to_string() }),
        any::<i16>().prop_map(|n| {
            let value = f64::from(n) + 0.5;
            Given { schema: json!({ "type": "number" }), value: json!(value), text: value.to_string() }
        }),
        any::<bool>().prop_map(|yes| Given {
            schema: json!({ "type": "boolean" }),
            value: json!(yes),
            text: text_of(&json!(yes)),
        }),
        (1..4u8).prop_map(|n| Given { schema: json!({ "enum": [1, 2, 3] }), value: json!(n), text: n.to_string() }),
        (1..4u8).prop_map(|n| Given {
            schema: json!({ "oneOf": [{ "const": 1 }, { "const": 2 }, { "const": 3, "title": "Three" }] }),
            value: json!(n),
            text: if n == 3 { "three".to_owned() } else { n.to_string() },
        }),
        (1..29u8).prop_map(|day| {
            let text = format!("2027-02-{day:02}");
            Given { schema: json!({ "type": "string", "format": "date" }), value: json!(text), text }
        }),
    ]
}

fn whole() -> impl Strategy<Value = Given> {
    let list = (scalar(), 1..4usize).prop_map(|(one, count)| Given {
        schema: json!({ "type": "array", "items": one.schema }),
        value: Value::Array(vec![one.value; count]),
        text: vec![one.text; count].join(", "),
    });
    let object = (scalar(), scalar(), any::<bool>()).prop_map(|(a, b, closed)| {
        let value = json!({ "a": a.value, "b": b.value });
        let mut schema = json!({ "type": "object", "properties": { "a": a.schema, "b": b.schema }, "required": ["a"] });
        if closed {
            schema["additionalProperties"] = json!(false);
        }
        Given { schema, text: value.to_string(), value }
    });
    let free = prop::collection::btree_map("[b-m]{1,4}", any::<i16>(), 1..3).prop_map(|map| {
        let pairs: Vec<_> = map.iter().map(|(name, n)| format!("{name}={n}")).collect();
        let schema = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
        Given { schema, value: json!(map), text: pairs.join(", ") }
    });
    prop_oneof![3 => scalar(), 1 => list, 1 => object, 1 => free]
}

/// The same, as the SDKs write optional arguments and types of their own.
fn argument() -> impl Strategy<Value = (Given, Value)> {
    (whole(), 0..4u8).prop_map(|(given, how)| {
        let (schema, definitions) = match how {
            0 => (given.schema.clone(), json!({})),
            1 => (json!({ "anyOf": [given.schema, { "type": "null" }], "default": null, "title": "X" }), json!({})),
            2 => (json!({ "$ref": "#/$defs/Part", "description": "a part" }), json!({ "Part": given.schema })),
            _ => (
                json!({ "anyOf": [{ "$ref": "#/$defs/Part" }, { "type": "null" }], "default": null }),
                json!({ "Part": given.schema }),
            ),
        };
        let root = json!({ "type": "object", "properties": { "x": schema }, "$defs": definitions });
        (given, root)
    })
}

/// Enters a value into the fields of a form.
fn entered(form: &Form, value: &Value) -> Entered {
    let entries = form.fields.iter().filter_map(|field| {
        let value = value.pointer(&field.place)?;
        let text = match (&field.input, value) {
            (Input::Lines(_), Value::Array(lines)) => lines.iter().map(text_of).collect::<Vec<_>>().join("\n"),
            _ => text_of(value),
        };
        Some((field.place.clone(), vec![text]))
    });
    entries.collect()
}

proptest! {
    #[test]
    fn every_value_can_be_given_in_words_and_in_a_form((given, schema) in argument()) {
        let tool = tool(schema);
        let wanted = json!({ "x": given.value });
        let in_words = read(&tool, &json!({ "x": given.text }));
        prop_assert_eq!(Value::Object(in_words.clone()), wanted.clone());
        prop_assert_eq!(mistakes(&tool, &in_words), []);
        prop_assert_eq!(read(&tool, &wanted), in_words, "a value that is given as such stays");

        let form = form(&tool, &Map::new());
        prop_assert!(!form.fields.is_empty());
        let filled = form.fill(&json!({}), &entered(&form, &wanted)).unwrap();
        prop_assert_eq!(Value::Object(read(&tool, &filled)), wanted);
    }

    #[test]
    fn whatever_is_typed_is_read_or_told((given, schema) in argument(), typed in "\\PC{0,20}") {
        let tool = tool(schema);
        let read_as = read(&tool, &json!({ "x": typed }));
        let validator = validator(&tool.schema).unwrap();
        let is_valid = validator.is_valid(&Value::Object(read_as.clone()));
        prop_assert_eq!(mistakes(&tool, &read_as).is_empty(), is_valid, "{:?}", given);
    }
}
