//! `files.*`: getting an address for an upload, uploading, and sharing the file; looking a file up, and its content at a
//! private address.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use countersign_core::ids::{ChannelId, MessageTs};
use serde_json::json;

use super::{Answer, Refusal, args::Args, chat::place};
use crate::slack::{
    SandboxSlack, check,
    interactions::root_of,
    server::Server,
    timeline::Draft,
    world::{File, Mode, World, message::text_of},
};

pub(super) fn get_upload_url(server: &Arc<Server>, args: &Args) -> Answer {
    let name = args.required("filename")?;
    let length = args.number("length").filter(|length| *length > 0);
    let length = length.ok_or_else(|| Refusal::because("invalid_arguments", "length must be at least 1"))?;
    let mut world = server.world();
    let id = world.next_id("F");
    let alt = args.text("alt_txt").unwrap_or_default();
    let (bytes, mode) = (Vec::new(), Mode::Hosted);
    let file = File {
        id: id.clone(),
        title: name.clone(),
        name,
        alt,
        length,
        complete: false,
        mode,
        is_looked_up: false,
        bytes,
    };
    world.files.insert(id.clone(), file);
    let elsewhere = server.faults().uploads_to.clone();
    let place = elsewhere.unwrap_or_else(|| format!("{}/upload/{id}", server.url));
    Ok(json!({ "upload_url": place, "file_id": id }))
}

/// `POST /upload/<id>`: the body is the raw bytes, or a multipart form with the bytes in its first
/// part.
pub(in crate::slack) async fn upload(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let boundary = kind.strip_prefix("multipart/form-data").and_then(|rest| rest.split("boundary=").nth(1));
    let bytes = match boundary {
        Some(boundary) => first_part(&body, boundary.trim_matches('"')),
        None => Some(body.to_vec()),
    };
    let mut world = server.world();
    match (world.files.get_mut(&id).filter(|file| !file.complete), bytes) {
        (None, _) => (StatusCode::NOT_FOUND, "no such upload".to_owned()),
        (Some(_), None) => (StatusCode::BAD_REQUEST, "cannot read the form".to_owned()),
        (Some(file), Some(bytes)) if bytes.len() != file.length => {
            (StatusCode::BAD_REQUEST, format!("{} bytes were announced, {} came", file.length, bytes.len()))
        }
        (Some(file), Some(bytes)) => {
            file.bytes = bytes;
            (StatusCode::OK, format!("OK - {}", file.length))
        }
    }
}

pub(super) fn complete_upload(server: &Arc<Server>, args: &Args) -> Answer {
    let listed = args.json("files").and_then(|files| files.as_array().cloned()).unwrap_or_default();
    if listed.is_empty() {
        return Err(Refusal::because("invalid_arguments", "must provide at least 1 item [json-pointer:/files]"));
    }
    let channel = match args.text("channel_id") {
        Some(channel) => Some(place(server, &channel, false)?),
        None => None,
    };
    let thread = match (&channel, args.text("thread_ts").map(MessageTs::new)) {
        (Some(channel), Some(ts)) => {
            Some(root_of(&server.world(), channel, &ts).ok_or_else(|| Refusal::of("thread_not_found"))?)
        }
        _ => None,
    };
    let (ids, shown, bot) = {
        let mut world = server.world();
        let ids: Vec<String> = listed.iter().map(|file| text_of(&file["id"])).collect();
        let ready = |id: &String| world.files.get(id).is_some_and(|file| !file.complete && !file.bytes.is_empty());
        if !ids.iter().all(ready) {
            return Err(Refusal::of("file_not_found"));
        }
        let mut shown: Vec<String> = Vec::new();
        for listed in &listed {
            let Some(file) = world.files.get_mut(&text_of(&listed["id"])) else { continue };
            file.complete = true;
            if let Some(title) = listed["title"].as_str() {
                file.title = title.to_owned();
            }
            shown.push(text_of(&listed["id"]));
        }
        let shown = shown.iter().filter_map(|id| world.files.get(id)).map(|file| file.wire(&world)).collect::<Vec<_>>();
        (ids, shown, world.app.user.clone())
    };
    if let Some(channel) = channel {
        let text = args.text("initial_comment").unwrap_or_default();
        server.record_problem("files.completeUploadExternal", check::message_text(&json!({ "text": text })));
        server.post(Draft { thread, files: ids, ..Draft::new(channel, bot, text) });
    }
    Ok(json!({ "files": shown }))
}

pub(super) fn info(server: &Arc<Server>, args: &Args) -> Answer {
    let id = args.required("file")?;
    let world = server.world();
    let file = world.files.get(&id).filter(|file| file.complete && is_readable(file, &world));
    Ok(json!({ "file": file.ok_or_else(|| Refusal::of("file_not_found"))?.wire(&world), "comments": [] }))
}

/// `GET /files-pri/<team>-<id>/<name>` and `GET /files-pri/<team>-<id>/download/<name>`: the content. Without a token that
/// may read files, Slack shows its sign-in page.
pub(in crate::slack) async fn private(
    State(server): State<Arc<Server>>,
    Path((file, _)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    if let Some(flood) = server.faults().take_flood("url_private") {
        return server.flood(flood);
    }
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let is_ours = bearer == Some(&format!("Bearer {}", SandboxSlack::BOT_TOKEN)[..]);
    if !is_ours || !server.options.scopes.iter().any(|scope| scope == "files:read") {
        const SIGN_IN: &str = "<!DOCTYPE html><html><body>Sign in to Learning Lab</body></html>";
        return ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], SIGN_IN).into_response();
    }
    let world = server.world();
    let id = file.rsplit('-').next().unwrap_or_default();
    match world.files.get(id).filter(|file| file.complete && is_readable(file, &world)) {
        Some(file) => ([(header::CONTENT_TYPE, file.mimetype())], file.bytes.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns true if the app is in a conversation in which the file was shared.
fn is_readable(file: &File, world: &World) -> bool {
    let is_in =
        |channel: &ChannelId| world.channel(channel.as_str()).is_some_and(|channel| channel.has(&world.app.user));
    world.messages.iter().any(|(channel, messages)| {
        is_in(channel) && messages.values().any(|message| !message.deleted && message.files.contains(&file.id))
    })
}

fn first_part(body: &[u8], boundary: &str) -> Option<Vec<u8>> {
    let start = find(body, b"\r\n\r\n")? + 4;
    let end = start + find(&body[start..], format!("\r\n--{boundary}").as_bytes())?;
    Some(body[start..end].to_vec())
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_part_of_a_form_is_the_file() {
        let body = b"--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nbytes\r\n--x--\r\n";
        assert_eq!(first_part(body, "x").as_deref(), Some(&b"bytes"[..]));
    }
}
