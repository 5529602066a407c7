//! The interface of the page: what a person in front of the workspace sees and does, at `/workspace/…`.
//!
//! Every request says `as` whom it is made: the page is a playground, and changing seats is part of it. Requests of
//! pages from elsewhere are refused ([`this_machine`]); `read` answers queries, `act` carries out acts, `live` streams
//! changes.

mod act;
mod live;
mod read;

use std::sync::Arc;

use axum::{
    Router,
    routing::{get, post},
};
use countersign_wire::this_machine;

use super::server::Server;

/// Returns all addresses of the page's interface.
pub(super) fn router(server: Arc<Server>) -> Router {
    let routes = Router::new()
        .route("/workspace/state", get(read::state))
        .route("/workspace/messages", get(read::messages))
        .route("/workspace/thread", get(read::thread))
        .route("/workspace/home", get(read::home))
        .route("/workspace/file/{id}", get(read::file))
        .route("/workspace/events", get(live::events))
        .route("/workspace/read", post(act::read))
        .route("/workspace/post", post(act::post))
        .route("/workspace/action", post(act::action))
        .route("/workspace/view_submit", post(act::view_submit))
        .route("/workspace/view_close", post(act::view_close))
        .route("/workspace/shortcut", post(act::shortcut))
        .route("/workspace/stop_session", post(act::stop_session))
        .route("/workspace/open_home", post(act::open_home))
        .with_state(server);
    this_machine::only(routes)
}
