//! The description of the API in OpenAPI 3.1, made from the table of routes and the shapes.

use serde_json::{Map, Value, json};

use super::{Op, ROUTES, Route};
use crate::{problem::PROBLEMS, shape::schema};

/// Returns the description. `url` is the address of the API.
pub fn document(url: &str) -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_lowercase()] = operation(route);
    }
    let slugs: Vec<_> = PROBLEMS.iter().map(|(slug, ..)| format!("urn:countersign:problem:{slug}")).collect();
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Countersign approvals", "version": "1",
            "description": "Programs ask, people decide in Slack, and programs claim the approval of exactly what was shown." },
        "servers": [{ "url": url }],
        "paths": paths,
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer", "description": "A key, csk_…" } },
            "schemas": {
                "Approval": approval(),
                "Problem": { "type": "object", "required": ["type", "title", "status", "detail"], "properties": {
                    "type": { "type": "string", "enum": slugs }, "title": { "type": "string" },
                    "status": { "type": "integer" }, "detail": { "type": "string" }, "state": { "type": "string" },
                    "scope": { "type": "string" },
                    "errors": { "type": "array", "items": { "type": "object", "properties": {
                        "pointer": { "type": "string" }, "detail": { "type": "string" } } } } } },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut parameters = Vec::new();
    if route.path.contains("{id}") {
        parameters.push(json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    let query: Vec<(&str, Value)> = match route.op {
        Op::Look => vec![
            ("wait", json!({ "type": "integer", "minimum": 0, "maximum": 60 })),
            ("after", json!({ "type": "integer", "minimum": 0 })),
        ],
        Op::List => vec![
            ("state", json!({ "type": "string" })),
            ("policy", json!({ "type": "string" })),
            ("limit", json!({ "type": "integer", "minimum": 1, "maximum": 100 })),
            ("cursor", json!({ "type": "string" })),
        ],
        _ => Vec::new(),
    };
    parameters.extend(query.iter().map(|(name, schema)| json!({ "name": name, "in": "query", "schema": schema })));
    if matches!(route.op, Op::Ask | Op::Claim) {
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 255 });
        let required = route.op == Op::Ask;
        let what = match route.op {
            Op::Ask => "A repeat finds the same request. `while-open` stands for the open request for the same change.",
            _ => "A repeat gets the same answer.",
        };
        parameters.push(json!({ "name": "Idempotency-Key", "in": "header", "required": required, "schema": schema,
            "description": what }));
    }
    let answer = match route.op {
        Op::Ask | Op::Look | Op::Cancel | Op::Report => json!({ "$ref": "#/components/schemas/Approval" }),
        Op::List => json!({ "type": "object", "properties": { "next_cursor": { "type": ["string", "null"] },
            "data": { "type": "array", "items": { "$ref": "#/components/schemas/Approval" } } } }),
        Op::Claim => json!({ "type": "object", "properties": { "claim": { "type": "string" },
            "token": { "type": "string" }, "expires_in": { "type": "integer" },
            "approval": { "$ref": "#/components/schemas/Approval" } } }),
        _ => json!({ "type": "object" }),
    };
    let good = |what: &str| json!({ "description": what, "content": { "application/json": { "schema": answer } } });
    let problem = json!({ "description": "A problem (RFC 9457).", "content": { "application/problem+json": {
        "schema": { "$ref": "#/components/schemas/Problem" } } } });
    let mut responses = json!({ "200": good("The answer."), "default": problem });
    if route.op == Op::Ask {
        responses["201"] = good("It was stored.");
        responses["200"]["description"] = json!("It was stored before under the same Idempotency-Key.");
    }
    let mut operation = json!({ "summary": route.what, "responses": responses, "parameters": parameters,
        "operationId": format!("{:?}", route.op).to_lowercase() });
    if let Some(scope) = route.scope {
        operation["security"] = json!([{ "key": [] }]);
        operation["description"] = json!(format!("The key needs the scope {}.", scope.name()));
    }
    if let (Some(members), true) = (route.body, route.method == "POST") {
        operation["requestBody"] = json!({ "required": !members.is_empty(),
            "content": { "application/json": { "schema": schema(members) } } });
    }
    operation
}

fn approval() -> Value {
    let states = countersign_graph::action::Status::ALL.map(|status| status.as_str());
    let text = || json!({ "type": "string" });
    let or_null = || json!({ "type": ["string", "null"] });
    json!({ "type": "object", "properties": {
        "id": text(), "object": { "const": "approval" }, "state": { "type": "string", "enum": states },
        "revision": { "type": "integer" }, "final": { "type": "boolean" }, "execution": { "const": "caller" },
        "policy": { "type": "object", "properties": { "name": text(), "needed": { "type": "integer" }, "approvals": { "type": "integer" } } },
        "title": text(), "reason": or_null(), "change": { "type": "object" }, "links": { "type": "array" },
        "payload_digest": text(), "requested_by": { "type": "object" }, "created_at": text(), "expires_at": text(),
        "decided_at": or_null(), "decisions": { "type": "array", "items": { "type": "object" } }, "replaced_by": or_null(),
        "outcome": { "type": ["object", "null"] }, "url": or_null(), "metadata": { "type": "object" },
    } })
}
