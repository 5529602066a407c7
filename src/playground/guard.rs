//! What every answer of the playground carries, and whom it answers at all.
//!
//! The page listens on this machine, where every other page in the same browser can reach it too. A request that a
//! foreign page makes carries that page's address in `Origin`, so those are refused: nobody else's script presses
//! Approve. Programs without a browser send no `Origin` and are served. A foreign page whose name was made to lead to this
//! machine has that name in `Host`, so only the names of this machine are answered.

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Everything comes from here; no script, style or frame from anywhere else, and none written into the page.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// Refuses other sites and adds the headers.
pub(super) async fn guard(request: Request, next: Next) -> Response {
    if !names_this_machine(request.headers()) || is_foreign(request.headers()) {
        return (StatusCode::FORBIDDEN, "the playground answers its own page only").into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
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

/// Whether a page of another origin made the request.
fn is_foreign(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let from = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    from.is_none() || from != host
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(origin: Option<&'static str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:8080"));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        }
        headers
    }

    #[test]
    fn the_page_itself_and_programs_are_answered() {
        assert!(!is_foreign(&headers(None)));
        assert!(!is_foreign(&headers(Some("http://127.0.0.1:8080"))));
    }

    #[test]
    fn other_pages_are_refused() {
        for origin in ["http://evil.example", "http://127.0.0.1:9999", "http://127.0.0.1:8080.evil.example", "null"] {
            assert!(is_foreign(&headers(Some(origin))), "{origin}");
        }
    }

    #[test]
    fn only_the_names_of_this_machine_are_answered() {
        let named = |host: &'static str| {
            names_this_machine(&HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]))
        };
        for host in ["127.0.0.1:8080", "localhost:9", "LOCALHOST", "[::1]:8080", "[::1]"] {
            assert!(named(host), "{host}");
        }
        for host in ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost:80:80", ""] {
            assert!(!named(host), "{host}");
        }
        assert!(!names_this_machine(&HeaderMap::new()));
    }
}
