//! `usergroups.*`.

use std::sync::Arc;

use serde_json::json;

use super::{Answer, Refusal, args::Args};
use crate::sandbox::slack::server::Server;

pub(super) fn users_list(server: &Arc<Server>, args: &Args) -> Answer {
    let wanted = args.needed("usergroup")?;
    let world = server.world();
    let group = world.groups.iter().find(|group| group.id == wanted).ok_or_else(|| Refusal::of("no_such_subteam"))?;
    Ok(json!({ "users": group.members }))
}
