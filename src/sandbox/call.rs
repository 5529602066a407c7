//! A request to the stand-ins for Google and HubSpot, and its answer.

use std::convert::Infallible;

use axum::{
    body::Bytes,
    http::{header, request::Parts},
    response::Response,
};
use countersign_core::clock::Timestamp;
use serde_json::Value;

use crate::{
    ledger::Request,
    stand_in::{self, Http, Shared, World},
};

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The method.
    pub(crate) method: String,
    /// The path without the query, still encoded.
    pub(crate) path: String,
    /// The decoded parameters of the query.
    pub(crate) query: Vec<(String, String)>,
    /// The token in `Authorization: Bearer`.
    pub(crate) token: Option<String>,
    /// The body.
    pub(crate) body: Bytes,
}

impl Call {
    /// Reads a request, and returns it with its record.
    pub(crate) fn read(head: &Parts, body: Bytes, now: Timestamp) -> (Self, Request) {
        let token = head.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let query = head.uri.query().unwrap_or_default();
        let call = Self {
            method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
            token: token.and_then(|value| value.strip_prefix("Bearer ")).map(str::to_owned),
            body,
        };
        let entry = Request {
            at: now.to_string(),
            method: call.method.clone(),
            path: call.path.clone(),
            user_id: None,
            body: serde_json::from_slice(&call.body).unwrap_or_default(),
            status: None,
            effect: false,
            answer_bytes: 0,
        };
        (call, entry)
    }

    /// Returns the text to which faults are matched: `METHOD /path`.
    pub(crate) fn text(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Returns the decoded parts of the path.
    pub(crate) fn parts(&self) -> Vec<String> {
        let decode = |part: &str| {
            // A plus sign in a path means itself.
            let part = part.replace('+', "%2B");
            url::form_urlencoded::parse(format!("x={part}").as_bytes()).next().map(|(_, value)| value.into_owned())
        };
        self.path.split('/').filter(|part| !part.is_empty()).filter_map(decode).collect()
    }

    /// Returns a parameter of the query.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// An answer in JSON.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: Value,
    /// True if the request changed something.
    pub(crate) effect: bool,
}

impl Reply {
    /// An answer to a read.
    pub(crate) fn ok(body: Value) -> Self {
        Self { status: 200, body, effect: false }
    }

    /// An answer to a change.
    pub(crate) fn changed(status: u16, body: Value) -> Self {
        Self { status, body, effect: true }
    }
}

/// A service that answers each request in JSON.
pub(crate) trait Service: Send + 'static {
    /// Answers a request at a time.
    fn reply(&mut self, call: &Call, now: Timestamp) -> Reply;

    /// Returns an error with this status, for an injected fault.
    fn failure(status: u16) -> Value;
}

impl<S: Service> World for S {
    type Options = ();
    type Entry = Request;
    type Own = Infallible;
}

impl<S: Service> Http for S {
    type Call = Call;

    fn read(&mut self, head: &Parts, body: Bytes, now: Timestamp) -> (Call, Request) {
        Call::read(head, body, now)
    }

    fn text(call: &Call) -> String {
        call.text()
    }

    fn handle(&mut self, on: &Shared<Self>, call: &Call, _number: usize) -> (Option<Response>, bool) {
        let reply = self.reply(call, on.clock.now());
        (Some(stand_in::json(reply.status, &reply.body)), reply.effect)
    }

    fn refused(_on: &Shared<Self>, _call: &Call, status: u16) -> Response {
        stand_in::json(status, &Self::failure(status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_path_are_decoded() {
        let call = Call {
            method: "GET".into(),
            path: "/calendars/a%40b.c+d/events".into(),
            query: vec![("q".into(), "1".into())],
            token: None,
            body: Bytes::new(),
        };
        assert_eq!(call.parts(), ["calendars", "a@b.c+d", "events"]);
        assert_eq!((call.parameter("q"), call.parameter("r")), (Some("1"), None));
    }
}
