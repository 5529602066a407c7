//! The limits of Block Kit, all of them: what is over one is refused, as Slack refuses it.
//!
//! Counts are characters. `blocks` knows the kinds of blocks, `elements` what stands in them, `views` modals and Home
//! tabs, `stream` what is said bit by bit. A problem names the error and where it is, as a JSON pointer. `manners` knows what Slack takes and we should not
//! send all the same.

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

/// Why something is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Slack's name for it.
    pub error: &'static str,
    /// Words and a JSON pointer.
    pub reason: String,
}

/// What a check comes to.
type Checked = Result<(), Problem>;

fn problem(at: &str, words: impl std::fmt::Display) -> Problem {
    Problem { error: "invalid_blocks", reason: format!("{words} [json-pointer:{at}]") }
}
