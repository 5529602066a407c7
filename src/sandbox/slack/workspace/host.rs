//! Refuses requests under a name that is not always this machine's own.
//!
//! A page elsewhere can make its own name lead to this machine, and its scripts would then sit in every seat of the
//! workspace. What it cannot change is that its name stands in `Host`.

use axum::{
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Answers requests to this machine only.
pub(super) async fn guard(request: Request, next: Next) -> Response {
    match names_this_machine(request.headers()) {
        true => next.run(request).await,
        false => (StatusCode::FORBIDDEN, "the workspace answers on this machine only").into_response(),
    }
}

/// Whether the request was made to this machine by a name that is always its own.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
}
