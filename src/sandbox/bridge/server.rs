//! The bridge as the world of a server: it reads a request, lets the routes answer it, and starts the timers of jobs.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use countersign_core::clock::Timestamp;
use serde_json::Value;

use super::{
    Options, Own, Request, Version,
    failure::Failure,
    fresh_id, mcp,
    moment::Moment,
    rest::{self, Answer, Call, RequestContext},
    stream,
    world::World,
};
use crate::stand_in::{self, Http};

/// The state shared by the server and [`super::Bridge`].
pub(crate) type Shared = stand_in::Shared<World>;

impl stand_in::World for World {
    type Options = Options;
    type Entry = Request;
    type Own = Own;

    /// Sets the clock, which advances at each access.
    fn tick(&mut self, now: Timestamp) {
        self.now = Moment((now.millis() * 1000).max(self.now.0 + 1));
    }

    fn kept(&self) -> Vec<u8> {
        serde_json::to_vec(&self.on_disk()).expect("plain JSON")
    }
}

impl Http for World {
    type Call = Call;

    fn read(&mut self, head: &Parts, body: Bytes, _now: Timestamp) -> (Call, Request) {
        let call = Call::read(&head.method, &head.uri, &head.headers, &body);
        let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let entry = Request {
            at: self.now.iso(),
            method: call.method.clone(),
            path: call.path.clone(),
            query: call.query.clone(),
            tool: call.tool().map(str::to_owned),
            subject: None,
            roles: Vec::new(),
            confirm: text("x-mcp-confirm"),
            correlation: text("x-correlation-id"),
            protocol: text("mcp-protocol-version"),
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            status: None,
        };
        (call, entry)
    }

    fn text(call: &Call) -> String {
        format!("{} {} {}", call.method, call.path, call.tool().unwrap_or_default())
    }

    fn handle(&mut self, on: &Shared, call: &Call, number: usize) -> (Option<Response>, bool) {
        let begun = tokio::time::Instant::now();
        let options = &on.options;
        let mut context =
            RequestContext { call, secret: &options.secret, rate_limit: options.rate_limit, caller: None };
        let answer = rest::answer(self, &mut context);
        let caller = context.caller.take();
        if let Some(caller) = &caller {
            on.note(number, |request| {
                request.subject = Some(caller.subject.clone());
                request.roles.clone_from(&caller.roles);
            });
        }
        start_timers(on, self);
        let millis = begun.elapsed().as_secs_f64() * 1000.0;
        self.record(rest::trail_of(call, &answer, caller.as_ref(), millis));
        let response = match answer {
            Answer::Stream(job) => {
                let events = stream::events(on.owned(), &job, self.cuts_stream, on.epoch());
                let headers = [
                    (header::CONTENT_TYPE, "text/event-stream; charset=utf-8".to_owned()),
                    (header::HeaderName::from_static("x-correlation-id"), call.correlation.clone()),
                ];
                (headers, events).into_response()
            }
            answer => sent(answer, &call.correlation),
        };
        (Some(response), call.method == "POST")
    }

    fn refused(on: &Shared, call: &Call, status: u16) -> Response {
        let failure = Failure::of_status(status);
        let is_mcp = call.path == "/mcp" && on.options.version == Version::V05;
        let refused = match is_mcp {
            true => mcp::refused(&failure, call),
            false => Answer::refused(&failure, &call.correlation),
        };
        sent(refused, &call.correlation)
    }

    async fn respond(on: &Arc<Shared>, call: &Call, number: usize, fault: Option<Own>) -> Option<Response> {
        match fault {
            Some(Own::Stall) => on.world().stalled = true,
            Some(Own::Restart) => on.world().restart(),
            Some(Own::CutStream) | None => {}
        }
        if on.world().stalled {
            std::future::pending::<()>().await;
        }
        let (response, runs) = {
            let mut world = on.world();
            world.cuts_stream = fault == Some(Own::CutStream);
            let before = world.jobs.len();
            let response = on.apply(&mut world, call, number);
            (response, world.jobs.len() - before)
        };
        if call.tool() == Some("run_sensitivity_analysis") && runs > 0 {
            wait_for_runs(on, runs).await;
        }
        response
    }
}

/// Starts a timer for each started job and each job in the scheduler.
pub(crate) fn start_timers(on: &Shared, world: &mut World) {
    let waiting: Vec<(String, Duration)> = world
        .jobs
        .iter()
        .filter(|job| !job.timed && !job.status.is_final())
        .filter(|job| job.started.is_some() || job.external.is_some())
        .map(|job| (job.id.clone(), world.takes(job)))
        .collect();
    for (id, takes) in waiting {
        for job in world.jobs.iter_mut().filter(|job| job.id == id) {
            job.timed = true;
        }
        let (on, epoch) = (on.owned(), on.epoch());
        tokio::spawn(async move {
            tokio::select! {
                () = epoch.cancelled() => return,
                () = tokio::time::sleep(takes) => {}
            }
            on.change(|world| time_elapsed(&on, world, &id));
        });
    }
}

/// Advances a job after its time has elapsed, unless jobs are held.
fn time_elapsed(on: &Shared, world: &mut World, id: &str) {
    if world.held {
        for job in world.jobs.iter_mut().filter(|job| job.id == id) {
            job.timed = false;
        }
        return;
    }
    if world.job(id).is_some_and(|job| !job.status.is_final()) {
        world.advance(id);
    }
    start_timers(on, world);
}

/// Waits for the duration of these runs and until jobs are not held. A sensitivity run is answered after its last
/// scenario.
async fn wait_for_runs(on: &Shared, runs: usize) {
    let runs = u32::try_from(runs).unwrap_or(u32::MAX);
    tokio::time::sleep(on.options.run_takes.saturating_mul(runs)).await;
    loop {
        let released = on.news.notified();
        if !on.world().held {
            return;
        }
        released.await;
    }
}

/// Converts an answer to an HTTP response.
fn sent(answer: Answer, correlation: &str) -> Response {
    let (status, body, headers) = match answer {
        Answer::Json { status, body, headers } => (status, body.map(|body| body.to_string()), headers),
        Answer::Text(text) => (200, Some(text), vec![("content-type", "text/plain; version=0.0.4".to_owned())]),
        Answer::Stream(_) => (200, None, Vec::new()),
    };
    let mut response = Response::builder().status(status).header("x-correlation-id", printable(correlation));
    if body.is_some() && !headers.iter().any(|(name, _)| *name == "content-type") {
        response = response.header(header::CONTENT_TYPE, "application/json");
    }
    if status == 500 {
        response = response.header(header::CONNECTION, "close");
    }
    for (name, value) in &headers {
        response = response.header(*name, printable(value));
    }
    response.body(body.map_or_else(Body::empty, Body::from)).expect("the status and the headers are valid")
}

/// Returns the text without characters that are not allowed in headers.
fn printable(text: &str) -> String {
    text.chars().filter(|own| (' '..='~').contains(own)).collect()
}

/// Returns the correlation id of a request, or a new one.
pub(crate) fn correlation(headers: &HeaderMap) -> String {
    let sent = headers.get("x-correlation-id").and_then(|value| value.to_str().ok());
    sent.map_or_else(fresh_id, str::to_owned)
}
