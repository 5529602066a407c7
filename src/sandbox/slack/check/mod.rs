//! All limits of Block Kit. As in Slack, content beyond a limit is refused.
//!
//! Lengths are in characters. `blocks` checks blocks, `elements` the elements in them, and
//! `views` modals and Home tabs. A problem has an error and its place as a JSON pointer. `manners` checks for content that Slack accepts but the bot should not send.

mod blocks;
mod elements;
mod manners;
mod text;
mod views;

pub use blocks::message;
pub use views::view;

pub(super) use blocks::attachments;
pub(super) use elements::suggestions;
pub(super) use manners::{message_text, new_block_ids, no_broadcast};
pub(super) use views::errors;

/// The reason for a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Slack's name for the error.
    pub error: &'static str,
    /// A description and a JSON pointer.
    pub reason: String,
}

/// The result of a check.
type Checked = Result<(), Problem>;

fn problem(at: &str, words: impl std::fmt::Display) -> Problem {
    Problem { error: "invalid_blocks", reason: format!("{words} [json-pointer:{at}]") }
}
