//! The page's read-only requests.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Query, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use countersign_core::ids::{ChannelId, MessageTs, UserId};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::slack::{
    server::Server,
    world::{World, message::Message},
};

/// The query parameters: the viewer, and the channel or message to read.
#[derive(Debug, Deserialize)]
pub(super) struct Look {
    #[serde(rename = "as")]
    viewer: String,
    channel: Option<ChannelId>,
    ts: Option<MessageTs>,
}

/// Returns the error response for a refused request.
pub(super) fn refused(status: StatusCode, error: impl std::fmt::Display) -> Response {
    (status, Json(json!({ "ok": false, "error": error.to_string() }))).into_response()
}

pub(super) async fn state(State(server): State<Arc<Server>>, Query(look): Query<Look>) -> Response {
    let world = server.world();
    let Some(me) = viewer(&world, &look) else { return refused(StatusCode::NOT_FOUND, "there is no such user") };
    let users: Vec<Value> = world
        .users
        .iter()
        .map(|user| {
            let (id, name, real_name, color, is_bot) =
                (&user.id, &user.name, &user.real_name, &user.color, user.is_bot);
            json!({ "id": id, "name": name, "real_name": real_name, "color": color, "is_bot": is_bot })
        })
        .collect();
    let channels: Vec<Value> = world
        .channels
        .iter()
        .filter(|channel| channel.has(&me))
        .map(|channel| {
            let (unread, mentions) = world.unread(&me, channel);
            let kind = if channel.is_im() { "im" } else { "channel" };
            let mut shown = json!({
                "id": channel.id, "name": channel.name, "kind": kind, "topic": channel.topic, "unread": unread,
                "mentions": mentions,
            });
            if channel.is_im() {
                // The viewer is one of the two members; the page shows the other one.
                let other = world.user(world.app.user.as_str());
                shown["with"] = json!(world.app.user);
                shown["name"] = json!(other.map(|user| &user.name));
            }
            shown
        })
        .collect();
    Json(json!({
        "team": { "id": world.team, "name": world.team_name }, "me": me, "users": users, "channels": channels,
        "commands": server.options.commands, "shortcuts": server.options.shortcuts,
    }))
    .into_response()
}

pub(super) async fn messages(State(server): State<Arc<Server>>, Query(look): Query<Look>) -> Response {
    let world = server.world();
    let Some((me, channel)) = viewer_and_channel(&world, &look) else {
        return refused(StatusCode::NOT_FOUND, "there is no such channel");
    };
    let all = world.messages.get(&channel).into_iter().flat_map(|messages| messages.values());
    let visible = all.filter(|message| message.is_root() && is_visible(message, &me, &world));
    let shown: Vec<Value> = visible.map(|message| message.shown(&world)).collect();
    Json(json!({ "messages": shown })).into_response()
}

pub(super) async fn thread(State(server): State<Arc<Server>>, Query(look): Query<Look>) -> Response {
    let world = server.world();
    let (Some((me, channel)), Some(ts)) = (viewer_and_channel(&world, &look), look.ts) else {
        return refused(StatusCode::NOT_FOUND, "there is no such thread");
    };
    let Some(root) = world.message(&channel, &ts).map(|message| message.root().clone()) else {
        return refused(StatusCode::NOT_FOUND, "there is no such thread");
    };
    let all = world.message(&channel, &root).into_iter().chain(world.thread_entries(&channel, &root));
    let shown: Vec<Value> =
        all.filter(|message| is_visible(message, &me, &world)).map(|message| message.shown(&world)).collect();
    Json(json!({ "messages": shown })).into_response()
}

pub(super) async fn home(State(server): State<Arc<Server>>, Query(look): Query<Look>) -> Response {
    let world = server.world();
    let Some(me) = viewer(&world, &look) else { return refused(StatusCode::NOT_FOUND, "there is no such user") };
    Json(json!({ "view": world.homes.get(&me).map(|view| view.wire(&world)) })).into_response()
}

pub(super) async fn file(State(server): State<Arc<Server>>, Path(id): Path<String>) -> Response {
    let world = server.world();
    let Some(file) = world.files.get(&id).filter(|file| file.complete) else {
        return refused(StatusCode::NOT_FOUND, "there is no such file");
    };
    let nosniff = (header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    ([(header::CONTENT_TYPE, file.mimetype()), nosniff], file.bytes.clone()).into_response()
}

fn viewer(world: &World, look: &Look) -> Option<UserId> {
    world.user(&look.viewer).map(|user| user.id.clone())
}

fn viewer_and_channel(world: &World, look: &Look) -> Option<(UserId, ChannelId)> {
    let me = viewer(world, look)?;
    let channel = world.channel(look.channel.as_ref()?.as_str()).filter(|channel| channel.has(&me))?;
    Some((me, channel.id.clone()))
}

/// Returns true if a message is visible to the viewer. Ephemeral messages are visible only to their
/// recipient, and deleted messages only if they have replies.
fn is_visible(message: &Message, viewer: &UserId, world: &World) -> bool {
    let for_viewer = message.ephemeral_to.as_ref().is_none_or(|to| to == viewer);
    let remains = !message.deleted || world.replies(&message.channel, &message.ts).next().is_some();
    for_viewer && remains
}
