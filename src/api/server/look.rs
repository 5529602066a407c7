//! `GET /v1/approvals` and `GET /v1/approvals/{id}`: looking, and waiting.
//!
//! A connection that waits hangs on the writes of this process ([`Written`](countersign_graph::store::Written)). Where other
//! processes use the same store, one task of the process looks at all requests that somebody waits for.

use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock},
    time::Duration,
};

use axum::{http::StatusCode, response::Response};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Caller, Server, json_answer, number, query};
use crate::{problem::Problem, shape::Fault, view::Seen};

/// The longest wait, in seconds.
const MAX_WAIT: u64 = 60;

/// The most requests on a page.
const MAX_LISTED: u64 = 100;

/// The time between two looks at what other processes wrote.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Server {
    /// Shows a request, at once or when it is decided or has changed.
    pub(super) async fn look(&self, caller: &Caller, id: &str, given: &str) -> Result<Response, Problem> {
        let [wait, after] = query(given, ["wait", "after"])?;
        let wait = number("wait", wait.as_deref(), 0, MAX_WAIT)?.unwrap_or(0);
        let after = number("after", after.as_deref(), 0, u64::from(u32::MAX))?;
        let is_ready = |seen: &Seen| match after {
            Some(after) => seen.revision() > after || seen.is_final(),
            None => !seen.is_undecided(),
        };
        let seen = match wait {
            0 => self.seen(caller, id).await?,
            seconds => self.wait_for(caller, id, Duration::from_secs(seconds), &is_ready).await?,
        };
        Ok(self.show(StatusCode::OK, &seen))
    }

    /// Lists the requests of a key, the oldest first.
    pub(super) async fn list(&self, caller: &Caller, given: &str) -> Result<Response, Problem> {
        let [state, policy, limit, cursor] = query(given, ["state", "policy", "limit", "cursor"])?;
        let limit = number("limit", limit.as_deref(), 1, MAX_LISTED)?.unwrap_or(MAX_LISTED);
        let wrong = || {
            let detail = "cursor: expected the one of the last answer.".to_owned();
            Problem::invalid(&[Fault { pointer: String::new(), detail }])
        };
        let (mut page, mut at) = match cursor.as_deref() {
            None => (0, 0),
            Some(cursor) => {
                let (page, at) = cursor.split_once('.').ok_or_else(wrong)?;
                (page.parse().map_err(|_| wrong())?, at.parse().map_err(|_| wrong())?)
            }
        };
        let mut data = Vec::new();
        let mut next = None;
        'pages: while let Some(ids) = self.0.deps.requests.page(&caller.name, page).await? {
            for id in ids.iter().skip(at) {
                if data.len() as u64 >= limit {
                    next = Some(format!("{page}.{at}"));
                    break 'pages;
                }
                at += 1;
                let seen = match self.seen(caller, id).await {
                    Ok(seen) => seen,
                    Err(problem) if problem.slug() == "not-found" => continue, // it was never stored
                    Err(problem) => return Err(problem),
                };
                let is_wanted = state.as_deref().is_none_or(|state| seen.state().as_str() == state)
                    && policy.as_deref().is_none_or(|policy| seen.entry.asked.policy == policy);
                if is_wanted {
                    data.push(self.shown(&seen));
                }
            }
            (page, at) = (page + 1, 0);
        }
        Ok(json_answer(StatusCode::OK, &json!({ "object": "list", "data": data, "next_cursor": next })))
    }
}

/// A request that somebody waits for: what was seen of it, and how those who wait are told.
type Watched = (u64, watch::Sender<()>);

/// The requests that connections of this process wait for, if other processes use the store.
#[derive(Debug, Default)]
pub(super) struct Elsewhere(OnceLock<Mutex<HashMap<String, Watched>>>);

/// Returns a number that differs if a request has changed.
fn mark(seen: &Seen) -> u64 {
    seen.revision() * 4 + u64::from(seen.entry.thread.is_some()) * 2 + u64::from(seen.entry.ended.is_some())
}

impl Server {
    /// Waits until another process has changed a request; for ever, if there is none.
    pub(super) fn written_elsewhere(&self, seen: &Seen) -> impl Future<Output = ()> + Send + use<> {
        let receiver = self.0.elsewhere.0.get().map(|watched| {
            let mut watched = watched.lock().expect("no holder panics");
            let (known, sender) = watched.entry(seen.entry.id.clone()).or_insert_with(|| (0, watch::channel(()).0));
            *known = mark(seen);
            sender.subscribe()
        });
        async move {
            match receiver {
                Some(mut receiver) => drop(receiver.changed().await),
                None => std::future::pending().await,
            }
        }
    }

    /// Looks at the requests that connections wait for, again and again, if other processes use the store. Returns at the
    /// signal to stop.
    pub async fn look_elsewhere(self, stop: CancellationToken) {
        let requests = &self.0.deps.requests;
        if !requests.store().is_shared() {
            return stop.cancelled().await;
        }
        let watched = self.0.elsewhere.0.get_or_init(Mutex::default);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let ids: Vec<String> = {
                let mut watched = watched.lock().expect("no holder panics");
                watched.retain(|_, (_, sender)| sender.receiver_count() > 0);
                watched.keys().cloned().collect()
            };
            for id in ids {
                let Ok(Some(entry)) = requests.entry(&id).await else { continue };
                let Ok(record) = requests.record(&entry).await else { continue };
                let mark = mark(&Seen { entry, record });
                let watched = watched.lock().expect("no holder panics");
                if let Some((known, sender)) = watched.get(&id)
                    && *known != mark
                {
                    sender.send(()).ok(); // nobody waits any more
                }
            }
        }
    }
}
