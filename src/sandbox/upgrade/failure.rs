//! Error responses, in the format of each version.
//!
//! Since 6.3, every error has a uniform body that echoes the request. The 6.2 line sends the
//! exception object itself, so the two have only the status in common. Callers name the error; its
//! wording is defined only in this file.

use serde_json::{Value, json};

use super::{Version, validate::Violation};

/// The result of a handler: the JSON body of a 200, or an error response.
pub(crate) type Outcome = Result<Value, Failure>;

/// The `type` of most errors about a request.
const FORMAT: &str = "Parameter not in the correct format";
/// The `type` of errors from queries.
const QUERY: &str = "Query Failed";

/// An error response that is not yet rendered for a version.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The name of the exception.
    name: Option<&'static str>,
    message: String,
    /// The category, which is sent as `type`.
    kind: Option<&'static str>,
    /// The body that the 6.2 line sends.
    old: Value,
    /// True if there is no such route, which every version answers with an HTML page.
    html: bool,
}

impl Failure {
    fn new(
        status: u16,
        name: &'static str,
        message: impl Into<String>,
        kind: Option<&'static str>,
        old: Value,
    ) -> Self {
        Self { status, name: Some(name), message: message.into(), kind, old, html: false }
    }

    /// There is no such route, or not with this method.
    pub(crate) fn no_route(method: &str, path: &str) -> Self {
        Self { html: true, ..Self::new(404, "", format!("Cannot {method} {path}"), None, Value::Null) }
    }

    /// The token is missing or not valid.
    pub(crate) fn unauthorized(method: &str, path: &str) -> Self {
        let message = format!("Authorization is required for request on {method} {path}");
        let old = json!({ "httpCode": 401, "name": "AuthorizationRequiredError", "message": message });
        Self::new(401, "AuthorizationRequiredError", message, Some("User ID not found"), old)
    }

    /// The body violates rules of the validator.
    pub(crate) fn invalid_body(violations: &[Violation]) -> Self {
        Self::invalid("body", violations)
    }

    /// The id in the path is not a UUID.
    pub(crate) fn invalid_params() -> Self {
        Self::invalid("params", &[Violation::new("id", &[("isUuid", "id must be a UUID".to_owned())])])
    }

    fn invalid(what: &str, violations: &[Violation]) -> Self {
        let message = format!("Invalid {what}, check 'errors' property for more info.");
        let errors: Vec<Value> = violations.iter().map(Violation::to_json).collect();
        let old = json!({ "httpCode": 400, "name": "BadRequestError", "message": message, "errors": errors });
        Self::new(400, "BadRequestError", message, Some(FORMAT), old)
    }

    /// The body cannot be read as JSON.
    pub(crate) fn syntax(message: &str) -> Self {
        let old = json!({ "expose": true, "statusCode": 400, "status": 400, "type": "entity.parse.failed" });
        Self::new(400, "SyntaxError", message, None, old)
    }

    /// A business rule rejects the request.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        let message = message.into();
        let old = json!({ "httpCode": 400, "name": "BadRequestError", "message": message });
        Self::new(400, "BadRequestError", message, Some(FORMAT), old)
    }

    /// A client call names a context that is not configured.
    pub(crate) fn unknown_client_context(context: &str) -> Self {
        let message = format!("Invalid app context: {context}");
        Self::new(400, "Error", message, Some(FORMAT), json!({ "type": FORMAT, "httpCode": 400 }))
    }

    /// A segment with this name exists already. This is the only error without the name of an
    /// exception.
    pub(crate) fn segment_exists(name: &str, context: &str) -> Self {
        let message = format!("Segment name {name} already exists in context {context}");
        let old = json!({ "type": FORMAT, "message": message, "httpCode": 400 });
        Self { name: None, ..Self::new(400, "", message, Some(FORMAT), old) }
    }

    /// There is no experiment with this id to read.
    pub(crate) fn experiment_not_found() -> Self {
        let message = "Experiment not found!";
        Self::new(404, "Error", message, Some(QUERY), json!({ "httpCode": 404, "message": message }))
    }

    /// There is nothing with this id to delete.
    pub(crate) fn nothing_to_delete() -> Self {
        let message = "Experiment not found.";
        let old = json!({
            "response": { "message": message, "error": "Not Found", "statusCode": 404 },
            "status": 404, "options": {}, "message": message, "name": "NotFoundException",
        });
        Self::new(404, "NotFoundException", message, None, old)
    }

    /// The server's own code throws an exception that it does not handle.
    pub(crate) fn unhandled_exception(message: impl Into<String>) -> Self {
        Self::new(500, "TypeError", message, None, json!({}))
    }

    /// The database rejects a query; the 6.2 line sends the error of the driver.
    pub(crate) fn database(message: impl Into<String>) -> Self {
        let message = message.into();
        let old = json!({
            "query": "", "parameters": [], "driverError": { "name": "error", "severity": "ERROR" },
            "severity": "ERROR", "type": QUERY,
        });
        Self::new(500, "QueryFailedError", message, Some(QUERY), old)
    }

    /// The database cannot parse an id as a UUID.
    pub(crate) fn not_a_uuid(text: &str) -> Self {
        Self::database(format!("invalid input syntax for type uuid: \"{text}\""))
    }

    /// The same error from code that adds no category.
    pub(crate) fn not_a_uuid_bare(text: &str) -> Self {
        Self { kind: None, ..Self::not_a_uuid(text) }
    }

    /// Conditions cannot be inserted. The 6.2 line inserts them with the ids of the request, and
    /// sends the whole statement if that fails.
    pub(crate) fn condition_insert(documents: Value, code: &'static str, detail: Option<String>) -> Self {
        let mut driver = json!({ "name": "error", "severity": "ERROR", "code": code });
        if let Some(detail) = detail {
            driver["detail"] = json!(detail);
            driver["table"] = json!("experiment_condition");
        }
        let mut old = json!({
            "query": "INSERT INTO \"experiment_condition\"", "parameters": { "conditionDocs": documents },
            "driverError": driver, "type": QUERY,
            "className": "ExperimentConditionRepository", "functionName": "insertConditions",
        });
        for (key, value) in driver.as_object().into_iter().flatten().filter(|(key, _)| *key != "name") {
            old[key] = value.clone();
        }
        Self::new(500, "QueryFailedError", "insertConditions", Some(QUERY), old)
    }

    /// The server throws one of its own exceptions, which may have a category.
    pub(crate) fn error(status: u16, message: impl Into<String>, kind: Option<&'static str>) -> Self {
        let message = message.into();
        let old = json!({ "details": message, "type": kind.unwrap_or(QUERY) });
        Self::new(status, "Error", message, kind, old)
    }

    /// A client call names no user.
    pub(crate) fn no_user() -> Self {
        let old = json!({ "type": "Missing `User-Id` header", "httpCode": 400 });
        Self::new(400, "Error", "User-Id header not found.", Some(FORMAT), old)
    }

    /// A client call names a user that was never initialised.
    pub(crate) fn unknown_user(user: &str) -> Self {
        let kind = "Experiment user not defined";
        Self::new(404, "Error", format!("User not found: {user}"), Some(kind), json!({ "type": kind, "httpCode": 404 }))
    }

    /// The same error in the older client calls.
    pub(crate) fn unknown_user_v5(user: &str) -> Self {
        let message = format!("Experiment User not found: {user}");
        Self::new(404, "Error", message, Some(QUERY), json!({ "type": QUERY, "httpCode": 404 }))
    }

    /// Returns the HTML page for a route that does not exist, or `None` if the body is JSON.
    pub(crate) fn page(&self) -> Option<String> {
        self.html.then(|| {
            format!(
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Error</title>\n\
                 </head>\n<body>\n<pre>{}</pre>\n</body>\n</html>\n",
                self.message
            )
        })
    }

    /// Returns the JSON body. `request` is the body of the request, which 6.3 and later echo.
    pub(crate) fn body(&self, version: Version, path: &str, request: &Value) -> Value {
        if version == Version::V6_2 {
            return self.old.clone();
        }
        let echo = if request.is_null() { json!({}) } else { request.clone() };
        let mut body = json!({ "message": self.message, "endPoint": path, "errorCode": self.status, "request": echo });
        if let Some(name) = self.name {
            body["name"] = json!(name);
        }
        if let Some(kind) = self.kind {
            body["type"] = json!(kind);
        }
        body
    }
}
