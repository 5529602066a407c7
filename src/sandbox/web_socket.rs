//! The server side of WebSockets (RFC 6455), with the library that the Slack library uses for the
//! client side.

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{handshake::derive_accept_key, protocol::Role},
};

pub use tokio_tungstenite::tungstenite::Message as Frame;

/// An open connection.
pub type WebSocket = WebSocketStream<TokioIo<Upgraded>>;

/// Accepts a connection and runs `converse` on it in a separate task. Answers with an error if the
/// request is not for a WebSocket.
pub fn accept<F>(mut request: Request, converse: impl FnOnce(WebSocket) -> F + Send + 'static) -> Response
where
    F: Future<Output = ()> + Send,
{
    let Some(key) = key(request.headers()) else {
        return (StatusCode::BAD_REQUEST, "this address is for WebSockets").into_response();
    };
    let Some(upgrade) = request.extensions_mut().remove::<OnUpgrade>() else {
        return (StatusCode::UPGRADE_REQUIRED, "this connection cannot become a WebSocket").into_response();
    };
    tokio::spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            converse(WebSocket::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await).await;
        }
    });
    let headers = [
        (header::CONNECTION, "Upgrade"),
        (header::UPGRADE, "websocket"),
        (header::SEC_WEBSOCKET_ACCEPT, &derive_accept_key(key.as_bytes())),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// Returns the key of a request for a WebSocket; `None` for any other request.
fn key(headers: &HeaderMap) -> Option<String> {
    let holds = |name: HeaderName, word: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
    };
    let asked = holds(header::CONNECTION, "upgrade")
        && holds(header::UPGRADE, "websocket")
        && holds(header::SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok());
    key.filter(|_| asked).map(str::to_owned)
}
