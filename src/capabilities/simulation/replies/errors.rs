//! The errors of the bridge in words: a sentence about each, and advice.

use countersign_core::reply::{Reply, Text};
use countersign_graph::action::ErrorKind;

use crate::bridge::error::Error;

/// Returns the kind of an error.
pub fn kind(error: &Error) -> ErrorKind {
    match error {
        Error::NotFound { .. } => ErrorKind::NotFound,
        Error::NoToken | Error::Auth { .. } | Error::Forbidden => ErrorKind::Auth,
        Error::Conflict { .. } | Error::Invalid { .. } => ErrorKind::Validation,
        Error::NotConfirmed | Error::Engine { .. } | Error::Faulted { .. } | Error::Decode { .. } => ErrorKind::Api,
        Error::Unavailable { .. } | Error::Busy | Error::NoAnswer { .. } => ErrorKind::Network,
    }
}

/// Returns the sentence about an error, and the advice; empty if there is none.
fn sentences(error: &Error) -> (String, &'static str) {
    const OPERATOR: &str = "The app's operator has to fix that.";
    match error {
        Error::Unavailable { reason } => {
            (format!("The simulation bridge isn't answering ({reason})."), "Try again in a minute.")
        }
        Error::Busy => (
            "The simulation bridge isn't accepting more calls right now; it limits calls per minute.".to_owned(),
            "Try again in a minute.",
        ),
        Error::NoToken => ("I have no token for the simulation bridge.".to_owned(), OPERATOR),
        Error::Auth { reason } if reason.is_empty() => {
            ("The simulation bridge doesn't accept my token.".to_owned(), OPERATOR)
        }
        Error::Auth { reason } => {
            (format!("The simulation bridge doesn't accept my token: {}.", bare(reason)), OPERATOR)
        }
        Error::Forbidden => {
            ("The role of my token doesn't allow this: changes and runs need the operator role.".to_owned(), OPERATOR)
        }
        Error::NotFound { reason } => (format!("The bridge can't find that: {}.", bare(reason)), ""),
        Error::Conflict { reason } => (format!("The bridge reports a conflict: {}.", bare(reason)), ""),
        Error::NotConfirmed => {
            ("The bridge saw no confirmation of this approved call. A proxy may drop its header.".to_owned(), OPERATOR)
        }
        Error::Invalid { problems } => {
            (format!("The bridge refused this: {}.", bare(&problems.join("; "))), "Check it and ask again.")
        }
        Error::Engine { reason } => (format!("The model engine behind the bridge failed: {}.", bare(reason)), ""),
        Error::Faulted { .. } => (
            "The bridge failed with an internal error.".to_owned(),
            "The bridge's operator can find the cause in its log.",
        ),
        Error::NoAnswer { reason } => (format!("The bridge didn't answer ({reason})."), ""),
        Error::Decode { reason } => (format!("I couldn't read the bridge's answer: {}.", bare(reason)), OPERATOR),
    }
}

/// Returns a text of the bridge without the data and the period at its end.
fn bare(reason: &str) -> String {
    let reason = reason.split(" ({").next().unwrap_or(reason);
    reason.trim_end_matches('.').to_owned()
}

/// Returns the reply about a failed read.
pub fn reply(error: &Error) -> Reply {
    let (fact, advice) = sentences(error);
    let reply = Reply::text(fact);
    if advice.is_empty() { reply } else { reply.hint(advice) }
}

/// Returns the sentence about a change that was not made because of an error.
pub fn not_done(error: &Error) -> Text {
    let (fact, advice) = sentences(error);
    let text = Text::from(format!("{fact} Nothing was changed."));
    if advice.is_empty() { text } else { text.plain(format!(" {advice}")) }
}

/// Returns the sentence about an error, without the advice.
pub fn fact(error: &Error) -> String {
    sentences(error).0
}
