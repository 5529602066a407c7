//! The routes: they check the role, the confirmation and the arguments, and call the tool.

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

/// The values of the header that count as a confirmation.
const CONFIRMING: [&str; 5] = ["true", "1", "yes", "y", "confirmed"];

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) enum RequestBody {
    /// There is no body.
    Nothing,
    /// The body is not valid JSON.
    Broken,
    /// The body is JSON.
    Json(Value),
}

/// A parsed request.
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
    pub(crate) body: RequestBody,
}

impl Call {
    /// Parses a request.
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
                true => RequestBody::Nothing,
                false => serde_json::from_slice(bytes).map_or(RequestBody::Broken, RequestBody::Json),
            },
        }
    }

    /// Returns the tool that is called, through `call_tool`, MCP or its route.
    pub(crate) fn tool(&self) -> Option<&str> {
        match (&self.body, self.path.as_str()) {
            (RequestBody::Json(body), "/mcp/call_tool") => body["tool"].as_str(),
            (RequestBody::Json(body), "/mcp") => body["params"]["name"].as_str(),
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
            RequestBody::Json(body) => body.clone(),
            RequestBody::Nothing | RequestBody::Broken => Value::Null,
        }
    }

    /// Returns true if the header says that a person confirmed the call.
    pub(crate) fn is_confirmed(&self) -> bool {
        let first = self.confirm.as_deref().and_then(|sent| sent.split(',').next());
        first.is_some_and(|word| CONFIRMING.contains(&word.trim().to_lowercase().as_str()))
    }
}

/// An answer to a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// JSON, or no body.
    Json { status: u16, body: Option<Value>, headers: Vec<(&'static str, String)> },
    /// Plain text.
    Text(String),
    /// The event stream of the job with this id.
    Stream(String),
}

impl Answer {
    /// Creates an answer with JSON.
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self::Json { status, body: Some(body), headers: Vec::new() }
    }

    /// Creates an answer without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Self::Json { status, body: None, headers: Vec::new() }
    }

    /// Creates the answer for a failure.
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

/// A request with the context that is needed to answer it.
pub(crate) struct RequestContext<'a> {
    /// The request.
    pub(crate) call: &'a Call,
    /// The secret with which tokens are signed.
    pub(crate) secret: &'a str,
    /// The maximum number of requests with a token per minute.
    pub(crate) rate_limit: usize,
    /// The caller, once the token is verified.
    pub(crate) caller: Option<Caller>,
}

impl RequestContext<'_> {
    /// Verifies the token.
    pub(crate) fn authenticate(&mut self, world: &mut World) -> Result<Caller, Failure> {
        if !world.counts_request(self.rate_limit) {
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

    /// Verifies the token and checks that the caller has one of these roles.
    pub(crate) fn authorize(&mut self, world: &mut World, roles: &[Role]) -> Result<Caller, Failure> {
        let caller = self.authenticate(world)?;
        if caller.is_any_of(roles) { Ok(caller) } else { Err(Failure::forbidden()) }
    }
}

/// Answers a request.
pub(crate) fn answer(world: &mut World, context: &mut RequestContext<'_>) -> Answer {
    if context.call.path == "/mcp" && world.version == Version::V05 {
        return mcp::answer(world, context);
    }
    let correlation = context.call.correlation.clone();
    route(world, context).unwrap_or_else(|failure| Answer::refused(&failure, &correlation))
}

fn route(world: &mut World, context: &mut RequestContext<'_>) -> Result<Answer, Failure> {
    let call = context.call;
    let segments: Vec<&str> = call.path.trim_start_matches('/').split('/').collect();
    let viewer = Role::ALL;
    match (call.method.as_str(), segments.as_slice()) {
        ("GET", ["health"]) => Ok(Answer::json(
            200,
            json!({
                "status": "ok", "service": "mcp-bridge", "version": world.version.text(),
                "uptimeSeconds": world.now.epoch() - world.started.epoch(),
            }),
        )),
        ("GET", ["metrics"]) => Ok(Answer::Text(pages::metrics(world))),
        ("GET", ["mcp", "capabilities"]) => Ok(Answer::json(200, pages::capabilities(world))),
        ("GET", ["mcp", "list_tools"]) => {
            context.authorize(world, &viewer)?;
            Ok(Answer::json(200, json!({ "tools": pages::tools(world.version) })))
        }
        ("POST", ["mcp", "call_tool"]) => {
            let caller = context.authenticate(world)?;
            call_tool(world, context, &caller)
        }
        ("GET", ["mcp", "resources", "simulations"]) => {
            context.authorize(world, &viewer)?;
            Ok(pages::simulations(world, call))
        }
        ("GET", ["mcp", "resources", "parameters"]) => {
            context.authorize(world, &viewer)?;
            pages::parameters(world, call)
        }
        ("GET", ["audit", "events"]) => {
            context.authorize(world, &[Role::Admin])?;
            Ok(Answer::json(200, pages::audit(world, call)))
        }
        ("GET", ["jobs", job, "events"]) => {
            context.authorize(world, &viewer)?;
            Ok(Answer::Stream((*job).to_owned()))
        }
        ("GET", ["population_results", results, "chunks", chunk]) => {
            context.authorize(world, &viewer)?;
            pages::chunk(world, results, chunk)
        }
        ("GET", ["get_simulation_snapshot"]) => {
            context.authorize(world, &viewer)?;
            let id = call.query("simulationId").unwrap_or_default();
            Ok(Answer::json(200, tools::snapshots::list(world, &id)))
        }
        ("POST", ["get_simulation_results"]) => {
            context.authorize(world, &viewer)?;
            let arguments = checked_body(call, &catalogue::route_schema(&call.path).unwrap_or_default())?;
            Ok(Answer::json(200, tools::route_results(world, &arguments)?))
        }
        ("POST", ["snapshot_simulation"]) => {
            context.authorize(world, &viewer[1..])?;
            let arguments = checked_body(call, &catalogue::route_schema(&call.path).unwrap_or_default())?;
            Ok(Answer::json(201, tools::snapshots::take(world, &arguments)?))
        }
        ("POST", ["restore_simulation"]) => {
            context.authorize(world, &viewer[1..])?;
            let arguments = checked_body(call, &catalogue::route_schema(&call.path).unwrap_or_default())?;
            Ok(Answer::json(200, tools::snapshots::restore(world, &arguments)?))
        }
        ("POST", [name]) if has_route(name) => {
            let tool = catalogue::tool(world.version, name).expect("tools with routes exist in every version");
            let caller = context.authorize(world, &catalogue::roles(tool))?;
            tool_route(world, call, tool, &caller)
        }
        (_, segments) => Ok(no_route(segments)),
    }
}

/// Returns true if the tool has its own route.
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

/// Returns the answer to a request without a route, or with the wrong method for it.
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

/// Returns the body if it conforms to the schema.
fn checked_body(call: &Call, schema: &Value) -> Result<Value, Failure> {
    let body = match &call.body {
        RequestBody::Json(body) => body.clone(),
        RequestBody::Broken => {
            let context = json!({ "error": "Expecting property name enclosed in double quotes" });
            let problem = json!({
                "type": "json_invalid", "loc": ["body", 1], "msg": "JSON decode error", "input": {}, "ctx": context,
            });
            return Err(Failure::bare(422, json!({ "detail": [problem] })));
        }
        RequestBody::Nothing => {
            let problem = json!({ "type": "missing", "loc": ["body"], "msg": "Field required", "input": null });
            return Err(Failure::bare(422, json!({ "detail": [problem] })));
        }
    };
    let issues = arguments::issues(&body, schema);
    if issues.is_empty() { Ok(body) } else { Err(arguments::refuse_body(&issues)) }
}

/// Calls a tool through its own route.
fn tool_route(world: &mut World, call: &Call, tool: &Value, caller: &Caller) -> Result<Answer, Failure> {
    let name = tool["name"].as_str().unwrap_or_default();
    let mut schema = tool["inputSchema"].clone();
    if name == "load_simulation" {
        // The route does not check the length of the id, so the tool fails.
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
        let answer = checked_body(call, &schema).and_then(|arguments| run_route(world, name, &arguments))?;
        world.critical[at].done = true;
        return Ok(answer);
    }
    let arguments = checked_body(call, &schema)?;
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

/// Records a call of a critical tool. Returns its index.
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

/// Calls a tool by its name.
fn call_tool(world: &mut World, context: &RequestContext<'_>, caller: &Caller) -> Result<Answer, Failure> {
    let schema = json!({
        "type": "object", "required": ["tool"],
        "properties": { "tool": { "type": "string" }, "arguments": { "type": "object" } },
    });
    let body = checked_body(context.call, &schema)?;
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
    let (member, header) = (body["critical"] == true, context.call.is_confirmed());
    let (content, echoed) = confirmed_call(world, tool, &arguments, caller, Confirmation { member, header }, key)?;
    let mut annotations = tool["annotations"].clone();
    if let Some(key) = echoed {
        annotations["idempotencyKey"] = json!(key);
    }
    Ok(Answer::json(
        200,
        json!({ "type": "tool_result", "tool": name, "structuredContent": content, "annotations": annotations }),
    ))
}

/// The two ways to confirm a call by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confirmation {
    /// True if the member `critical` confirms it.
    pub(crate) member: bool,
    /// True if the header confirms it.
    pub(crate) header: bool,
}

/// Calls a tool by its name, after its role was checked. Checks the confirmation, the arguments and
/// the idempotency key first. Returns the content, and the key if the tool supports keys.
pub(crate) fn confirmed_call(
    world: &mut World,
    tool: &Value,
    arguments: &Value,
    caller: &Caller,
    confirmation: Confirmation,
    key: Option<&str>,
) -> Result<(Value, Option<String>), Failure> {
    let name = tool["name"].as_str().unwrap_or_default();
    let mut noted = None;
    if tool["annotations"]["critical"] == true {
        let confirmed = match world.version {
            Version::V01 => confirmation.member && confirmation.header,
            Version::V05 => confirmation.member || confirmation.header,
        };
        noted = Some(note_critical(world, name, arguments, caller, confirmed));
        if !confirmed && !confirmation.member {
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

/// Returns the event of the trail for a request and its answer.
pub(crate) fn trail_of(call: &Call, answer: &Answer, caller: Option<&Caller>, millis: f64) -> Value {
    // For pages of resources, the trail does not contain the caller.
    let caller = caller.filter(|_| !call.path.starts_with("/mcp/resources"));
    let identity = caller.map(|caller| {
        json!({
            "isServiceAccount": false, "roles": caller.roles, "subject": caller.subject, "tokenId": caller.token_id,
        })
    });
    let body = match &call.body {
        RequestBody::Json(body) => json!(digest(&body.to_string())),
        RequestBody::Nothing | RequestBody::Broken => Value::Null,
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
