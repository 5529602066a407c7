//! The answers that every stand-in gives.

use axum::{
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde_json::Value;

/// Returns a response with JSON.
pub(crate) fn json(status: u16, body: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json; charset=utf-8")];
    (status_code(status), headers, Body::from(body.to_string())).into_response()
}

/// Returns the page of a proxy in front of a service.
pub(crate) fn page(status: u16) -> Response {
    let status = status_code(status);
    let html = format!("<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\n");
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

/// Returns a status, which is known to be one.
pub(super) fn status_code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
