//! MCP in the newer version: one JSON-RPC request per `POST`, a plain JSON answer, no sessions and
//! no server messages.

use serde_json::{Value, json};

use super::{
    Role, catalogue,
    failure::Failure,
    models, pages,
    rest::{Answer, Call, Confirmation, RequestBody, RequestContext, confirmed_call},
    world::World,
};

/// The versions of the protocol, newest first.
const VERSIONS: [&str; 2] = ["2025-11-25", "2025-03-26"];

/// An error of JSON-RPC.
struct Error {
    status: u16,
    code: i64,
    message: String,
    data: Option<Value>,
}

impl Error {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { status: 200, code, message: message.into(), data: None }
    }

    /// Returns the error of MCP for a failure. The unexpected codes are the bridge's.
    fn of(failure: &Failure) -> Self {
        match failure.status {
            403 => Self::new(-32001, failure.message.clone()),
            409 | 428 | 502..=504 => Self::new(-32002, failure.message.clone()),
            404 => Self::new(-32601, failure.message.clone()),
            status => Self {
                status: 500,
                data: Some(json!(format!("{status}: {}", failure.message))),
                ..Self::new(-32603, "Internal error")
            },
        }
    }

    fn answer(self, id: Option<&Value>) -> Answer {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = self.data {
            error["data"] = data;
        }
        let mut body = json!({ "jsonrpc": "2.0", "error": error });
        if let Some(id) = id {
            body["id"] = id.clone();
        }
        Answer::json(self.status, body)
    }
}

/// Returns an error response without handling the request.
pub(crate) fn refused(failure: &Failure, call: &Call) -> Answer {
    let id = match &call.body {
        RequestBody::Json(request) => request.get("id"),
        RequestBody::Nothing | RequestBody::Broken => None,
    };
    Error::of(failure).answer(id)
}

/// Answers a request to the MCP endpoint.
pub(crate) fn answer(world: &mut World, context: &mut RequestContext<'_>) -> Answer {
    if context.call.method != "POST" {
        return Answer::empty(405);
    }
    let refuse = |code, message: &str| Error { status: 400, ..Error::new(code, message) }.answer(None);
    let request = match &context.call.body {
        RequestBody::Json(Value::Array(_)) => return refuse(-32600, "Batch requests are not supported"),
        RequestBody::Json(request) if request.is_object() => request.clone(),
        RequestBody::Json(_) => return refuse(-32600, "Invalid request"),
        RequestBody::Nothing | RequestBody::Broken => return refuse(-32700, "Invalid JSON payload"),
    };
    let method = request["method"].as_str().unwrap_or_default();
    if method != "initialize"
        && let Some(version) = context.call.protocol.as_deref().filter(|version| !VERSIONS.contains(version))
    {
        let mut supported = VERSIONS;
        supported.reverse();
        let data = Some(json!({ "requested": version, "supported": supported }));
        return Error { status: 400, data, ..Error::new(-32602, "Unsupported MCP protocol version") }.answer(None);
    }
    if method.starts_with("notifications/") {
        return Answer::empty(202);
    }
    let id = request.get("id");
    match respond(world, context, method, &request["params"]) {
        Ok(result) => Answer::json(200, json!({ "jsonrpc": "2.0", "id": id, "result": result })),
        Err(error) => error.answer(id),
    }
}

fn respond(world: &mut World, context: &mut RequestContext<'_>, method: &str, params: &Value) -> Result<Value, Error> {
    if method == "initialize" {
        return Ok(initialized(params));
    }
    let caller = context.authenticate(world).map_err(|failure| Error::of(&failure))?;
    let may = |roles: &[Role]| caller.is_any_of(roles);
    if !may(&Role::ALL) {
        return Err(Error::of(&Failure::forbidden()));
    }
    match method {
        "tools/list" => {
            let tools = catalogue::tools(world.version).iter().filter(|tool| may(&catalogue::roles(tool)));
            Ok(json!({ "tools": tools.collect::<Vec<_>>() }))
        }
        "tools/call" => {
            let Some(name) = params["name"].as_str() else {
                return Err(Error::new(-32602, "Tool 'name' is required"));
            };
            let Some(tool) = catalogue::tool(world.version, name) else {
                return Err(Error::new(-32601, format!("Tool '{name}' is not registered")));
            };
            if !may(&catalogue::roles(tool)) {
                return Err(Error::of(&Failure::forbidden()));
            }
            let arguments = if params["arguments"].is_null() { json!({}) } else { params["arguments"].clone() };
            let confirmation = Confirmation { member: params["critical"] == true, header: context.call.is_confirmed() };
            let key = params["idempotencyKey"].as_str();
            match confirmed_call(world, tool, &arguments, &caller, confirmation, key) {
                Ok((content, key)) => {
                    let mut annotations = tool["annotations"].clone();
                    if let Some(key) = key {
                        annotations["idempotencyKey"] = json!(key);
                    }
                    Ok(json!({
                        "content": [text(&content)], "isError": false, "structuredContent": content,
                        "annotations": annotations,
                    }))
                }
                Err(failure) if matches!(failure.status, 400 | 422) => {
                    let mut error = json!({ "code": failure.code, "message": failure.message });
                    if let Some(details) = failure.details() {
                        error["details"] = details;
                    }
                    let content = json!({ "error": error });
                    Ok(json!({ "content": [text(&content)], "isError": true, "structuredContent": content }))
                }
                Err(failure) => Err(Error::of(&failure)),
            }
        }
        "resources/list" => Ok(json!({ "resources": catalogue::resources()["resources"] })),
        "resources/templates/list" => Ok(json!({ "resourceTemplates": catalogue::resources()["templates"] })),
        "resources/read" => read(world, params["uri"].as_str().unwrap_or_default()),
        "prompts/list" => Ok(json!({ "prompts": [] })),
        other => Err(Error::new(-32601, format!("Method not found: {other}"))),
    }
}

fn initialized(params: &Value) -> Value {
    let wanted = params["protocolVersion"].as_str();
    let version = VERSIONS.into_iter().find(|version| wanted == Some(version)).unwrap_or(VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "serverInfo": {
            "name": "mcp-bridge", "title": "PBPK MCP Server", "version": "0.5.0",
            "description": "PBPK model discovery, simulation, qualification, and reporting server.",
        },
        "capabilities": { "tools": { "listChanged": false }, "resources": { "listChanged": false } },
        "instructions": "Use tools for PBPK workflows. Published artifacts and live catalogs are also available as MCP \
                         resources using pbpk:// URIs; legacy REST helper endpoints remain available.",
    })
}

fn text(content: &Value) -> Value {
    json!({ "type": "text", "text": format!("{content:#}") })
}

fn read(world: &World, uri: &str) -> Result<Value, Error> {
    let unknown = || Error::new(-32601, format!("Resource '{uri}' not found"));
    let body = match uri.strip_prefix("pbpk://").ok_or_else(unknown)? {
        "simulations" => json!({ "items": pages::simulation_rows(world) }),
        "models" => {
            let rows = models::DEMOS.iter().map(|demo| json!({ "filePath": demo.path, "displayName": demo.title }));
            json!({ "items": rows.collect::<Vec<_>>() })
        }
        rest => match rest.strip_prefix("parameters/") {
            Some(id) => {
                let rows = pages::parameter_rows(world, id).ok_or_else(unknown)?;
                json!({ "items": rows, "simulationId": id })
            }
            None => {
                let listed = catalogue::resources()["resources"].as_array().into_iter().flatten();
                let found = listed.into_iter().find(|own| own["uri"] == uri).ok_or_else(unknown)?;
                json!({ "title": found["title"], "description": found["description"] })
            }
        },
    };
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": "application/json", "text": format!("{body:#}") }] }))
}
