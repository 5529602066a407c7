//! A stream of the changes that one person sees, as server-sent events.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::{Query, State},
    http::StatusCode,
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use countersign_core::ids::UserId;
use futures_util::{Stream, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::read::refused;
use crate::slack::{broadcast::Change, server::Server};

const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The person who receives the stream.
#[derive(Debug, Deserialize)]
pub(super) struct Seat {
    #[serde(rename = "as")]
    viewer: String,
}

pub(super) async fn events(State(server): State<Arc<Server>>, Query(seat): Query<Seat>) -> Response {
    let viewer = server.world().user(&seat.viewer).map(|user| user.id.clone());
    let Some(viewer) = viewer else { return refused(StatusCode::NOT_FOUND, "there is no such user") };
    let changes = server.changes.subscribe();
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Sse::new(event_stream(Watch { server, viewer, changes, ready: VecDeque::new() }))
        .keep_alive(keep_alive)
        .into_response()
}

struct Watch {
    server: Arc<Server>,
    viewer: UserId,
    changes: Receiver<Change>,
    ready: VecDeque<Value>,
}

fn event_stream(watch: Watch) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(watch, async |mut watch| {
        loop {
            if let Some(next) = watch.ready.pop_front() {
                return Some((Ok(Event::default().data(next.to_string())), watch));
            }
            let change = tokio::select! {
                change = watch.changes.recv() => change,
                () = watch.server.stop.cancelled() => return None,
            };
            match change {
                Ok(change) => watch.take(&change),
                // The page reconnects when the stream ends, and then reads everything again.
                Err(RecvError::Lagged(_) | RecvError::Closed) => return None,
            }
        }
    })
}

impl Watch {
    fn take(&mut self, change: &Change) {
        let world = self.server.world();
        if !change.concerns(&self.viewer, &world) {
            return;
        }
        if !matches!(change, Change::Read { .. }) {
            self.ready.push_back(serde_json::to_value(change).expect("changes are plain data"));
        }
        if let Some(channel) = change.unread_in().and_then(|channel| world.channel(channel.as_str())) {
            let (unread, mentions) = world.unread(&self.viewer, channel);
            let counts = json!({ "type": "unread", "channel": channel.id, "unread": unread, "mentions": mentions });
            self.ready.push_back(counts);
        }
    }
}
