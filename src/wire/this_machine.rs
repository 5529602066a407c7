//! A guard that accepts requests from this machine and refuses those of foreign pages.
//!
//! Services on this machine that need no sign-in (the playground, the stand-ins) can be reached by every page that a
//! browser on it shows. A request from a foreign page carries that page's address in `Origin` and is refused, so no
//! foreign script can press Approve. Programs other than browsers send no `Origin` and are served. If the domain name
//! of a foreign page was made to resolve to this machine, that name is in `Host`, so only the fixed names of this
//! machine are accepted there.

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use url::{Host, Url};

/// Restricts routes to requests from this machine.
pub fn only(routes: Router) -> Router {
    routes.layer(middleware::from_fn(guard))
}

async fn guard(request: Request, next: Next) -> Response {
    match is_from_here(request.headers()) {
        true => next.run(request).await,
        false => (StatusCode::FORBIDDEN, "only this machine and its own page can use this").into_response(),
    }
}

/// Returns true if an address refers to this machine.
pub fn is_named_by(address: &Url) -> bool {
    match address.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns true if a request addresses this machine by one of its fixed names and does not come from a foreign page.
pub fn is_from_here(headers: &HeaderMap) -> bool {
    names_this_machine(headers) && !is_foreign(headers)
}

/// Returns true if the request addresses this machine by one of its fixed names.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Returns true if a page of another origin made the request.
fn is_foreign(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let from = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    from.is_none() || from != host
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

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
