//! The tools of the stand-in: those of the reference server, two of a server written with the Python SDK, and four that
//! store notes.

use serde_json::{Map, Value, json};

use super::World;

/// The tools of the reference server, as it lists them.
const REFERENCE: &str = include_str!("tools.json");

/// The tools of a server written with the Python SDK, as it lists them.
const VISITS: &str = include_str!("visits.json");

/// The picture of the reference server, in Base64.
const PICTURE: &str = include_str!("picture.base64");

/// The schema of the answer that the reference server requests from the user.
const QUESTION: &str = include_str!("question.json");

/// The result of a call, or the next thing to do for it.
pub(super) enum Work {
    /// The call is complete, with this result.
    Done(Value),
    /// The call takes this number of steps, reports each, and ends with this result.
    Steps(u64, Value),
    /// The call asks the user this question first.
    Asks(Value),
    /// The call asks the user for a name with this question, and stores a note with it.
    AsksForNote(Value),
}

/// Returns all tools.
pub(super) fn all() -> Vec<Value> {
    let mut tools: Vec<Value> = serde_json::from_str(REFERENCE).expect("the list is JSON");
    tools.extend(serde_json::from_str::<Vec<Value>>(VISITS).expect("the list is JSON"));
    let note = |name: &str, title: &str, description: &str, properties: Value, required: Value, hints: [bool; 3]| {
        let [reads, destroys, idempotent] = hints;
        json!({
            "name": name,
            "title": title,
            "description": description,
            "inputSchema": {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "object",
                "properties": properties,
                "required": required,
            },
            "annotations": {
                "readOnlyHint": reads,
                "destructiveHint": destroys,
                "idempotentHint": idempotent,
                "openWorldHint": false,
            },
        })
    };
    let text = json!({ "type": "string", "description": "The text of the note", "maxLength": 200 });
    let color = json!({ "type": "string", "enum": ["yellow", "blue"], "description": "The color of the paper" });
    let pinned = json!({ "type": "boolean", "description": "Keep it on top" });
    let copies = json!({ "type": "integer", "minimum": 1, "maximum": 5, "description": "The number of copies" });
    tools.extend([
        note("list-notes", "List Notes", "Returns all notes", json!({}), json!([]), [true, false, true]),
        note(
            "add-note",
            "Add Note",
            "Adds a note to the board",
            json!({ "text": text, "color": color, "copies": copies, "pinned": pinned }),
            json!(["text", "color"]),
            [false, false, false],
        ),
        note(
            "set-note",
            "Set Note",
            "Makes this the only note on the board",
            json!({ "text": text }),
            json!(["text"]),
            [false, true, true],
        ),
        note("sign-board", "Sign Board", "Adds a note with your name", json!({}), json!([]), [false, false, false]),
    ]);
    tools
}

/// Returns a text as the result of a tool.
pub(super) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Returns an error as the result of a tool, in the format of the reference server.
fn wrong(why: &str) -> Value {
    let mut result = text(&format!("MCP error -32602: {why}"));
    result["isError"] = json!(true);
    result
}

fn kind(value: Option<&Value>) -> &'static str {
    match value {
        None => "undefined",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "boolean",
        Some(Value::Number(_)) => "number",
        Some(Value::String(_)) => "string",
        Some(Value::Array(_)) => "array",
        Some(Value::Object(_)) => "object",
    }
}

/// Returns the reference server's error about the first argument of a wrong type, if there is one.
fn invalid(schema: &Value, arguments: &Map<String, Value>) -> Option<String> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    schema["properties"].as_object()?.iter().find_map(|(name, wanted)| {
        let expected = match wanted["type"].as_str()? {
            "integer" => "number",
            kind => kind,
        };
        let given = arguments.get(name);
        let is_fine = kind(given) == expected || given.is_none() && !required.contains(&name.as_str());
        (!is_fine).then(|| format!("Invalid input: expected {expected}, received {} at {name}", kind(given)))
    })
}

/// Carries out a call.
pub(super) fn call(world: &mut World, name: &str, arguments: &Map<String, Value>) -> Work {
    let Some(tool) = world.tools.iter().find(|tool| tool["name"] == name) else {
        return Work::Done(wrong(&format!("Tool {name} not found")));
    };
    if let Some(why) = invalid(&tool["inputSchema"], arguments) {
        return Work::Done(wrong(&format!("Input validation error: Invalid arguments for tool {name}: {why}")));
    }
    world.calls.push((name.to_owned(), Value::Object(arguments.clone())));
    let number = |key: &str| arguments.get(key).and_then(Value::as_f64).unwrap_or_default();
    let word = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    Work::Done(match name {
        "echo" => text(&format!("Echo: {}", word("message"))),
        "get-sum" => {
            let (a, b) = (number("a"), number("b"));
            text(&format!("The sum of {a} and {b} is {}.", a + b))
        }
        "get-structured-content" => {
            let weather = match word("location").as_str() {
                "New York" => json!({ "temperature": 33, "conditions": "Cloudy", "humidity": 82 }),
                "Chicago" => json!({ "temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82 }),
                _ => json!({ "temperature": 73, "conditions": "Sunny / Clear", "humidity": 48 }),
            };
            let mut result = text(&weather.to_string());
            result["structuredContent"] = weather;
            result
        }
        "get-tiny-image" => json!({ "content": [
            { "type": "text", "text": "Here's the image you requested:" },
            { "type": "image", "data": PICTURE.trim(), "mimeType": "image/png" },
            { "type": "text", "text": "The image above is the MCP logo." },
        ] }),
        "get-resource-links" => {
            let count = arguments.get("count").and_then(Value::as_u64).unwrap_or(3);
            let link = |id: u64| {
                let (title, kind) = if id % 2 == 1 { ("Blob", "blob") } else { ("Text", "text") };
                json!({
                    "name": format!("{title} Resource {id}"),
                    "uri": format!("demo://resource/dynamic/{kind}/{id}"),
                    "description": format!("Resource {id}: plaintext resource"),
                    "mimeType": "text/plain",
                    "type": "resource_link",
                })
            };
            let mut result = text(&format!("Here are {count} resource links to resources available in this server:"));
            result["content"].as_array_mut().expect("it is a list").extend((1..=count).map(link));
            result
        }
        "get-resource-reference" => {
            let id = arguments.get("resourceId").and_then(Value::as_u64).unwrap_or(1);
            let uri = format!("demo://resource/dynamic/text/{id}");
            let said = format!("Resource {id}: This is a plaintext resource created at 3:08:17 PM");
            json!({ "content": [
                { "type": "text", "text": format!("Returning resource reference for Resource {id}:") },
                { "type": "resource", "resource": { "uri": uri, "mimeType": "text/plain", "text": said } },
                { "type": "text", "text": format!("You can access this resource using the URI: {uri}") },
            ] })
        }
        "search" => {
            let found = json!({ "result": [format!("visit of {}", word("query"))] });
            let mut result = text(found["result"][0].as_str().unwrap_or_default());
            result["structuredContent"] = found;
            result
        }
        "plan_visit" => {
            let mut planned = json!({
                "kind": "short", "notes": null, "options": null, "scale": 1, "extra": null,
            });
            let all = planned.as_object_mut().expect("it is an object");
            all.extend(arguments.clone());
            let mut result = text(&serde_json::to_string_pretty(&planned).unwrap_or_default());
            result["structuredContent"] = planned;
            result
        }
        "trigger-long-running-operation" => {
            let or = |key: &str, other: f64| arguments.get(key).and_then(Value::as_f64).unwrap_or(other);
            let (duration, steps) = (or("duration", 10.0), or("steps", 5.0));
            let done = format!("Long running operation completed. Duration: {duration} seconds, Steps: {steps}.");
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small whole number")]
            return Work::Steps(steps as u64, text(&done));
        }
        "trigger-elicitation-request" => {
            return Work::Asks(json!({
                "message": "Please provide inputs for the following fields:",
                "requestedSchema": serde_json::from_str::<Value>(QUESTION).expect("it is JSON"),
            }));
        }
        "sign-board" => {
            return Work::AsksForNote(json!({
                "message": "Who signs the board? <!channel>",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "name": { "type": "string", "title": "Name", "description": "Your name" },
                        "large": { "type": "boolean", "title": "In large letters" },
                    },
                    "required": ["name"],
                },
            }));
        }
        "list-notes" => text(&match world.notes.is_empty() {
            true => "The board is empty.".to_owned(),
            false => world.notes.join("\n"),
        }),
        "add-note" => {
            for _ in 0..arguments.get("copies").and_then(Value::as_u64).unwrap_or(1) {
                world.notes.push(word("text"));
            }
            text(&format!("Added. There are {} notes now.", world.notes.len()))
        }
        "set-note" => {
            world.notes = vec![word("text")];
            text("It is the only note now.")
        }
        _ => text("Done."),
    })
}

/// Returns the result of the tool that asks the reference server's question.
pub(super) fn answered(answer: &Value) -> Value {
    let raw = format!("\nRaw result: {}", serde_json::to_string_pretty(answer).unwrap_or_default());
    let texts = match answer["action"].as_str() {
        Some("accept") => {
            let mut inputs = String::from("User inputs:");
            let content = &answer["content"];
            if let Some(name) = content["name"].as_str() {
                inputs += &format!("\n- Name: {name}");
            }
            if let Some(check) = content["check"].as_bool() {
                inputs += &format!("\n- Agreed to terms: {check}");
            }
            vec!["✅ User provided the requested information!".to_owned(), inputs]
        }
        Some("decline") => vec!["❌ User declined to provide the requested information.".to_owned()],
        _ => vec!["⚠️ User cancelled the elicitation dialog.".to_owned()],
    };
    let content: Vec<Value> =
        texts.into_iter().chain([raw]).map(|text| json!({ "type": "text", "text": text })).collect();
    json!({ "content": content })
}

/// Stores a note with the name in the answer, and returns the result.
pub(super) fn signed(world: &mut World, answer: &Value) -> Value {
    match answer["action"].as_str() {
        Some("accept") => {
            let name = answer["content"]["name"].as_str().unwrap_or_default();
            let name = if answer["content"]["large"] == true { name.to_uppercase() } else { name.to_owned() };
            world.notes.push(format!("— {name}"));
            text(&format!("Signed by {name}."))
        }
        Some("decline") => {
            world.notes.push("— somebody".to_owned());
            text("Signed without a name.")
        }
        _ => {
            let mut result = text("Not signed.");
            result["isError"] = json!(true);
            result
        }
    }
}
