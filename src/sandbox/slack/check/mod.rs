//! The limits of Block Kit, all of them: content beyond a limit is refused, as Slack refuses it.
//!
//! Counts are characters. `blocks` knows the kinds of blocks, `elements` the elements in them, `views` modals and Home
//! tabs, `stream` messages that are streamed. A problem names the error and its place, as a JSON pointer. `manners`
//! knows what Slack takes and we should not send all the same.

mod blocks;
mod elements;
mod manners;
mod stream;
mod text;
mod views;

pub use blocks::message;
pub use views::view;

pub(super) use blocks::attachments;
pub(super) use elements::suggestions;
pub(super) use manners::{quiet, renewed, spoken};
pub(super) use stream::chunks;
pub(super) use views::errors;

/// The reason for a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Slack's name for it.
    pub error: &'static str,
    /// A description and a JSON pointer.
    pub reason: String,
}

/// The result of a check.
type Checked = Result<(), Problem>;

fn problem(at: &str, words: impl std::fmt::Display) -> Problem {
    Problem { error: "invalid_blocks", reason: format!("{words} [json-pointer:{at}]") }
}
