//! The interpretation of the bridge's answers, which are untrusted data.
//!
//! The HTTP status decides: `code` and `retryable` in the body are unreliable (a rate limit says `InternalError`).
//! Texts are shortened and stripped of control characters before they are passed on.

use countersign_services::http::{Answer, Lost};
use reqwest::StatusCode;
use serde_json::Value;

use super::error::Error;

/// The maximum length of a text of the bridge that is passed on, in characters.
const MAX_TEXT: usize = 300;
/// The maximum number of problems that are passed on.
const MAX_PROBLEMS: usize = 8;

/// The prefixes of messages that report an engine failure as a bad request.
const ENGINE_FAILURES: &[&str] = &["InteropError", "EnvironmentMissing", "Timeout"];

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A read: it may be repeated freely.
    Read,
    /// A change: it is sent once.
    Write,
}

/// Returns the body of a successful answer, or the error that an answer reports.
///
/// # Errors
///
/// [`Error`], by status.
pub fn understand(kind: Kind, answer: Answer) -> Result<Value, Error> {
    let Answer { status, body, .. } = answer;
    let json = serde_json::from_slice::<Value>(&body).ok();
    if status.is_success() {
        return json.ok_or_else(|| unreadable(kind, "it is not JSON"));
    }
    tracing::info!(http.status = status.as_u16(), "The bridge answered with an error");
    let is_web_page = json.is_none();
    let body = json.unwrap_or_default();
    let said = message(&body);
    let gateway = |reason: String| match kind {
        Kind::Read => Error::Unavailable { reason },
        Kind::Write => Error::NoAnswer { reason },
    };
    Err(match status {
        StatusCode::UNAUTHORIZED => Error::Auth { reason: said },
        StatusCode::FORBIDDEN => Error::Forbidden,
        StatusCode::NOT_FOUND if is_web_page || body["error"].is_null() => {
            Error::Decode { reason: "it has nothing at this address; check simulation.url".to_owned() }
        }
        StatusCode::NOT_FOUND => Error::NotFound { reason: said },
        StatusCode::CONFLICT => Error::Conflict { reason: said },
        StatusCode::PRECONDITION_REQUIRED => Error::NotConfirmed,
        StatusCode::TOO_MANY_REQUESTS => Error::Busy,
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => refused(&body),
        // In MCP, a missing token is reported with status 500.
        StatusCode::INTERNAL_SERVER_ERROR
            if text(&body["error"]["data"]).is_some_and(|data| data.starts_with("401")) =>
        {
            Error::Auth { reason: said }
        }
        StatusCode::INTERNAL_SERVER_ERROR => Error::Faulted { reason: said },
        _ if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
            gateway(format!("it answered {}", status.as_u16()))
        }
        _ => Error::Decode { reason: format!("it answered {}", status.as_u16()) },
    })
}

/// Returns the data of an answer to `call_tool`.
///
/// # Errors
///
/// [`Error::Decode`] if there is none.
pub fn of_call_tool(kind: Kind, mut body: Value) -> Result<Value, Error> {
    match body.get_mut("structuredContent").map(Value::take) {
        Some(content) if content.is_object() => Ok(content),
        _ => Err(unreadable(kind, "it has no structuredContent")),
    }
}

/// Returns the data of a successful answer to MCP's `tools/call`, or the error in it.
///
/// # Errors
///
/// [`Error`], by the code of the error, or by its message if the code has several meanings.
pub fn of_mcp(kind: Kind, mut body: Value) -> Result<Value, Error> {
    if !body["error"].is_null() {
        let said = body["error"]["message"].as_str().map(shortened).unwrap_or_default();
        return Err(match body["error"]["code"].as_i64() {
            Some(-32001) => Error::Forbidden,
            Some(-32002) if said.contains("critical") || said.contains("confirmation") => Error::NotConfirmed,
            Some(-32002) => Error::Conflict { reason: said },
            Some(-32601) => Error::NotFound { reason: said },
            Some(-32602) => Error::Invalid { problems: vec![said] },
            _ => Error::Faulted { reason: said },
        });
    }
    let result = &mut body["result"];
    let is_error = result["isError"] == true;
    match result.get_mut("structuredContent").map(Value::take) {
        Some(content) if is_error => Err(refused(&content)),
        Some(content) if content.is_object() => Ok(content),
        _ => Err(unreadable(kind, "it has no structuredContent")),
    }
}

/// Returns the error for a call that was not answered.
pub fn unanswered(kind: Kind, lost: Lost) -> Error {
    match (kind, lost) {
        (_, Lost::NotSent { reason }) | (Kind::Read, Lost::NoAnswer { reason, .. }) => Error::Unavailable { reason },
        (Kind::Write, Lost::NoAnswer { reason, .. } | Lost::TooLong { reason }) => Error::NoAnswer { reason },
        (Kind::Read, Lost::TooLong { reason }) => Error::Decode { reason },
        (_, Lost::RunOut) => Error::NoAnswer { reason: "it wasn't sent in time".to_owned() },
    }
}

/// Returns the error for a successful answer that cannot be read. A change is then read back.
pub fn unreadable(kind: Kind, why: &str) -> Error {
    match kind {
        Kind::Read => Error::Decode { reason: why.to_owned() },
        Kind::Write => Error::NoAnswer { reason: format!("its answer couldn't be read: {why}") },
    }
}

/// Returns the error for a refused request: an invalid argument, unless its message reports an engine failure.
fn refused(body: &Value) -> Error {
    let said = message(body);
    if let Some(reason) = ENGINE_FAILURES.iter().find_map(|code| said.strip_prefix(code)) {
        return Error::Engine { reason: reason.trim_start_matches([':', ' ']).to_owned() };
    }
    if said.to_lowercase().contains("not found") {
        return Error::NotFound { reason: said };
    }
    let of_framework = body["detail"].as_array().into_iter().flatten();
    let listed = of_framework.filter_map(|problem| {
        let place = problem["loc"].as_array().and_then(|loc| loc.last()).map(|at| at.to_string().replace('"', ""));
        Some(shortened(&format!("{}: {}", place?, problem["msg"].as_str()?)))
    });
    let mut problems: Vec<String> = listed.take(MAX_PROBLEMS).collect();
    if problems.is_empty() {
        problems.push(said);
    }
    Error::Invalid { problems }
}

/// Returns the message of an error, without the code that some messages begin with.
fn message(body: &Value) -> String {
    let said = text(&body["error"]["message"]).or_else(|| text(&body["detail"])).unwrap_or_default();
    let said = ["NotFound: ", "InvalidInput: "].iter().find_map(|code| said.strip_prefix(code)).unwrap_or(said);
    shortened(said.strip_prefix("Value error, ").unwrap_or(said))
}

fn text(value: &Value) -> Option<&str> {
    value.as_str()
}

/// Returns a text of the bridge in a form that may be shown: on one line, at most [`MAX_TEXT`] characters.
pub fn shortened(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match plain.char_indices().nth(MAX_TEXT) {
        None => plain,
        Some((end, _)) => format!("{}…", &plain[..end]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answered(status: u16, body: &Value) -> Error {
        let status = StatusCode::from_u16(status).unwrap();
        understand(Kind::Write, Answer { status, body: body.to_string().into(), request_id: None, retry_after: None })
            .unwrap_err()
    }

    fn enveloped(code: &str, message: &str) -> Value {
        json!({ "error": { "code": code, "message": message, "correlationId": "x", "retryable": false } })
    }

    #[test]
    fn the_status_decides_and_not_the_code() {
        assert_eq!(answered(429, &enveloped("InternalError", "Rate limit exceeded")), Error::Busy);
        let replayed = answered(401, &enveloped("InternalError", "Token replay detected"));
        assert_eq!(replayed, Error::Auth { reason: "Token replay detected".to_owned() });
        assert_eq!(answered(428, &enveloped("ConfirmationRequired", "…")), Error::NotConfirmed);
        assert_eq!(answered(502, &json!("Bad gateway")), Error::NoAnswer { reason: "it answered 502".to_owned() });
    }

    #[test]
    fn an_engine_failure_in_a_bad_request_is_told_apart_from_a_bad_argument() {
        let folded = enveloped("InvalidInput", "InteropError: ospsuite raised: unexpected end of file");
        assert_eq!(
            answered(400, &folded),
            Error::Engine { reason: "ospsuite raised: unexpected end of file".to_owned() }
        );
        let bad = enveloped("InvalidInput", "Value error, Invalid parameter path");
        assert_eq!(answered(400, &bad), Error::Invalid { problems: vec!["Invalid parameter path".to_owned()] });
        let gone = enveloped("InvalidInput", "NotFound: Results not found");
        assert_eq!(answered(400, &gone), Error::NotFound { reason: "Results not found".to_owned() });
        let shape = json!({ "detail": [{ "type": "missing", "loc": ["body", "filePath"], "msg": "Field required" }] });
        assert_eq!(answered(422, &shape), Error::Invalid { problems: vec!["filePath: Field required".to_owned()] });
    }

    #[test]
    fn errors_of_mcp_are_told_apart() {
        let error =
            |code: i64, message: &str| of_mcp(Kind::Read, json!({ "error": { "code": code, "message": message } }));
        let unconfirmed = error(-32002, "Critical tools must be invoked with critical=true.");
        assert_eq!(unconfirmed, Err(Error::NotConfirmed));
        let taken = "Simulation 'calm-1' is already registered";
        assert_eq!(error(-32002, taken), Err(Error::Conflict { reason: taken.to_owned() }));
        let missing = "NotFound: Parameter not found ({'parameterPath': 'Nope'})";
        assert_eq!(error(-32601, missing), Err(Error::NotFound { reason: missing.to_owned() }));
        let refused = json!({ "result": { "isError": true, "structuredContent": enveloped("InvalidInput", "No") } });
        assert_eq!(of_mcp(Kind::Read, refused), Err(Error::Invalid { problems: vec!["No".to_owned()] }));
    }

    #[test]
    fn a_text_of_the_bridge_is_one_short_line() {
        assert_eq!(shortened("a\nb\u{7}c"), "a b c");
        assert_eq!(shortened(&"x".repeat(2_000)).chars().count(), MAX_TEXT + 1);
    }
}
