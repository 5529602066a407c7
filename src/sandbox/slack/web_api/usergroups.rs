//! `usergroups.*`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, Refusal, args::Args};
use crate::slack::{server::Server, world::UserGroup};

pub(super) fn list(server: &Arc<Server>, args: &Args) -> Answer {
    let world = server.world();
    let groups = world.groups.iter().map(|group| {
        let mut wire = wire(group, world.team.as_str());
        if args.flag("include_users") {
            wire["users"] = json!(group.members);
        }
        if args.flag("include_count") {
            wire["user_count"] = json!(group.members.len());
        }
        wire
    });
    Ok(json!({ "usergroups": groups.collect::<Vec<_>>() }))
}

pub(super) fn users_list(server: &Arc<Server>, args: &Args) -> Answer {
    let wanted = args.required("usergroup")?;
    let world = server.world();
    let group = world.groups.iter().find(|group| group.id == wanted).ok_or_else(|| Refusal::of("no_such_subteam"))?;
    Ok(json!({ "users": group.members }))
}

fn wire(group: &UserGroup, team: &str) -> Value {
    json!({
        "id": group.id, "team_id": team, "is_usergroup": true, "is_subteam": true, "name": group.handle,
        "description": "", "handle": group.handle, "is_external": false, "date_create": 1_700_000_000,
        "date_update": 1_700_000_000, "date_delete": 0, "auto_type": null, "auto_provision": false,
        "enterprise_subteam_id": "", "created_by": "U1", "updated_by": "U1", "deleted_by": null,
        "prefs": { "channels": [], "groups": [] },
    })
}
