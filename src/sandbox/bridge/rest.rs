//! Routes: who may, whether it is confirmed, the shape of the arguments, and then the tool.

use axum::{
    body::Bytes,
    http::{HeaderMap, Method, Uri},
};
use serde_json::{Value, json};

use super::{
    CriticalCall, Role, Version, arguments, catalogue,
    failure::Failure,
    mcp, pages,
    server::correlation,
    token::{self, Caller},
    tools::{self, Via},
    world::{World, digest},
};

/// The words in the header that count as a confirmation.
const CONFIRMING: [&str; 5] = ["true", "1", "yes", "y", "confirmed"];

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) enum Sent {
    /// There is none.
    Nothing,
    /// It is no JSON.
    Broken,
    /// It is JSON.
    Json(Value),
}

/// A request as the routes see it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) authorization: Option<String>,
    pub(crate) confirm: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) if_none_match: Option<String>,
    pub(crate) correlation: String,
    pub(crate) body: Sent,
}

impl Call {
    /// Reads a request.
    pub(crate) fn read(method: &Method, uri: &Uri, headers: &HeaderMap, bytes: &Bytes) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self {
            method: method.to_string(),
            path: uri.path().to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
            authorization: text("authorization"),
            confirm: text("x-mcp-confirm"),
            protocol: text("mcp-protocol-version"),
            if_none_match: text("if-none-match"),
            correlation: correlation(headers),
            body: match bytes.is_empty() {
                true => Sent::Nothing,
                false => serde_json::from_slice(bytes).map_or(Sent::Broken, Sent::Json),
            },
        }
    }

    /// Returns the tool that is called, on its own route or another way.
    pub(crate) fn tool(&self) -> Option<&str> {
        match (&self.body, self.path.as_str()) {
            (Sent::Json(body), "/mcp/call_tool") => body["tool"].as_str(),
            (Sent::Json(body), "/mcp") => body["params"]["name"].as_str(),
            (_, path) => catalogue::tool(Version::V05, path.strip_prefix('/')?)?["name"].as_str(),
        }
    }

    /// Returns a parameter of the query.
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        let found = url::form_urlencoded::parse(self.query.as_bytes()).find(|(own, _)| own == name);
        found.map(|(_, value)| value.into_owned())
    }

    fn body(&self) -> Value {
        match &self.body {
            Sent::Json(body) => body.clone(),
            Sent::Nothing | Sent::Broken => Value::Null,
        }
    }

    /// Returns true if the header says that a person confirmed the call.
    pub(crate) fn is_confirmed(&self) -> bool {
        let first = self.confirm.as_deref().and_then(|sent| sent.split(',').next());
        first.is_some_and(|word| CONFIRMING.contains(&word.trim().to_lowercase().as_str()))
    }
}

/// An answer before it is put on the wire.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// JSON, or no body at all.
    Json { status: u16, body: Option<Value>, headers: Vec<(&'static str, String)> },
    /// Plain text.
    Text(String),
    /// The events of a job.
    Stream(String),
}

impl Answer {
    /// Answers with JSON.
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self::Json { status, body: Some(body), headers: Vec::new() }
    }

    /// Answers without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Self::Json { status, body: None, headers: Vec::new() }
    }

    /// Refuses.
    pub(crate) fn refused(failure: &Failure, correlation: &str) -> Self {
        Self::json(failure.status, failure.body(correlation))
    }

    fn status(&self) -> u16 {
        match self {
            Self::Json { status, .. } => *status,
            Self::Text(_) | Self::Stream(_) => 200,
        }
    }
}

/// A request with what it takes to answer it.
pub(crate) struct Asked<'a> {
    /// The request.
    pub(crate) call: &'a Call,
    /// The secret of the tokens.
    pub(crate) secret: &'a str,
    /// Counts a request and returns true if it is within the limit.
    pub(crate) within_limit: &'a dyn Fn() -> bool,
    /// The seconds since the start.
    pub(crate) uptime: f64,
    /// The caller, once the token was read.
    pub(crate) caller: Option<Caller>,
}

impl Asked<'_> {
    /// Reads the token.
    pub(crate) fn authenticate(&mut self, world: &mut World) -> Result<Caller, Failure> {
        if !(self.within_limit)() {
            return Err(Failure::of_status(429));
        }
        let now = world.now.0.div_euclid(1_000_000);
        let caller = token::read(self.call.authorization.as_deref(), self.secret, now)?;
        if let Some(id) = &caller.token_id
            && !world.used_tokens.insert(id.clone())
        {
            return Err(Failure::unauthorized("Token replay detected"));
        }
        self.caller = Some(caller.clone());
        Ok(caller)
    }

    /// Reads the token and asks for one of the roles.
    pub(crate) fn authorize(&mut self, world: &mut World, roles: &[Role]) -> Result<Caller, Failure> {
        let caller = self.authenticate(world)?;
        if caller.is_any_of(roles) { Ok(caller) } else { Err(Failure::forbidden()) }
    }
}

/// Answers a request.
pub(crate) fn answer(world: &mut World, asked: &mut Asked<'_>) -> Answer {
    if asked.call.path == "/mcp" && world.version == Version::V05 {
        return mcp::answer(world, asked);
    }
    let correlation = asked.call.correlation.clone();
    route(world, asked).unwrap_or_else(|failure| Answer::refused(&failure, &correlation))
}

fn route(world: &mut World, asked: &mut Asked<'_>) -> Result<Answer, Failure> {
    let call = asked.call;
    let segments: Vec<&str> = call.path.trim_start_matches('/').split('/').collect();
    let viewer = Role::ALL;
    match (call.method.as_str(), segments.as_slice()) {
        ("GET", ["health"]) => Ok(Answer::json(
            200,
            json!({
                "status": "ok", "service": "mcp-bridge", "version": world.version.text(), "uptimeSeconds": asked.uptime,
            }),
        )),
        ("GET", ["metrics"]) => Ok(Answer::Text(pages::metrics(world))),
        ("GET", ["mcp", "capabilities"]) => Ok(Answer::json(200, pages::capabilities(world))),
        ("GET", ["mcp", "list_tools"]) => {
            asked.authorize(world, &viewer)?;
            Ok(Answer::json(200, json!({ "tools": pages::tools(world.version) })))
        }
        ("POST", ["mcp", "call_tool"]) => {
            let caller = asked.authenticate(world)?;
            call_tool(world, asked, &caller)
        }
        ("GET", ["mcp", "resources", "simulations"]) => {
            asked.authorize(world, &viewer)?;
            Ok(pages::simulations(world, call))
        }
        ("GET", ["mcp", "resources", "parameters"]) => {
            asked.authorize(world, &viewer)?;
            pages::parameters(world, call)
        }
        ("GET", ["audit", "events"]) => {
            asked.authorize(world, &[Role::Admin])?;
            Ok(Answer::json(200, pages::audit(world, call)))
        }
        ("GET", ["jobs", job, "events"]) => {
            asked.authorize(world, &viewer)?;
            Ok(Answer::Stream((*job).to_owned()))
        }
        ("GET", ["population_results", results, "chunks", chunk]) => {
            asked.authorize(world, &viewer)?;
            pages::chunk(world, results, chunk)
        }
        ("GET", ["get_simulation_snapshot"]) => {
            asked.authorize(world, &viewer)?;
            let id = call.query("simulationId").unwrap_or_default();
            Ok(Answer::json(200, tools::snapshots::list(world, &id)))
        }
        ("POST", ["get_simulation_results"]) => {
            asked.authorize(world, &viewer)?;
            let arguments = shaped(call, &catalogue::route_schema(&call.path).unwrap_or_default())?;
            Ok(Answer::json(200, tools::route_results(world, &arguments)?))
        }
        ("POST", ["snapshot_simulation"]) => {
            asked.authorize(world, &viewer[1..])?;
            let arguments = shaped(call, &catalogue::route_schema(&call.path).unwrap_or_default())?;
            Ok(Answer::json(201, tools::snapshots::take(world, &arguments)?))
        }
        ("POST", ["restore_simulation"]) => {
            asked.authorize(world, &viewer[1..])?;
            let arguments = shaped(call, &catalogue::route_schema(&call.path).unwrap_or_default())?;
            Ok(Answer::json(200, tools::snapshots::restore(world, &arguments)?))
        }
        ("POST", [name]) if has_route(name) => {
            let tool = catalogue::tool(world.version, name).expect("every version has the tools with routes");
            let caller = asked.authorize(world, &catalogue::roles(tool))?;
            tool_route(world, call, tool, &caller)
        }
        (_, segments) => Ok(no_route(segments)),
    }
}

/// The tools with a route of their own.
fn has_route(name: &str) -> bool {
    matches!(
        name,
        "load_simulation"
            | "list_parameters"
            | "get_parameter_value"
            | "set_parameter_value"
            | "run_simulation"
            | "get_job_status"
            | "cancel_job"
            | "calculate_pk_parameters"
            | "run_population_simulation"
            | "get_population_results"
    )
}

/// Answers a request that has no route, or one for another method.
fn no_route(segments: &[&str]) -> Answer {
    let allowed = match segments {
        ["health" | "metrics" | "get_simulation_snapshot"] => "GET",
        ["mcp", "list_tools" | "capabilities"] | ["audit", "events"] | ["jobs", _, "events"] => "GET",
        ["get_simulation_results" | "snapshot_simulation" | "restore_simulation"] | ["mcp", "call_tool"] => "POST",
        [name] if has_route(name) => "POST",
        _ => return Answer::json(404, json!({ "detail": "Not Found" })),
    };
    Answer::Json {
        status: 405,
        body: Some(json!({ "detail": "Method Not Allowed" })),
        headers: vec![("allow", allowed.to_owned())],
    }
}

/// Returns the body if it has the shape that a route asks for.
fn shaped(call: &Call, schema: &Value) -> Result<Value, Failure> {
    let body = match &call.body {
        Sent::Json(body) => body.clone(),
        Sent::Broken => {
            let context = json!({ "error": "Expecting property name enclosed in double quotes" });
            let problem = json!({
                "type": "json_invalid", "loc": ["body", 1], "msg": "JSON decode error", "input": {}, "ctx": context,
            });
            return Err(Failure::bare(422, json!({ "detail": [problem] })));
        }
        Sent::Nothing => {
            let problem = json!({ "type": "missing", "loc": ["body"], "msg": "Field required", "input": null });
            return Err(Failure::bare(422, json!({ "detail": [problem] })));
        }
    };
    let issues = arguments::issues(&body, schema);
    if issues.is_empty() { Ok(body) } else { Err(arguments::refuse_body(&issues)) }
}

/// Calls a tool on its own route.
fn tool_route(world: &mut World, call: &Call, tool: &Value, caller: &Caller) -> Result<Answer, Failure> {
    let name = tool["name"].as_str().unwrap_or_default();
    let mut schema = tool["inputSchema"].clone();
    if name == "load_simulation" {
        // The route leaves the length of the id to the tool, which fails.
        schema["properties"]["simulationId"] = json!({});
    }
    let body = call.body();
    if tool["annotations"]["critical"] == true {
        let in_body = world.version == Version::V05 && body["confirm"] == true;
        let confirmed = call.is_confirmed() || in_body;
        let at = note_critical(world, name, &body, caller, confirmed);
        if !confirmed {
            let hint = match world.version {
                Version::V01 => "Include 'X-MCP-Confirm: true' after obtaining user approval.",
                Version::V05 => {
                    "Set 'confirm': true in the request payload or include the 'X-MCP-Confirm' header after obtaining \
                     user approval."
                }
            };
            return Err(Failure::unconfirmed("Critical tool call requires explicit confirmation.", hint));
        }
        let answer = shaped(call, &schema).and_then(|arguments| run_route(world, name, &arguments))?;
        world.critical[at].done = true;
        return Ok(answer);
    }
    let arguments = shaped(call, &schema)?;
    run_route(world, name, &arguments)
}

fn run_route(world: &mut World, name: &str, arguments: &Value) -> Result<Answer, Failure> {
    let long = arguments["simulationId"].as_str().is_some_and(|id| id.chars().count() > 64);
    if name == "load_simulation" && (long || arguments["simulationId"] == "") {
        return Err(Failure::internal());
    }
    let status = match name {
        "load_simulation" => 201,
        "run_simulation" | "run_population_simulation" => 202,
        _ => 200,
    };
    Ok(Answer::json(status, tools::call(world, name, arguments, Via::Route)?))
}

/// Notes a call of a critical tool. Returns its place.
pub(crate) fn note_critical(
    world: &mut World,
    tool: &str,
    arguments: &Value,
    caller: &Caller,
    confirmed: bool,
) -> usize {
    let mut arguments = arguments.clone();
    if let Some(fields) = arguments.as_object_mut() {
        fields.remove("confirm");
    }
    world.critical.push(CriticalCall {
        tool: tool.to_owned(),
        digest: digest(&arguments.to_string()),
        arguments,
        subject: caller.subject.clone(),
        confirmed,
        done: false,
    });
    world.critical.len() - 1
}

/// Calls any tool by its name.
fn call_tool(world: &mut World, asked: &Asked<'_>, caller: &Caller) -> Result<Answer, Failure> {
    let schema = json!({
        "type": "object", "required": ["tool"],
        "properties": { "tool": { "type": "string" }, "arguments": { "type": "object" } },
    });
    let body = shaped(asked.call, &schema)?;
    let name = body["tool"].as_str().unwrap_or_default();
    let unknown = || Failure::not_found(format!("Tool '{name}' is not registered")).at("tool");
    let tool = catalogue::tool(world.version, name).ok_or_else(unknown)?;
    let roles = catalogue::roles(tool);
    if !caller.is_any_of(&roles) {
        let named: Vec<&str> = roles.iter().map(|role| role.name()).collect();
        return Err(Failure::forbidden().hint(format!("Required roles: {}", named.join(", "))));
    }
    let arguments = if body["arguments"].is_null() { json!({}) } else { body["arguments"].clone() };
    let key = body["idempotencyKey"].as_str();
    let (member, header) = (body["critical"] == true, asked.call.is_confirmed());
    let (content, echoed) = confirmed_call(world, tool, &arguments, caller, Said { member, header }, key)?;
    let mut annotations = tool["annotations"].clone();
    if let Some(key) = echoed {
        annotations["idempotencyKey"] = json!(key);
    }
    Ok(Answer::json(
        200,
        json!({ "type": "tool_result", "tool": name, "structuredContent": content, "annotations": annotations }),
    ))
}

/// The two ways in which a call by name says that it is confirmed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    /// The member `critical`.
    pub(crate) member: bool,
    /// The header.
    pub(crate) header: bool,
}

/// Calls a tool by its name after the role was settled: confirmation, shape, a call that was made before, the tool.
/// Returns the content, with the key if the tool knows keys.
pub(crate) fn confirmed_call(
    world: &mut World,
    tool: &Value,
    arguments: &Value,
    caller: &Caller,
    said: Said,
    key: Option<&str>,
) -> Result<(Value, Option<String>), Failure> {
    let name = tool["name"].as_str().unwrap_or_default();
    let mut noted = None;
    if tool["annotations"]["critical"] == true {
        let confirmed = match world.version {
            Version::V01 => said.member && said.header,
            Version::V05 => said.member || said.header,
        };
        noted = Some(note_critical(world, name, arguments, caller, confirmed));
        if !confirmed && !said.member {
            let message = "Critical tools must be invoked with critical=true.";
            let hint = "Set 'critical': true in the request payload before calling this tool.";
            return Err(Failure::unconfirmed(message, hint));
        }
        if !confirmed {
            let hint = "Include 'X-MCP-Confirm: true' after obtaining user approval.";
            return Err(Failure::unconfirmed("Critical tool call requires explicit confirmation.", hint));
        }
    }
    if let Some(issue) = arguments::issues(arguments, &tool["inputSchema"]).first() {
        return Err(arguments::refuse_call(issue));
    }
    let key = key.filter(|_| matches!(name, "run_simulation" | "run_population_simulation"));
    let payload = digest(&format!("{name} {arguments}"));
    if let Some((before, job)) = key.and_then(|key| world.keys.get(key)).cloned() {
        if before != payload {
            let message = format!("Idempotency key reused with different payload for {name}");
            let hint = "Reuse the same payload for this key or choose a new idempotency key.";
            return Err(Failure::conflict(message).at("Idempotency-Key").hint(hint));
        }
        if let Some(answer) = tools::again(world, &job) {
            return Ok((answer, key.map(str::to_owned)));
        }
    }
    let content = tools::call(world, name, arguments, Via::Call)?;
    if let (Some(key), Some(job)) = (key, content["jobId"].as_str()) {
        world.keys.insert(key.to_owned(), (payload, job.to_owned()));
    }
    if let Some(at) = noted {
        world.critical[at].done = true;
    }
    Ok((content, key.map(str::to_owned)))
}

/// Returns the line of the trail for a request and its answer.
pub(crate) fn trail_of(call: &Call, answer: &Answer, caller: Option<&Caller>, millis: f64) -> Value {
    // Pages of resources do not tell the trail who asked.
    let caller = caller.filter(|_| !call.path.starts_with("/mcp/resources"));
    let identity = caller.map(|caller| {
        json!({
            "isServiceAccount": false, "roles": caller.roles, "subject": caller.subject, "tokenId": caller.token_id,
        })
    });
    let body = match &call.body {
        Sent::Json(body) => json!(digest(&body.to_string())),
        Sent::Nothing | Sent::Broken => Value::Null,
    };
    json!({
        "correlationId": call.correlation,
        "eventType": format!("http.mcp.{}", call.path.trim_matches('/').replace('/', ".")),
        "identity": identity,
        "request": {
            "bodyDigest": body, "method": call.method, "path": call.path, "payload": null,
            "query": (!call.query.is_empty()).then_some(&call.query),
        },
        "response": { "durationMs": millis, "status": answer.status() },
    })
}
