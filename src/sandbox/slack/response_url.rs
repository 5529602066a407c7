//! Answers to an action of a person: posted to its `response_url`, or contained in the
//! acknowledgement of a command. By default only that person sees them.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use countersign_core::ids::{ChannelId, UserId};
use serde_json::{Value, json};

use super::{
    check,
    interactions::root_of,
    ledger::Call,
    server::Server,
    timeline::{Draft, Edit},
    web_api::{Answer, Refusal},
    world::message::text_of,
};

const LIFETIME: Duration = Duration::from_secs(30 * 60);
const MAX_USES: u32 = 5;

/// `POST /response/<id>`
pub(super) async fn receive(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    let at = server.now();
    let flood = server.faults().take_flood("response_url");
    if let Some(flood) = flood {
        return server.flood(flood);
    }
    let _answering = server.ledger.answering();
    let answer = answer(&server, &id, &body).inspect_err(|refusal| server.complain_about("response_url", refusal));
    if answer.is_ok() && body["delete_original"] != true {
        server.record_problem("response_url", check::message_text(&body));
    }
    let (status, answer) = match answer {
        Ok(answer) => (StatusCode::OK, answer),
        Err(refusal) if refusal.error == "used_url" || refusal.error == "expired_url" => {
            (StatusCode::NOT_FOUND, refusal.body())
        }
        Err(refusal) => (StatusCode::BAD_REQUEST, refusal.body()),
    };
    server.ledger.called(Call {
        at,
        method: "response_url".to_owned(),
        body,
        answer: answer.clone(),
        status: status.as_u16(),
        answer_lost: false,
    });
    (status, Json(answer)).into_response()
}

fn answer(server: &Arc<Server>, id: &str, body: &Value) -> Answer {
    let known = {
        let mut world = server.world();
        let now = server.now();
        let url = world.response_urls.get_mut(id).ok_or_else(|| Refusal::of("expired_url"))?;
        if now.since(url.at) > LIFETIME {
            return Err(Refusal::of("expired_url"));
        }
        if url.uses >= MAX_USES {
            return Err(Refusal::of("used_url"));
        }
        url.uses += 1;
        url.clone()
    };
    let blocks = blocks(body)?;
    if let Some(ts) = &known.message {
        if body["delete_original"] == true {
            server.delete(&known.channel, ts).ok_or_else(|| Refusal::of("message_not_found"))?;
            return Ok(json!({ "ok": true }));
        }
        if body["replace_original"] == true {
            let edit = Edit { text: text_of(&body["text"]), blocks, metadata: None };
            server.edit(&known.channel, ts, edit).ok_or_else(|| Refusal::of("message_not_found"))?;
            return Ok(json!({ "ok": true }));
        }
    }
    if text_of(&body["text"]).is_empty() && blocks.is_empty() {
        return Err(Refusal::of("no_text"));
    }
    let mut draft = draft(server, &known.user, &known.channel, body, blocks);
    if let Some(thread) = body["thread_ts"].as_str() {
        let root = root_of(&server.world(), &known.channel, &thread.into());
        draft.thread = Some(root.ok_or_else(|| Refusal::of("thread_not_found"))?);
    } else if draft.ephemeral_to.is_some() {
        draft.thread = known.thread;
    }
    server.post(draft);
    Ok(json!({ "ok": true }))
}

impl Server {
    /// Posts the content of the app's acknowledgement of a command.
    pub(super) fn show_answer(self: &Arc<Self>, user: &UserId, channel: &ChannelId, answer: &Value) {
        match blocks(answer) {
            Ok(blocks) if !blocks.is_empty() || !text_of(&answer["text"]).is_empty() => {
                self.record_problem("command", check::message_text(answer));
                self.post(draft(self, user, channel, answer, blocks));
            }
            Ok(_) => {}
            Err(refusal) => {
                self.complain_about("command", &refusal);
            }
        }
    }
}

fn draft(server: &Server, user: &UserId, channel: &ChannelId, body: &Value, blocks: Vec<Value>) -> Draft {
    let bot = server.world().app.user.clone();
    let ephemeral_to = (body["response_type"] != "in_channel").then(|| user.clone());
    Draft { blocks, ephemeral_to, ..Draft::new(channel.clone(), bot, text_of(&body["text"])) }
}

fn blocks(body: &Value) -> Result<Vec<Value>, Refusal> {
    let blocks = body["blocks"].as_array().cloned().unwrap_or_default();
    check::attachments(&body["attachments"]).map_err(Refusal::from)?;
    check::message(&blocks).map_err(Refusal::from)?;
    Ok(blocks)
}
