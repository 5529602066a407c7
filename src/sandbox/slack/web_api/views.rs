//! `views.*`.

use std::{sync::Arc, time::Duration};

use countersign_core::ids::UserId;
use serde_json::{Value, json};

use super::{Answer, Refusal, args::Args};
use crate::slack::{check, server::Server};

const TRIGGER_LIFETIME: Duration = Duration::from_secs(3);

pub(super) fn open(server: &Arc<Server>, args: &Args) -> Answer {
    let content = content(server, args, "modal")?;
    unique(server, &content, None)?;
    let user = exchange(server, args)?;
    Ok(json!({ "view": server.open_view(&user, content) }))
}

pub(super) fn push(server: &Arc<Server>, args: &Args) -> Answer {
    let content = content(server, args, "modal")?;
    unique(server, &content, None)?;
    let user = exchange(server, args)?;
    if server.world().stacks.get(&user).is_none_or(Vec::is_empty) {
        return Err(Refusal::of("not_found"));
    }
    let view = server.push_view(&user, content).ok_or_else(|| Refusal::of("push_limit_reached"))?;
    Ok(json!({ "view": view }))
}

pub(super) fn update(server: &Arc<Server>, args: &Args) -> Answer {
    let content = content(server, args, "modal")?;
    let id = {
        let world = server.world();
        let wanted = |view: &&crate::slack::world::view::View| match args.text("view_id") {
            Some(id) => view.id == id,
            None => args.text("external_id").is_some_and(|id| view.open && view.content["external_id"] == id.as_str()),
        };
        let view = world.views.values().find(wanted).filter(|view| view.open);
        let view = view.ok_or_else(|| Refusal::of("not_found"))?;
        if args.text("hash").is_some_and(|hash| hash != view.hash) {
            return Err(Refusal::of("hash_conflict"));
        }
        view.id.clone()
    };
    unique(server, &content, Some(&id))?;
    let view = server.update_view(&id, content).ok_or_else(|| Refusal::of("not_found"))?;
    Ok(json!({ "view": view }))
}

pub(super) fn publish(server: &Arc<Server>, args: &Args) -> Answer {
    let content = content(server, args, "home")?;
    let user = args.user("user_id")?;
    {
        let world = server.world();
        if !world.users.iter().any(|known| known.id == user && !known.is_bot) {
            return Err(Refusal::of("user_not_found"));
        }
        let current = world.homes.get(&user).map(|view| view.hash.as_str());
        if args.text("hash").is_some_and(|hash| Some(hash.as_str()) != current) {
            return Err(Refusal::of("hash_conflict"));
        }
    }
    Ok(json!({ "view": server.publish_home(&user, content) }))
}

fn content(server: &Server, args: &Args, kind: &str) -> Result<Value, Refusal> {
    let view =
        args.json("view").ok_or_else(|| Refusal::because("invalid_arguments", "missing required field: view"))?;
    check::view(&view, kind)?;
    server.record_problem("views", check::no_broadcast("", &view["blocks"]));
    Ok(view)
}

/// Marks the trigger as used, and returns the person who will see the modal.
fn exchange(server: &Server, args: &Args) -> Result<UserId, Refusal> {
    let now = server.now();
    let mut world = server.world();
    let trigger =
        world.triggers.get_mut(&args.required("trigger_id")?).ok_or_else(|| Refusal::of("invalid_trigger_id"))?;
    if trigger.used {
        return Err(Refusal::of("exchanged_trigger_id"));
    }
    if now.since(trigger.at) > TRIGGER_LIFETIME {
        return Err(Refusal::of("trigger_expired"));
    }
    trigger.used = true;
    Ok(trigger.user.clone())
}

fn unique(server: &Server, content: &Value, except: Option<&str>) -> Result<(), Refusal> {
    let Some(external) = content["external_id"].as_str().filter(|id| !id.is_empty()) else { return Ok(()) };
    let world = server.world();
    let taken =
        world.views.values().any(|v| v.open && Some(v.id.as_str()) != except && v.content["external_id"] == external);
    if taken { Err(Refusal::of("duplicate_external_id")) } else { Ok(()) }
}
