//! The sign-in of the stand-in: its own authorization server, which registers any client, asks nobody, and checks the code
//! and its proof (PKCE). A token ends when a test says so.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Form, Json, Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Shared;

/// The state of the sign-in.
#[derive(Debug, Default)]
pub(super) struct SignedIn {
    /// The number of tokens so far; the last one is valid.
    pub(super) issued: usize,
    /// True if the last token has ended.
    pub(super) ended: bool,
    /// The challenge of the last code, until the code is used.
    challenge: Option<String>,
}

impl SignedIn {
    /// Returns true if this is the header of a valid token.
    pub(super) fn accepts(&self, token: Option<&str>) -> bool {
        self.issued > 0 && !self.ended && token == Some(format!("Bearer access-{}", self.issued).as_str())
    }
}

pub(super) fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/.well-known/oauth-protected-resource/mcp", get(resource))
        .route("/.well-known/oauth-authorization-server", get(server))
        .route("/register", post(register))
        .route("/authorize", get(authorize))
        .route("/token", post(token))
        .with_state(shared)
}

/// Returns the address of this server, as the request names it.
fn own(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    format!("http://{host}")
}

/// Refuses a request without a valid token.
pub(super) fn unauthorized(headers: &HeaderMap) -> Response {
    let place = format!("{}/.well-known/oauth-protected-resource/mcp", own(headers));
    let challenge = format!("Bearer error=\"invalid_token\", resource_metadata=\"{place}\"");
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)], Json(json!({ "error": "invalid_token" })))
        .into_response()
}

async fn resource(headers: HeaderMap) -> Json<Value> {
    let own = own(&headers);
    Json(json!({ "resource": format!("{own}/mcp"), "authorization_servers": [own], "scopes_supported": ["notes"] }))
}

async fn server(headers: HeaderMap) -> Json<Value> {
    let own = own(&headers);
    Json(json!({
        "issuer": own,
        "authorization_endpoint": format!("{own}/authorize"),
        "token_endpoint": format!("{own}/token"),
        "registration_endpoint": format!("{own}/register"),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
    }))
}

async fn register(Json(mut client): Json<Value>) -> Response {
    client["client_id"] = json!("client-1");
    (StatusCode::CREATED, Json(client)).into_response()
}

async fn authorize(State(shared): State<Arc<Shared>>, Query(asked): Query<HashMap<String, String>>) -> Response {
    let of = |key: &str| asked.get(key).cloned().unwrap_or_default();
    if of("code_challenge_method") != "S256" || of("resource").is_empty() {
        return StatusCode::BAD_REQUEST.into_response();
    }
    shared.world().signed_in.challenge = Some(of("code_challenge"));
    let back = url::Url::parse_with_params(&of("redirect_uri"), [("code", "code-1"), ("state", &of("state"))]);
    match back {
        Ok(back) => (StatusCode::FOUND, [(header::LOCATION, back.to_string())]).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

async fn token(State(shared): State<Arc<Shared>>, Form(form): Form<HashMap<String, String>>) -> Response {
    let of = |key: &str| form.get(key).map(String::as_str).unwrap_or_default();
    let mut world = shared.world();
    let signed_in = &mut world.signed_in;
    let is_granted = match of("grant_type") {
        "authorization_code" => {
            let proof = URL_SAFE_NO_PAD.encode(Sha256::digest(of("code_verifier")));
            of("code") == "code-1" && signed_in.challenge.take() == Some(proof)
        }
        "refresh_token" => of("refresh_token") == format!("refresh-{}", signed_in.issued),
        _ => false,
    };
    if !is_granted {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" }))).into_response();
    }
    signed_in.issued += 1;
    signed_in.ended = false;
    Json(json!({
        "access_token": format!("access-{}", signed_in.issued),
        "refresh_token": format!("refresh-{}", signed_in.issued),
        "token_type": "Bearer",
        "expires_in": 3600,
        "scope": "notes",
    }))
    .into_response()
}
