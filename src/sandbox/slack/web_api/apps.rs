//! `auth.test` and `apps.connections.open`.

use std::sync::Arc;

use serde_json::json;

use super::Answer;
use crate::sandbox::slack::server::Server;

pub(super) fn auth_test(server: &Arc<Server>) -> Answer {
    let world = server.world();
    Ok(json!({
        "url": "https://learning-lab.slack.com/", "team": world.team_name, "user": "countersign", "team_id": world.team,
        "user_id": world.app.user, "bot_id": world.app.bot_id, "is_enterprise_install": false,
    }))
}

pub(super) fn connections_open(server: &Arc<Server>) -> Answer {
    Ok(json!({ "url": server.sockets.address(server) }))
}
