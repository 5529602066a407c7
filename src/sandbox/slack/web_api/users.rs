//! `users.*`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, Refusal, args::Args};
use crate::slack::{
    server::Server,
    world::{Guest, User, World},
};

pub(super) fn info(server: &Arc<Server>, args: &Args) -> Answer {
    let wanted = args.required("user")?;
    let world = server.world();
    let user =
        world.users.iter().find(|user| user.id.as_str() == wanted).ok_or_else(|| Refusal::of("user_not_found"))?;
    Ok(json!({ "user": wire(user, &world) }))
}

pub(super) fn list(server: &Arc<Server>, _args: &Args) -> Answer {
    let world = server.world();
    let members: Vec<Value> = world.users.iter().map(|user| wire(user, &world)).collect();
    Ok(json!({ "members": members, "cache_ts": server.now().seconds(), "response_metadata": { "next_cursor": "" } }))
}

fn wire(user: &User, world: &World) -> Value {
    let team = user.home_team.as_ref().unwrap_or(&world.team);
    json!({
        "id": user.id, "team_id": team, "name": user.name, "deleted": user.deleted, "real_name": user.real_name,
        "color": user.color.trim_start_matches('#'), "tz": user.tz, "tz_label": user.tz,
        "tz_offset": 0, "is_bot": user.is_bot, "is_app_user": false, "is_admin": false, "is_owner": false,
        "is_restricted": user.guest != Guest::No, "is_ultra_restricted": user.guest == Guest::SingleChannel, "updated": 1_700_000_000,
        "profile": {
            "real_name": user.real_name, "real_name_normalized": user.real_name, "display_name": user.name,
            "display_name_normalized": user.name, "team": team,
        },
    })
}
