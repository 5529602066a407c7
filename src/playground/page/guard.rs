//! Access control: only the page itself and programs on this machine may use the playground.
//!
//! The playground has no sign-in, so it only answers requests from this machine
//! ([`countersign_wire::this_machine`]), and tells the browser not to load anything from elsewhere.

use axum::{
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use countersign_wire::this_machine;

/// The content security policy: everything is loaded from this server. Scripts, styles and frames
/// from elsewhere are forbidden, and so are inline ones.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// Refuses requests from other sites and adds security headers to the response.
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
