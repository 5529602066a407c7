//! The platform as the world of a server: it reads a request, finds its route, checks the token, and answers in the format
//! of the version.

use std::convert::Infallible;

use axum::{
    body::{Body, Bytes},
    http::{header, request::Parts},
    response::Response,
};
use countersign_core::clock::Timestamp;
use serde_json::Value;

use super::{
    Options,
    failure::Failure,
    routes::{self, Call, Gate},
    world::{World, fresh_id},
};
use crate::{
    ledger::Request,
    stand_in::{self, Http, Shared},
};

impl stand_in::World for World {
    type Options = Options;
    type Entry = Request;
    type Own = Infallible;

    fn tick(&mut self, now: Timestamp) {
        self.now = now;
    }

    fn kept(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("the world is plain data")
    }
}

impl Http for World {
    const SPARES_READS: bool = true;
    type Call = Call;

    fn read(&mut self, head: &Parts, body: Bytes, now: Timestamp) -> (Call, Request) {
        let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let path = head.uri.path();
        let read: serde_json::Result<Value> =
            if body.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(&body) };
        let broken = read.as_ref().err().map(|error| match error.is_eof() {
            true => "Unexpected end of JSON input",
            false => "Unexpected token in JSON",
        });
        // There are no routes outside the prefix or after an empty segment.
        let inside = path.strip_prefix("/api").filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let mut segments: Vec<String> =
            inside.map_or_else(|| vec![String::new()], |rest| rest.split('/').skip(1).map(str::to_owned).collect());
        if inside.is_some() && segments.last().is_some_and(String::is_empty) {
            segments.pop();
        }
        let call = Call {
            method: head.method.to_string(),
            path: path.to_owned(),
            segments,
            query: head.uri.query().unwrap_or_default().to_owned(),
            user_id: text("user-id"),
            authorization: text("authorization"),
            body: read.unwrap_or_default(),
            broken,
        };
        let entry = Request {
            at: now.to_string(),
            method: call.method.clone(),
            path: head.uri.path_and_query().map_or_else(|| path.to_owned(), ToString::to_string),
            user_id: call.user_id.clone(),
            body: call.body.clone(),
            status: None,
            effect: false,
            answer_bytes: 0,
        };
        (call, entry)
    }

    fn text(call: &Call) -> String {
        format!("{} {} ", call.method, call.path)
    }

    fn handle(&mut self, on: &Shared<Self>, call: &Call, _number: usize) -> (Option<Response>, bool) {
        let before = self.revision;
        let answer = respond(self, call, &on.options);
        (Some(answer), self.revision != before)
    }

    fn refused(_on: &Shared<Self>, _call: &Call, status: u16) -> Response {
        stand_in::page(status)
    }
}

fn respond(world: &mut World, call: &Call, options: &Options) -> Response {
    let refuse = |failure: &Failure, world: &World| match failure.page() {
        Some(html) => reply(failure.status, "text/html; charset=utf-8", html),
        None => {
            let body = failure.body(world.version, &call.path, &call.body);
            reply(failure.status, "application/json; charset=utf-8", body.to_string())
        }
    };
    if let Some(message) = call.broken {
        return refuse(&Failure::syntax(message), world);
    }
    let Some((gate, handler)) = routes::find(call, world.version) else {
        return refuse(&Failure::no_route(&call.method, &call.path), world);
    };
    let sent = call.authorization.as_deref().map(|sent| sent.strip_prefix("Bearer ").unwrap_or(sent));
    let (token, minted) = (options.token.as_deref(), options.minted.as_deref());
    world.authenticated = token.is_some() || minted.is_some();
    let is_authorized = match (minted, sent) {
        (Some(minted), Some(sent)) => minted.accepts(sent),
        (Some(_), None) => false,
        (None, sent) => token.is_none() || sent == token,
    };
    let outcome = if gate == Gate::Admin && !is_authorized {
        Err(Failure::unauthorized(&call.method, &call.path))
    } else {
        handler(world, call)
    };
    match outcome {
        Ok(value) => reply(200, "application/json; charset=utf-8", value.to_string()),
        Err(failure) => refuse(&failure, world),
    }
}

fn reply(status: u16, kind: &'static str, body: String) -> Response {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header("x-request-id", fresh_id())
        .body(Body::from(body))
        .expect("the status and the headers are valid")
}
