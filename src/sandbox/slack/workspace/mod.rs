//! The API of the page, `/workspace/…`: everything that a person can see and do in the workspace.
//!
//! Every request names the person in `as`, because the user of the playground can act as anyone.
//! Requests from other sites are refused ([`this_machine`]). `read` answers queries, `act` carries
//! out actions, `live` streams changes.

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

/// Returns all routes of the page's API.
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
