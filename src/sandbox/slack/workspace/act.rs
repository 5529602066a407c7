//! The requests of the page that change something.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use countersign_core::ids::{ChannelId, MessageTs, UserId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::read::refused;
use crate::slack::{
    Error,
    acts::{Pressed, Typed},
    broadcast::Change,
    people::Press,
    server::Server,
};

/// The body of such a request. Each route uses some of the fields.
#[derive(Debug, Deserialize)]
pub(super) struct Act {
    #[serde(rename = "as")]
    actor: String,
    channel: Option<String>,
    text: Option<String>,
    thread_ts: Option<MessageTs>,
    message_ts: Option<MessageTs>,
    block_id: Option<String>,
    action_id: Option<String>,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    selected_option: Value,
    view_id: Option<String>,
    #[serde(default)]
    values: Value,
    callback_id: Option<String>,
    #[serde(default)]
    state: Value,
}

impl Act {
    fn place(&self, server: &Server) -> Result<(UserId, ChannelId), Error> {
        server.who_and_where(&self.actor, self.channel.as_deref().unwrap_or_default())
    }

    fn actor(&self, server: &Server) -> Result<UserId, Error> {
        let world = server.world();
        let user = world.user(&self.actor).filter(|user| !user.is_bot);
        user.map(|user| user.id.clone()).ok_or_else(|| Error::Nothing(format!("user `{}`", self.actor)))
    }

    fn view(&self) -> &str {
        self.view_id.as_deref().unwrap_or_default()
    }
}

pub(super) async fn read(State(server): State<Arc<Server>>, Json(act): Json<Act>) -> Response {
    answered(act.place(&server).map(|(user, channel)| {
        let mut world = server.world();
        let newest = world.messages.get(&channel).and_then(|messages| messages.keys().next_back().cloned());
        if let Some(ts) = newest {
            world.read.entry(user.clone()).or_default().insert(channel.clone(), ts);
        }
        server.announce(Change::Read { user, channel });
        json!({ "ok": true })
    }))
}

pub(super) async fn post(State(server): State<Arc<Server>>, Json(act): Json<Act>) -> Response {
    let done = async {
        let (user, channel) = act.place(&server)?;
        let line = act.text.as_deref().unwrap_or_default();
        if line.trim().is_empty() {
            return Err(Error::Nothing("text".to_owned()));
        }
        Ok(match server.type_line(&user, &channel, line, act.thread_ts.as_ref()).await? {
            Typed::Said(ts) => json!({ "ok": true, "ts": ts }),
            Typed::Command(None) => json!({ "ok": true, "command": true }),
            Typed::Command(Some(answer)) => json!({ "ok": true, "command": true, "answer": answer }),
        })
    };
    answered(done.await)
}

pub(super) async fn action(State(server): State<Arc<Server>>, Json(act): Json<Act>) -> Response {
    let done = async {
        let user = act.actor(&server)?;
        let button_value = act.value.as_str().map(str::to_owned);
        let press = Press::Action { action_id: act.action_id.clone().unwrap_or_default(), value: button_value };
        let chosen = if act.selected_option.is_null() { act.value.clone() } else { act.selected_option.clone() };
        let pressed = Pressed { block_id: act.block_id.as_deref(), press, chosen, values: act.state["values"].clone() };
        match &act.view_id {
            Some(view) => server.press_on_view(&user, view, pressed).await?,
            None => {
                let (user, channel) = act.place(&server)?;
                let ts = act.message_ts.clone().ok_or_else(|| Error::Nothing("message".to_owned()))?;
                server.press_on_message(&user, &channel, &ts, pressed).await?;
            }
        }
        Ok(json!({ "ok": true }))
    };
    answered(done.await)
}

pub(super) async fn view_submit(State(server): State<Arc<Server>>, Json(act): Json<Act>) -> Response {
    let done = async {
        let user = act.actor(&server)?;
        match server.submit(&user, act.view(), &act.values).await {
            Ok(closed) => Ok(json!({ "ok": true, "closed": closed })),
            Err(Error::Refused(errors)) => Ok(refusal(errors)),
            Err(error) => Err(error),
        }
    };
    answered(done.await)
}

pub(super) async fn view_close(State(server): State<Arc<Server>>, Json(act): Json<Act>) -> Response {
    answered(act.actor(&server).and_then(|user| server.close(&user, act.view())).map(|()| json!({ "ok": true })))
}

pub(super) async fn shortcut(State(server): State<Arc<Server>>, Json(act): Json<Act>) -> Response {
    let done = async {
        let user = act.actor(&server)?;
        let message = match &act.message_ts {
            Some(ts) => Some((act.place(&server)?.1, ts.clone())),
            None => None,
        };
        server.shortcut(&user, act.callback_id.as_deref().unwrap_or_default(), message).await?;
        Ok(json!({ "ok": true }))
    };
    answered(done.await)
}

pub(super) async fn stop_session(State(server): State<Arc<Server>>, Json(act): Json<Act>) -> Response {
    let stopped = act.place(&server).and_then(|(user, channel)| {
        let thread = act.thread_ts.as_ref().ok_or_else(|| Error::Nothing("thread".to_owned()))?;
        server.stop_session(&user, &channel, thread)
    });
    answered(stopped.map(|()| json!({ "ok": true })))
}

pub(super) async fn open_home(State(server): State<Arc<Server>>, Json(act): Json<Act>) -> Response {
    answered(act.actor(&server).map(|user| {
        server.open_home(&user);
        json!({ "ok": true })
    }))
}

fn refusal(errors: BTreeMap<String, String>) -> Value {
    json!({ "ok": true, "errors": errors, "closed": false })
}

fn answered(done: Result<Value, Error>) -> Response {
    match done {
        Ok(answer) => Json(answer).into_response(),
        // If the app does not respond, the request of the page was still valid.
        Err(error @ Error::Unanswered) => refused(StatusCode::OK, error),
        Err(error) => refused(StatusCode::NOT_FOUND, error),
    }
}
