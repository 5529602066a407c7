//! What can be done to experiments: one file for each change, and how a change ends.
//!
//! An action's `prepare` reads and makes a card; `perform` sends one request; `probe` reads back. What they share is
//! here: the stored parameters as a type, and the translation of the client's errors into an end.
//!
//! A fault of the server's code (500 with an error as JSON) says that the request was worked on and is no longer in
//! flight, but not how far it got. So the action is read back on the spot: if nothing changed that is a failure with
//! evidence, and if the change is there it is done.

pub mod assign;
pub mod create;
pub mod delete;
pub mod init;
pub mod mark;
pub mod status;
pub mod update;

mod changed;
pub(super) mod choices;
mod design;
mod expects;
mod factorial;
mod fields;
mod lists;
pub(in crate::capabilities) mod moment;
mod plan;
mod several;
mod stratified;
mod surroundings;
mod wanted;
mod written;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{access, replies::outcomes};
use crate::{
    graph::action::{ActionKind, ActionRecord, ErrorKind, MissingParameter, Outcome, Performed, Probed},
    reply::{Fact, Text},
    services::upgrade::{client::UpgradeClient, error::Error},
};

/// The stored parameters as a type.
pub(super) fn stored<T: DeserializeOwned>(record: &ActionRecord) -> Result<T, Outcome> {
    serde_json::from_value(record.parameters.clone())
        .map_err(|_| failed(ErrorKind::Execution, outcomes::unreadable_record()))
}

/// It did not happen.
pub(super) fn failed(error: ErrorKind, summary: Text) -> Outcome {
    Outcome::Failed { error, summary }
}

/// It happened; the card's own words say so.
fn done(record: &ActionRecord, result: Value) -> Outcome {
    Outcome::Done { result, summary: Text::from(record.card.done.as_str()) }
}

/// A read before or after a change failed; nothing was sent.
pub(super) fn unread(error: &Error) -> Outcome {
    failed(access::kind(error), not_done(error))
}

/// Why nothing was changed.
pub(super) fn not_done(error: &Error) -> Text {
    match error {
        Error::NotFound { reason } => outcomes::not_found(reason),
        Error::Auth => outcomes::not_accepted(),
        Error::SignIn(error) => outcomes::cannot_sign_in(error),
        Error::Invalid { problems } => outcomes::invalid(problems),
        Error::Refused { reason } => outcomes::refused(reason),
        Error::Faulted { reason } => outcomes::tripped(reason),
        Error::Decode { reason } => outcomes::odd(reason),
        Error::Unavailable { reason } | Error::NoAnswer { reason } => outcomes::down(reason),
    }
}

/// How a change ended that the client reports as an error.
pub(super) async fn ended_badly(action: &dyn ActionKind, record: &ActionRecord, error: Error) -> Performed {
    match error {
        Error::NoAnswer { reason } => Performed::NoAnswer { detail: reason },
        Error::Faulted { reason } => Performed::Ended(match action.probe(record).await {
            Probed::Happened(outcome) => outcome,
            Probed::DidNotHappen => failed(ErrorKind::Api, outcomes::faulted(&reason)),
            Probed::Otherwise { .. } | Probed::CannotTell { .. } => {
                Outcome::Unknown { summary: outcomes::faulted_and_open(&reason) }
            }
        }),
        error => Performed::Ended(failed(access::kind(&error), not_done(&error))),
    }
}

/// Reading back failed.
fn cannot_read_back(error: &Error) -> Probed {
    let reason = match error {
        Error::Unavailable { reason } => reason.clone(),
        error => error.to_string(),
    };
    Probed::CannotTell { evidence: outcomes::cannot_read_back(&reason) }
}

/// How long a request may still arrive after it left: the client gives up before.
pub(super) fn in_flight(client: &UpgradeClient) -> Duration {
    client.timeout() + Duration::from_secs(2)
}

/// When a change of several requests may still send one. What is left after that waits until the change is read back, so
/// that [`Window::in_flight`] holds for all of them.
struct Window(tokio::time::Instant);

impl Window {
    /// Opens now, for as long as one call may take.
    fn open(client: &UpgradeClient) -> Self {
        Self(tokio::time::Instant::now() + client.timeout())
    }

    /// Nothing, if another request may leave.
    fn is_open(&self) -> Result<(), Error> {
        match tokio::time::Instant::now() < self.0 {
            true => Ok(()),
            false => Err(Error::NoAnswer { reason: "the platform is slow; the rest waits".to_owned() }),
        }
    }

    /// How long a request may still arrive after the window was opened.
    fn in_flight(client: &UpgradeClient) -> Duration {
        client.timeout() + in_flight(client)
    }
}

/// A line of a card about something new.
pub(super) fn fact(label: &str, after: impl Into<Text>) -> Fact {
    Fact { label: label.to_owned(), before: None, after: after.into() }
}

/// A line of a card about a change.
fn change(label: &str, before: impl Into<Text>, after: impl Into<Text>) -> Fact {
    Fact { label: label.to_owned(), before: Some(before.into()), after: after.into() }
}

/// A parameter to ask for.
pub(in crate::capabilities) fn missing(
    name: &str,
    question: impl Into<String>,
    options: Vec<String>,
) -> MissingParameter {
    MissingParameter { name: name.to_owned(), question: question.into(), options }
}

/// What a person gave, without blanks around it; nothing if nothing is left.
pub(in crate::capabilities) fn given(words: Option<&String>) -> Option<&str> {
    words.map(|words| words.trim()).filter(|words| !words.is_empty())
}
