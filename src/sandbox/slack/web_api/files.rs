//! `files.*`: getting an address for an upload, uploading, and sharing the file.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
};
use countersign_core::ids::MessageTs;
use serde_json::{Value, json};

use super::{Answer, Refusal, args::Args, chat::place};
use crate::slack::{
    check,
    interactions::root_of,
    server::Server,
    timeline::Draft,
    world::{File, message::text_of},
};

pub(super) fn get_upload_url(server: &Arc<Server>, args: &Args) -> Answer {
    let name = args.required("filename")?;
    let length = args.number("length").filter(|length| *length > 0);
    let length = length.ok_or_else(|| Refusal::because("invalid_arguments", "length must be at least 1"))?;
    let mut world = server.world();
    let id = world.next_id("F");
    let alt = args.text("alt_txt").unwrap_or_default();
    let file = File { id: id.clone(), title: name.clone(), name, alt, length, complete: false, bytes: Vec::new() };
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
        let mut shown: Vec<Value> = Vec::new();
        for listed in &listed {
            let Some(file) = world.files.get_mut(&text_of(&listed["id"])) else { continue };
            file.complete = true;
            if let Some(title) = listed["title"].as_str() {
                file.title = title.to_owned();
            }
            shown.push(file.shown());
        }
        (ids, shown, world.app.user.clone())
    };
    if let Some(channel) = channel {
        let text = args.text("initial_comment").unwrap_or_default();
        server.record_problem("files.completeUploadExternal", check::message_text(&json!({ "text": text })));
        server.post(Draft { thread, files: ids, ..Draft::new(channel, bot, text) });
    }
    Ok(json!({ "files": shown }))
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
