//! `auth.test`, `bots.info` and `apps.connections.open`.

use std::sync::Arc;

use serde_json::json;

use super::{Answer, Refusal, args::Args};
use crate::slack::server::Server;

pub(super) fn auth_test(server: &Arc<Server>) -> Answer {
    let world = server.world();
    Ok(json!({
        "url": "https://learning-lab.slack.com/", "team": world.team_name, "user": "countersign", "team_id": world.team,
        "user_id": world.app.user, "bot_id": world.app.bot_id, "is_enterprise_install": false,
    }))
}

pub(super) fn bots_info(server: &Arc<Server>, args: &Args) -> Answer {
    let bot_id = args.required("bot")?;
    let world = server.world();
    if world.app.bot_id != bot_id {
        return Err(Refusal::of("bot_not_found"));
    }
    Ok(json!({ "bot": {
        "id": world.app.bot_id, "app_id": world.app.id, "user_id": world.app.user, "name": "countersign",
        "deleted": false, "updated": 1_700_000_000,
    } }))
}

pub(super) fn connections_open(server: &Arc<Server>) -> Answer {
    Ok(json!({ "url": server.sockets.address(server) }))
}
