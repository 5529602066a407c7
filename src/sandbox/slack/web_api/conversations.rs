//! `conversations.*`.

use std::sync::Arc;

use countersign_core::ids::{MessageTs, UserId};
use serde_json::{Value, json};

use super::{Answer, Refusal, args::Args, chat::place};
use crate::slack::{
    interactions::root_of,
    server::Server,
    world::{Channel, World, message::Message},
};

const PAGE: usize = 100;
const MAX_PAGE: usize = 1_000;

pub(super) fn replies(server: &Arc<Server>, args: &Args) -> Answer {
    let channel = place(server, &args.required("channel")?, false)?;
    let ts = args.ts("ts")?;
    let world = server.world();
    let root = root_of(&world, &channel, &ts).ok_or_else(|| Refusal::of("thread_not_found"))?;
    let first = world.message(&channel, &root).filter(|message| !message.deleted);
    let mut all: Vec<&Message> = first.into_iter().chain(world.replies(&channel, &root)).collect();
    all.retain(|message| message.ts == root || within(message, args));
    page(&world, all, args)
}

pub(super) fn history(server: &Arc<Server>, args: &Args) -> Answer {
    let channel = place(server, &args.required("channel")?, false)?;
    let world = server.world();
    let all = world.roots(&channel).rev().filter(|message| within(message, args)).collect();
    page(&world, all, args)
}

pub(super) fn open(server: &Arc<Server>, args: &Args) -> Answer {
    let world = server.world();
    let named = args.text("channel").or_else(|| args.text("users")).unwrap_or_default();
    if named.contains(',') {
        return Err(Refusal::of("not_enough_users"));
    }
    let found =
        world.channels.iter().find(|c| c.is_im() && (c.id.as_str() == named || c.with == Some(UserId::new(&named))));
    let channel =
        found.ok_or_else(|| Refusal::of(if args.has("users") { "user_not_found" } else { "channel_not_found" }))?;
    let mut shown = json!({ "id": channel.id });
    if args.flag("return_im") {
        shown = wire(channel, &world);
    }
    Ok(json!({ "channel": shown, "no_op": true, "already_open": true }))
}

pub(super) fn members(server: &Arc<Server>, args: &Args) -> Answer {
    let wanted = args.required("channel")?;
    let world = server.world();
    let channel = world.channels.iter().find(|channel| channel.id.as_str() == wanted);
    let channel = channel.ok_or_else(|| Refusal::of("channel_not_found"))?;
    let (members, next) = paged(&channel.members, args, |user| user.to_string())?;
    Ok(json!({ "members": members, "response_metadata": { "next_cursor": next } }))
}

fn wire(channel: &Channel, world: &World) -> Value {
    let is_im = channel.is_im();
    let mut wire = json!({
        "id": channel.id, "created": 1_700_000_000, "is_im": is_im, "is_channel": !is_im, "is_group": false,
        "is_mpim": channel.is_mpim(), "is_private": is_im || channel.private, "is_archived": channel.archived, "context_team_id": world.team,
        "updated": 1_700_000_000_000_u64,
    });
    match &channel.with {
        Some(user) => wire["user"] = json!(user),
        None => {
            wire["name"] = json!(channel.name);
            wire["name_normalized"] = json!(channel.name);
            wire["is_general"] = json!(channel.name == "general");
            wire["is_member"] = json!(channel.has(&world.app.user));
            wire["topic"] = json!({ "value": channel.topic, "creator": "U1", "last_set": 1_700_000_000 });
            wire["purpose"] = json!({ "value": "", "creator": "", "last_set": 0 });
            wire["num_members"] = json!(channel.members.len());
        }
    }
    wire
}

fn within(message: &Message, args: &Args) -> bool {
    let inclusive = args.flag("inclusive");
    let (oldest, latest) = (args.text("oldest").map(MessageTs::new), args.text("latest").map(MessageTs::new));
    oldest.is_none_or(|ts| message.ts > ts || (inclusive && message.ts == ts))
        && latest.is_none_or(|ts| message.ts < ts || (inclusive && message.ts == ts))
}

fn page(world: &World, all: Vec<&Message>, args: &Args) -> Answer {
    let with_metadata = args.flag("include_all_metadata");
    let (page, next) = paged(&all, args, |message| message.ts.to_string())?;
    let shown: Vec<Value> = page
        .into_iter()
        .map(|message| {
            let mut shown = message.wire(world);
            if message.is_root() && message.thread_ts.is_some() {
                let replies: Vec<&Message> = world.replies(&message.channel, &message.ts).collect();
                shown["reply_count"] = json!(replies.len());
                shown["latest_reply"] = json!(replies.last().map(|reply| &reply.ts));
            }
            if let Some(metadata) = &message.metadata {
                let short = json!({ "event_type": metadata["event_type"] });
                shown["metadata"] = if with_metadata { metadata.clone() } else { short };
            }
            shown
        })
        .collect();
    Ok(json!({
        "messages": shown, "has_more": !next.is_empty(), "response_metadata": { "next_cursor": next },
    }))
}

/// Returns a page of items, and the cursor of the next page: the name of its first item.
fn paged<'a, T>(all: &'a [T], args: &Args, name: impl Fn(&T) -> String) -> Result<(Vec<&'a T>, String), Refusal> {
    let limit = args.number("limit").unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let start = match args.text("cursor").filter(|cursor| !cursor.is_empty()) {
        Some(cursor) => {
            let wanted = cursor.strip_prefix("next:").ok_or_else(|| Refusal::of("invalid_cursor"))?;
            all.iter().position(|item| name(item) == wanted).ok_or_else(|| Refusal::of("invalid_cursor"))?
        }
        None => 0,
    };
    let next = all.get(start + limit).map(|item| format!("next:{}", name(item))).unwrap_or_default();
    Ok((all.iter().skip(start).take(limit).collect(), next))
}
