//! The mailbox as the [`World`] of a server.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::Bytes,
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use countersign_core::clock::Timestamp;
use serde_json::json;

use super::{
    Options,
    failure::Failure,
    persistence,
    routes::{self, Outcome, World},
};
use crate::{
    call::Call,
    google::{Holder, SCOPES},
    ledger::Request,
    stand_in::{self, Http, Shared},
};

/// The duration for which a pull waits for a message.
const LONGEST_PULL: Duration = Duration::from_secs(90);

impl stand_in::World for World {
    type Options = Options;
    type Entry = Request;
    type Own = Infallible;

    fn tick(&mut self, now: Timestamp) {
        self.now = now.millis();
    }

    fn settle(&mut self) {
        if self.mailbox.newest_history != self.published {
            self.published = self.mailbox.newest_history;
            self.pubsub.publish(self.published, self.now);
        }
    }

    fn kept(&self) -> Vec<u8> {
        persistence::kept(&self.mailbox, &self.sent)
    }
}

impl Http for World {
    /// The size of a mail of the maximum size in base64.
    const BODY_LIMIT: usize = 64 * 1024 * 1024;
    type Call = Call;

    fn read(&mut self, head: &Parts, body: Bytes, now: Timestamp) -> (Call, Request) {
        let (call, entry) = Call::read(head, body, now);
        // A mail would fill the memory.
        (call, Request { body: serde_json::Value::Null, ..entry })
    }

    fn text(call: &Call) -> String {
        call.text()
    }

    fn handle(&mut self, on: &Shared<Self>, call: &Call, _number: usize) -> (Option<Response>, bool) {
        let before = self.mailbox.changes;
        let outcome = holder(&on.options, call).and_then(|holder| routes::handle(self, call, &holder));
        let answer = match outcome {
            Ok(Outcome::Json(body)) => Some(stand_in::json(200, &body)),
            Ok(Outcome::Nothing) => Some(StatusCode::NO_CONTENT.into_response()),
            Ok(Outcome::Sent(sent, body)) => {
                self.sent.push(*sent);
                Some(stand_in::json(200, &body))
            }
            Ok(Outcome::Wait) => None,
            Err(failure) => Some(refusal(&failure)),
        };
        if call.path.ends_with("/watch") {
            on.news.notify_waiters(); // the first message is there already
        }
        (answer, self.mailbox.changes != before)
    }

    fn refused(_on: &Shared<Self>, _call: &Call, status: u16) -> Response {
        refusal(&Failure::of_status(status))
    }

    async fn respond(
        on: &Arc<Shared<Self>>,
        call: &Call,
        number: usize,
        _fault: Option<Infallible>,
    ) -> Option<Response> {
        let answer = tokio::time::timeout(LONGEST_PULL, on.answer(call, number)).await;
        Some(answer.unwrap_or_else(|_| stand_in::json(200, &json!({}))))
    }
}

fn refusal(failure: &Failure) -> Response {
    let mut response = stand_in::json(failure.status, &failure.body());
    if let Some(seconds) = failure.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn holder(options: &Options, call: &Call) -> Result<Holder, Failure> {
    let token = call.token.as_deref().filter(|token| !token.is_empty()).ok_or_else(Failure::unauthenticated)?;
    match &options.tokens {
        Some(tokens) => tokens.holder(token).ok_or_else(Failure::unauthenticated),
        None => {
            let scopes = SCOPES.iter().map(|scope| (*scope).to_owned()).collect();
            Ok(Holder { person: Some(options.address.clone()), scopes })
        }
    }
}
