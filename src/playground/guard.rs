//! The guard of the page: only the page itself and programs on this machine may use it.
//!
//! The playground has no sign-in, so it answers requests of this machine only ([`countersign_wire::this_machine`]), and
//! tells the browser to take nothing from anywhere else.

use axum::{
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use countersign_wire::this_machine;

/// Everything comes from here; no script, style or frame from anywhere else, and none written into the page.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// Refuses other sites and adds the headers.
pub(super) async fn guard(request: Request, next: Next) -> Response {
    if !this_machine::is_from_here(request.headers()) {
        return (StatusCode::FORBIDDEN, "the playground answers its own page only").into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
